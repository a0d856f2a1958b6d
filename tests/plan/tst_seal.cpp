/// A seal changes if the content of a file changes, but not if another library rewrites the same content.
#include "plan/file/seal.h"

#include <nlohmann/json.hpp>

#include <QTest>

#include <limits>

using namespace cleave::plan;
using nlohmann::json;

namespace {

const json kDocument = {
    {"schema", "cleave.plan/1"},
    {"ranks", 2},
    {"cost",
     {{"ms", 0.1},
      {"whole", 3.0},
      {"big", std::numeric_limits<std::uint64_t>::max()},
      {"least", std::numeric_limits<std::int64_t>::min()},
      {"none", nullptr}}},
    {"layers", {{{"name", "größe"}, {"split", true}}, {{"name", "a\"b\\"}, {"split", false}}, json::array()}},
    {"deep", {{"seal", "ignored"}}}};
const std::string kText = kDocument.dump(1);

std::string sealIn(const std::string& text) { return json::parse(text).at("seal").get<std::string>(); }

}  // namespace

class TestSeal : public QObject {
  Q_OBJECT
 private slots:
  void aSealedFileHasItsSeal() {
    const std::string sealed = withSeal(kText);
    QCOMPARE(sealOf(json::parse(sealed)), sealIn(sealed));
    json without = json::parse(sealed);
    without.erase("seal");
    QVERIFY(without == kDocument);
    QCOMPARE(sealIn(withSeal("{\"a\":{}}")).size(), std::size_t(16));
  }

  void formattingDoesNotChangeTheSeal() {
    const std::string sealed = withSeal(kText), seal = sealIn(sealed);
    QCOMPARE(sealOf(json::parse(json::parse(sealed).dump(2, ' ', true))), seal);
    std::string other = sealed;
    other.replace(other.find("3.0"), 3, "3");
    QCOMPARE(sealOf(json::parse(other)), seal);
    other = sealed;
    other.insert(other.rfind('}'), ",\"timings_ms\":{\"solve\":1.5}");  // differs in each run
    QCOMPARE(sealOf(json::parse(other)), seal);
    const nlohmann::ordered_json ordered = nlohmann::ordered_json::parse(sealed);
    nlohmann::ordered_json reversed;
    for (auto item = ordered.rbegin(); item != ordered.rend(); ++item) reversed[item.key()] = *item;
    QCOMPARE(sealOf(json::parse(reversed.dump())), seal);
  }

  void everyValueChangesTheSeal() {
    const json before = json::parse(withSeal(kText));
    const std::string seal = sealOf(before);
    const json flat = before.flatten();
    int changed = 0;
    for (const auto& [pointer, value] : flat.items()) {
      if (pointer == "/seal") continue;
      const json::json_pointer at(pointer);
      for (const json& other : {json("x"), json(nullptr), json(true), json(0.1000000001), json(7)}) {
        if (other == value) continue;
        json after = before;
        after[at] = other;
        QVERIFY2(sealOf(after) != seal, pointer.c_str());
        ++changed;
      }
    }
    QVERIFY(changed > 40);
    json more = before;
    more["layers"].push_back(nullptr);
    QVERIFY(sealOf(more) != seal);
    json renamed = before;
    renamed["rank"] = 2;
    renamed.erase("ranks");
    QVERIFY(sealOf(renamed) != seal);
  }
};

QTEST_GUILESS_MAIN(TestSeal)
#include "tst_seal.moc"
