#include <qfloat16.h>  // nlohmann/json tests whether QTest's types convert, so they must be complete
#include <QChar>
#include <QTest>

#include <string>

#include "base/json.h"
#include "tests/support/error_of.h"
#include "tests/support/rows.h"

#include <nlohmann/json.hpp>

using namespace cleave;
using cleave::test::errorOf;

namespace {

constexpr const char* kWhere = "models/x/config.json";

std::string nested(int depth) { return std::string(depth, '[') + std::string(depth, ']'); }

}  // namespace

class BoundedJsonTest : public QObject {
  Q_OBJECT
 private slots:
  void readsEveryKindOfValue() {
    const auto json = parseJson(R"({"a":[1,-2,3.5,true,null,"ü\u00e9"],"b":{"c":{}}})", kWhere);
    QVERIFY2(json.has_value(), qPrintable(errorOf(json)));
    QCOMPARE(*json, nlohmann::json::parse(R"({"a":[1,-2,3.5,true,null,"üé"],"b":{"c":{}}})"));
  }

  void acceptsScalarsAtTheTop() {
    QCOMPARE(parseJson(" 7 ", kWhere).value(), nlohmann::json(7));
    QCOMPARE(parseJson("\"x\"", kWhere).value(), nlohmann::json("x"));
  }

  void refusesForeignText_data() {
    const test::Rows<std::string, QString> row("text", "phrase");
    row("nothing", "", "is empty");
    row("only spaces", " \n\t ", "is empty");
    row("not JSON", "hello", "is not valid JSON at line 1, column 1");
    row("HTML", "<!DOCTYPE html>", "is not valid JSON at line 1, column 1");
    row("cut short", "{\n  \"a\": [1, 2",
        "is not valid JSON at line 2, column 12: syntax error while parsing array - unexpected end of input");
    row("trailing text", "{} {}", "is not valid JSON at line 1, column 4");
    row("trailing comma", "{\"a\":1,}", "is not valid JSON at line 1, column 8");
    row("comment", "{} // done", "is not valid JSON");
    row("NaN", "{\"a\": NaN}", "is not valid JSON at line 1, column 7: a is NaN, for which JSON has no number");
    row("-Infinity", "{\"a\": {\"b\": -Infinity}}", ": a.b is -Infinity, for which JSON has no number");
    row("Infinity in a list", "[1, Infinity]", ": a value is Infinity, for which JSON has no number");
    row("Infinity", "{\"a\": -Infinity}", "is not valid JSON at line 1");
    row("number too large", "{\"a\": 1e999}", "has the number \"1e999\", which is too large");
    row("integer beyond 64 bits", "{\"a\": 18446744073709551616}",
        "has the integer 18446744073709551616, which does not fit 64 bits");
    row("negative beyond 64 bits", "[-9223372036854775809]",
        "has the integer -9223372036854775809, which does not fit 64 bits");
    row("long integer", std::string(5000, '7'), "has the number \"777");
    row("duplicate key", "{\"a\": 1, \"a\": 2}", "has the key \"a\" twice");
    row("duplicate key below", "{\"a\": [0, {\"b\": 1, \"c\": 0, \"b\": 1}]}", "has the key \"a[1].b\" twice");
    row("duplicate key by escape", "{\"a\": 1, \"\\u0061\": 2}", "has the key \"a\" twice");
    row("bytes that are not UTF-8", "{\"a\": \"\xff\xfe\"}", "ill-formed UTF-8");
    row("overlong UTF-8", "{\"\xc0\x80\": 1}", "ill-formed UTF-8");
    row("half of a surrogate pair", "{\"a\": \"\\ud800\"}", "is not valid JSON");
    row("control character", std::string("{\"a\": \"\0\"}", 10), "is not valid JSON");
    row("a zero byte, then anything", std::string("{}\0}}garbage", 12), "is not valid JSON: byte 2 is 0");
    row("a zero byte at the end", std::string("{}\0", 3), "is not valid JSON: byte 2 is 0");
    row("too deep", nested(65), "is nested deeper than 64 levels");
    row("far too deep", nested(100000), "is nested deeper than 64 levels");
  }
  void refusesForeignText() {
    QFETCH(std::string, text);
    QFETCH(QString, phrase);
    const auto plain = parseJson(text, kWhere);
    QVERIFY(!plain);
    QCOMPARE(plain.error().code, ErrorCode::BadInput);
    const QString message = errorOf(plain);
    QVERIFY2(message.contains(kWhere) && message.contains(phrase), qPrintable(message));
    QVERIFY2(message.endsWith('.') && message.size() < 300, qPrintable(message));
    QVERIFY(!message.contains(QChar::ReplacementCharacter));
  }

  void keepsWithinItsLimits() {
    QVERIFY(parseJson(nested(64), kWhere));
    QVERIFY(parseJson("[1,2,3]", kWhere, {.elements = 4}));
    QVERIFY(errorOf(parseJson("[1,2,3,4]", kWhere, {.elements = 4})).contains("holds more than 4 values"));
    QVERIFY(parseJson("[1,2]", kWhere, {.bytes = 5}));
    QVERIFY(errorOf(parseJson("[1,2] ", kWhere, {.bytes = 5})).contains("has 6 bytes of JSON; the limit is 5"));
  }

  /// The text is counted before anything is built, so that a text of many small values does not multiply memory.
  void countsValuesExactly_data() {
    QTest::addColumn<QByteArray>("text");
    QTest::addColumn<int>("values");
    QTest::newRow("scalar") << QByteArray("7") << 1;
    QTest::newRow("empty list") << QByteArray("[ \n]") << 1;
    QTest::newRow("empty ones") << QByteArray("[[],{ },\"\"]") << 4;
    QTest::newRow("object") << QByteArray(R"({"a":1,"b":[1,2],"c":{}})") << 6;
    QTest::newRow("brackets in texts") << QByteArray("[\"[[,,\\\\\\\"[\",\",{\"]") << 3;
  }
  void countsValuesExactly() {
    QFETCH(QByteArray, text);
    QFETCH(int, values);
    QVERIFY2(parseJson(text.toStdString(), kWhere, {.elements = values}),
             qPrintable(errorOf(parseJson(text.toStdString(), kWhere, {.elements = values}))));
    QVERIFY(errorOf(parseJson(text.toStdString(), kWhere, {.elements = values - 1})).contains("holds more than"));
  }

  void bracketsInTextsAreNotDepth() {
    QVERIFY(parseJson("[\"\\\\\",\"" + std::string(100, '[') + "\"]", kWhere, {.depth = 1}));
  }

  void keepsWideIntegersWhereAllowed() {
    const auto json =
        parseJson("[9223372036854775807, 1000000000000000019884624838656]", kWhere, {.allowsWideIntegers = true});
    QVERIFY2(json.has_value(), qPrintable(errorOf(json)));
    QCOMPARE((*json)[0].get<std::int64_t>(), std::numeric_limits<std::int64_t>::max());
    QVERIFY((*json)[1].is_number_float());
  }

  void readsManyKeysInLinearTime() {
    constexpr int kKeys = 200'000;
    std::string text = "{";
    for (int i = 0; i < kKeys; ++i) text += fmt::format("\"key{}\":{},", i, i);
    text.back() = '}';
    const auto json = parseJson(text, kWhere);
    QVERIFY2(json.has_value(), qPrintable(errorOf(json)));
    QCOMPARE(json->size(), static_cast<std::size_t>(kKeys));
    QCOMPARE((*json)[fmt::format("key{}", kKeys - 1)], nlohmann::json(kKeys - 1));
  }

  void namesAMissingFile() {
    const auto json = readJsonFile("/does/not/exist/config.json");
    QVERIFY(errorOf(json).contains("/does/not/exist/config.json"));
  }

  void describesValuesForMessages() {
    QCOMPARE(describe(nlohmann::json::parse("[1,{}]")), std::string("[1,{}]"));
    QCOMPARE(describe(nlohmann::json(std::vector<int>(300, 1))), std::string("a list of 300 items"));
    QCOMPARE(describe(nlohmann::json{{"key", std::string(100, 'x')}}), std::string("an object"));
  }

  void quotesForMessages() {
    QCOMPARE(quotedText("a\n\"b\""), std::string("\"a\\n\\\"b\\\"\""));
    QCOMPARE(quotedText("\xff"), std::string("\"\uFFFD\""));
    QCOMPARE(quotedText(std::string(61, 'x')), "\"" + std::string(60, 'x') + "...\"");
    QCOMPARE(quotedText(std::string(59, 'x') + "üü"), "\"" + std::string(59, 'x') + "...\"");
    QCOMPARE(quotedText(std::string(58, 'x') + "üü"), "\"" + std::string(58, 'x') + "ü...\"");
  }

  void readsTypedFields() {
    const auto json =
        nlohmann::json::parse(R"({"heads":8,"eps":1e-6,"theta":10000,"tied":false,"act":"silu","archs":["A","B"],)"
                              R"("sizes":[1,2],"rope":{"factor":8.0},"gone":null})");
    const auto object = JsonObject::of(json, "config.json");
    QVERIFY(object);
    QCOMPARE(object->integer("heads", kPositive).value(), 8);
    QCOMPARE(object->number("eps").value(), 1e-6);
    QCOMPARE(object->number("theta").value(), 10000.0);
    QCOMPARE(object->flag("tied").value(), false);
    QCOMPARE(object->text("act").value(), std::string("silu"));
    QCOMPARE(object->texts("archs").value(), (std::vector<std::string>{"A", "B"}));
    QCOMPARE(object->integers("sizes").value(), (std::vector<std::int64_t>{1, 2}));
    const auto rope = object->object("rope");
    QVERIFY(rope);
    QCOMPARE(rope->number("factor").value(), 8.0);
  }

  void readsListsAndWords() {
    const auto json = nlohmann::json::parse(
        R"({"rows":[{"n":1},{"n":"x"},5],"seed":18446744073709551615,"wide":9223372036854775808,"kind":"b"})");
    const auto object = JsonObject::at(json, "plan");
    const auto rows = object->array("rows");
    QCOMPARE(rows->size(), std::size_t{3});
    QCOMPARE(rows->object(0)->integer("n").value(), 1);
    QCOMPARE(errorOf(rows->object(1)->integer("n")), QString("plan.rows[1].n must be an integer, but it is \"x\"."));
    QCOMPARE(errorOf(rows->object(2)), QString("plan.rows[2] must be an object, but it is 5."));
    QCOMPARE(errorOf(rows->text(2)), QString("plan.rows[2] must be a text, but it is 5."));
    QCOMPARE(object->count("seed").value(), std::numeric_limits<std::uint64_t>::max());
    QCOMPARE(errorOf(object->integer("wide")), QString("plan.wide must be an integer, but it is 9223372036854775808."));
    QVERIFY(
        errorOf(object->texts("rows", 2)).contains("must be a list of at most 2 texts, but it is a list of 3 items"));
    std::optional<int> (*const parse)(std::string_view) = [](std::string_view word) {
      return word == "a" ? std::optional(1) : std::nullopt;
    };
    QCOMPARE(errorOf(object->word("kind", parse)),
             QString("plan.kind is \"b\", which this version of Cleave does not know."));
    QVERIFY(!object->optionalInteger("absent").value());
  }

  void writesWhateverNamesAre() { QCOMPARE(jsonText({{"path", "a\xff"}}), std::string("{\"path\":\"a\uFFFD\"}")); }

  void takesNullForAbsent() {
    const auto json = nlohmann::json::parse(R"({"gone":null})");
    const auto object = JsonObject::of(json, "config.json");
    QVERIFY(!object->has("gone"));
    QCOMPARE(object->integer("gone", {}, 5).value(), 5);
    QCOMPARE(object->number("nowhere", 0.5).value(), 0.5);
    QCOMPARE(object->flag("nowhere", true).value(), true);
    QCOMPARE(object->text("nowhere", "x").value(), std::string("x"));
  }

  void namesTheFieldInErrors() {
    const auto json =
        nlohmann::json::parse(R"({"heads":"eight","half":2.5,"zero":0,"huge":18446744073709551615,"list":[1,"x"],)"
                              R"("rope":{"factor":"8"},"tied":1,"act":3,"gone":null})");
    const auto object = JsonObject::of(json, "config.json");
    const auto rope = object->object("rope");
    QCOMPARE(errorOf(object->integer("heads", kPositive)),
             QString("config.json: heads must be a positive integer, but it is \"eight\"."));
    QCOMPARE(errorOf(object->integer("half")), QString("config.json: half must be an integer, but it is 2.5."));
    QCOMPARE(errorOf(object->integer("zero", kPositive)),
             QString("config.json: zero must be a positive integer, but it is 0."));
    QCOMPARE(errorOf(object->integer("zero", {4, 9})),
             QString("config.json: zero must be an integer from 4 to 9, but it is 0."));
    QCOMPARE(errorOf(object->integer("zero", {.min = 4})),
             QString("config.json: zero must be an integer of at least 4, but it is 0."));
    QCOMPARE(errorOf(object->integer("zero", {.max = -1})),
             QString("config.json: zero must be an integer of at most -1, but it is 0."));
    QCOMPARE(errorOf(object->integer("huge")),
             QString("config.json: huge must be an integer, but it is 18446744073709551615."));
    QCOMPARE(errorOf(object->integer("gone", kNotNegative)),
             QString("config.json: gone is missing: it must be an integer of at least 0."));
    QCOMPARE(errorOf(object->integer("heads", kPositive, 4)),
             QString("config.json: heads must be a positive integer, but it is \"eight\"."));
    QCOMPARE(errorOf(object->number("act")), QString("no error"));
    QCOMPARE(errorOf(object->number("list")), QString("config.json: list must be a number, but it is [1,\"x\"]."));
    QCOMPARE(errorOf(object->flag("tied")), QString("config.json: tied must be true or false, but it is 1."));
    QCOMPARE(errorOf(object->text("act")), QString("config.json: act must be a text, but it is 3."));
    QCOMPARE(errorOf(object->texts("list")),
             QString("config.json: list must be a list of texts, but it is [1,\"x\"]."));
    QCOMPARE(errorOf(object->integers("list", kPositive)),
             QString("config.json: list must be a list of items, each a positive integer, but it is [1,\"x\"]."));
    QCOMPARE(errorOf(object->object("act")), QString("config.json: act must be an object, but it is 3."));
    QCOMPARE(errorOf(rope->number("factor")), QString("config.json: rope.factor must be a number, but it is \"8\"."));
    QCOMPARE(errorOf<void>(rope->wrong("kind", "linear or yarn")),
             QString("config.json: rope.kind is missing: it must be linear or yarn."));
    QCOMPARE(errorOf(JsonObject::of(nlohmann::json(3), "config.json")),
             QString("config.json must hold a JSON object, but it holds 3."));
  }
};

QTEST_APPLESS_MAIN(BoundedJsonTest)
#include "tst_json.moc"
