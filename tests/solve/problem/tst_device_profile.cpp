/// Device profiles: the shipped ones, and invalid ones with each possible error.
#include "base/files.h"
#include "solve/problem/device_profile.h"

#include <nlohmann/json.hpp>

#include <QTest>

#include <filesystem>
#include <set>

using namespace cleave;
using namespace cleave::solve;

namespace {

const std::string kValid =
    "{\"schema\": \"cleave.device/1\", \"name\": \"mine\", \"title\": \"My device\", \"memory_bytes\": 1073741824,"
    " \"flops_per_second\": {\"half\": 1e14, \"float32\": 2e13, \"float64\": 1e13}, \"memory_bytes_per_second\": 1e12,"
    " \"link\": {\"bytes_per_second\": 1e11, \"latency_seconds\": 1e-5},"
    " \"sources\": [{\"what\": \"all\", \"address\": \"https://example.org\"}]}";

std::string with(std::string from, const std::string& to) {
  std::string text = kValid;
  const auto at = text.find(from);
  if (at == std::string::npos) qFatal("nothing to replace");
  return text.replace(at, from.size(), to);
}

}  // namespace

class TestDeviceProfile : public QObject {
  Q_OBJECT
 private slots:
  void readsEveryField() {
    const auto profile = parseDeviceProfile(kValid);
    QVERIFY2(profile.has_value(), profile ? "" : profile.error().message.c_str());
    QCOMPARE(profile->name, std::string("mine"));
    QCOMPARE(profile->title, std::string("My device"));
    QCOMPARE(profile->memoryBytes, std::int64_t{1} << 30);
    QCOMPARE(profile->halfFlopsPerSecond, 1e14);
    QCOMPARE(profile->floatFlopsPerSecond, 2e13);
    QCOMPARE(profile->doubleFlopsPerSecond, 1e13);
    QCOMPARE(profile->memoryBytesPerSecond, 1e12);
    QCOMPARE(profile->linkBytesPerSecond, 1e11);
    QCOMPARE(profile->linkLatencySeconds, 1e-5);
    QCOMPARE(profile->sources.size(), std::size_t{1});
  }

  void readsWrittenProfiles() {
    const auto profile = parseDeviceProfile(kValid);
    QVERIFY(profile.has_value());
    for (const DeviceProfile& written : {*profile, DeviceProfile()}) {
      const auto again = parseDeviceProfile(jsonText(toJson(written)));
      QVERIFY2(again.has_value(), again ? "" : again.error().message.c_str());
      QVERIFY(*again == written);
    }
  }

  void refusesBadProfiles_data() {
    QTest::addColumn<QString>("text");
    QTest::addColumn<QString>("phrase");
    const auto row = [](const char* name, const std::string& text, const char* phrase) {
      QTest::newRow(name) << QString::fromStdString(text) << phrase;
    };
    row("no JSON", "{", "not valid JSON");
    row("a list", "[]", "profile must be an object");
    row("another schema", with("device/1", "device/9"), "cleave.device/1");
    row("no memory", with("\"memory_bytes\": 1073741824,", ""), "profile.memory_bytes is missing");
    row("zero memory", with("1073741824", "0"), "profile.memory_bytes");
    row("memory as text", with("1073741824", "\"80 GB\""), "profile.memory_bytes");
    row("a negative rate", with("1e14", "-1e14"), "profile.flops_per_second.half is -1");
    row("a zero bandwidth", with("\"bytes_per_second\": 1e11", "\"bytes_per_second\": 0"),
        "profile.link.bytes_per_second is 0");
    row("an infinite latency", with("1e-5", "1e9"), "profile.link.latency_seconds");
    row("no link", with("\"link\": {\"bytes_per_second\": 1e11, \"latency_seconds\": 1e-5},", ""),
        "profile.link is missing");
    row("a path as name", with("mine", "../mine"), "profile.name");
    row("an empty title", with("My device", ""), "profile.title");
    row("a line break", with("My device", "My\\ndevice"), "control characters");
    row("a source without address", with(", \"address\": \"https://example.org\"", ""),
        "profile.sources[0].address is missing");
    row("too long", kValid + std::string(1 << 20, ' '), "the limit is 1048576");
  }
  void refusesBadProfiles() {
    QFETCH(QString, text);
    QFETCH(QString, phrase);
    const auto profile = parseDeviceProfile(text.toStdString());
    QVERIFY(!profile.has_value());
    QCOMPARE(profile.error().code, ErrorCode::BadInput);
    QVERIFY2(QString::fromStdString(profile.error().message).contains(phrase), profile.error().message.c_str());
  }

  void shippedProfilesAreSound() {
    const std::filesystem::path folder = std::filesystem::path(CLEAVE_SOURCE_DIR) / "resources/devices";
    std::set<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      if (entry.path().extension() != ".json") continue;
      const auto text = readTextFile(entry.path(), 1 << 20);
      QVERIFY(text.has_value());
      const auto profile = parseDeviceProfile(*text);
      QVERIFY2(profile.has_value(), profile ? "" : profile.error().message.c_str());
      QCOMPARE(profile->name, entry.path().stem().string());
      QVERIFY2(!profile->sources.empty(), profile->name.c_str());
      QVERIFY(profile->halfFlopsPerSecond >= profile->floatFlopsPerSecond);
      names.insert(profile->name);
    }
    for (const char* name : {"h100", "h200", "a100-80gb", "a100-pcie", "l40s", "cpu"})
      QVERIFY2(names.contains(name), name);
  }
};

QTEST_APPLESS_MAIN(TestDeviceProfile)
#include "tst_device_profile.moc"
