/// Profiles from the measurements of ranks: the figures that count, the measurements that are refused, and the JSON of
/// the profile. No rank runs.
#include "base/json.h"
#include "pipeline/calibrate/calibrate.h"
#include "pipeline/memory/rank_memory.h"
#include "solve/problem/device_profile.h"

#include <nlohmann/json.hpp>

#include <QTest>

using namespace cleave;
using namespace cleave::pipeline;
using protocol::Measured;
using protocol::Measurement;

namespace {

using Measurements = std::vector<Measurement>;

Measurement taking(Measured what, std::int64_t amount, double seconds) {
  return {what, amount, 1, 9, seconds, seconds * 0.9, seconds * 1.5};
}

/// The measurements of one of two ranks with a link of 20 µs and 2 GB/s.
Measurements sound() {
  Measurements all{taking(Measured::Half, 1'000'000'000, 1e-2), taking(Measured::Half, 4'000'000'000, 2e-2),
                   taking(Measured::Float32, 1'000'000'000, 1e-2), taking(Measured::Float64, 1'000'000'000, 2e-2),
                   taking(Measured::Memory, 100'000'000, 1e-2)};
  for (const std::int64_t bytes : {1 << 10, 1 << 14, 1 << 24}) {
    const auto half = static_cast<double>(bytes) / 2 / 2e9;
    all.push_back(taking(Measured::AllReduce, bytes, 2e-5 + 2 * half));
    all.push_back(taking(Measured::AllGather, bytes, 2e-5 + half));
    all.push_back(taking(Measured::ReduceScatter, bytes, 2e-5 + half));
  }
  return all;
}

CalibrationFacts facts(std::string device = "A processor") {
  return {2, launch::Backend::Gloo, std::move(device), "2026-03-31", std::int64_t{4} << 30};
}

Calibration made(const std::vector<Measurements>& byRank, CalibrationFacts of = facts()) {
  auto result = calibrationOf(std::move(of), byRank);
  if (!result) qFatal("%s", result.error().message.c_str());
  return *std::move(result);
}

bool isNear(double found, double wanted) { return std::abs(found / wanted - 1) < 1e-9; }

}  // namespace

class TestCalibration : public QObject {
  Q_OBJECT
 private slots:
  void measurementsBecomeAProfile() {
    const auto profile = profileOf(made({sound(), sound()}));
    QCOMPARE(profile.name, std::string("measured-gloo-2"));
    QCOMPARE(profile.title, std::string("2 ranks on A processor, Gloo, measured on 2026-03-31"));
    QCOMPARE(profile.memoryBytes, std::int64_t{4} << 30);
    QVERIFY(isNear(profile.halfFlopsPerSecond, 2e11));  // the better of two sizes
    QVERIFY(isNear(profile.floatFlopsPerSecond, 1e11));
    QVERIFY(isNear(profile.doubleFlopsPerSecond, 5e10));
    QVERIFY(isNear(profile.memoryBytesPerSecond, 1e10));
    QVERIFY(isNear(profile.linkLatencySeconds, 2e-5));
    QVERIFY(isNear(profile.linkBytesPerSecond, 2e9));
    QCOMPARE(profile.sources.size(), std::size_t(3));
    for (const auto& source : profile.sources)
      QCOMPARE(source.address, std::string("cleave-cli calibrate --ranks 2 --backend gloo"));
  }

  void allWaitForTheSlowestRank() {
    auto slow = sound();
    for (Measurement& each : slow) {
      for (double* time : {&each.median, &each.lowest, &each.highest}) *time *= 2;
    }
    for (const auto& ranks : {std::vector{sound(), slow}, std::vector{slow, sound()}}) {
      const Calibration calibration = made(ranks);
      QVERIFY(isNear(calibration.float32.perSecond, 5e10));
      QVERIFY(isNear(calibration.float32.highest, 5e10 / 0.9));
      QVERIFY(isNear(calibration.link.latencySeconds, 4e-5));
      QVERIFY(isNear(calibration.link.bytesPerSecond, 1e9));
    }
  }

  void whatIsWrittenIsAProfile_data() {
    QTest::addColumn<QByteArray>("device");
    QTest::newRow("plain") << QByteArray("AMD EPYC 9654 96-Core Processor");
    QTest::newRow("nothing") << QByteArray();
    QTest::newRow("control characters") << QByteArray("A\tB\nC\x7f\x01");
    QTest::newRow("no UTF-8") << QByteArray("\xff\xfe\xc3");
    QTest::newRow("quotes") << QByteArray("\"x\\");
    QTest::newRow("long") << QByteArray(100'000, 'x');
  }
  void whatIsWrittenIsAProfile() {
    QFETCH(QByteArray, device);
    const auto profile = profileOf(made({sound(), sound()}, facts(device.toStdString())));
    const auto read = solve::parseDeviceProfile(jsonText(solve::toJson(profile), 2));
    QVERIFY2(read, read ? "" : read.error().message.c_str());
    QVERIFY(*read == profile);
  }

  void theTableHasTheSpreadAndTheWorstOfTheFit() {
    auto odd = sound();
    for (double* time : {&odd.back().median, &odd.back().lowest, &odd.back().highest}) *time *= 3;
    const std::string text = toText(made({odd, odd}));
    for (const char* phrase :
         {"2 ranks on A processor, backend gloo, 1 thread each", "products in float32      100 GFLOP/s",
          "66.7 GFLOP/s to 111 GFLOP/s in 9 repeats of 1.00 GFLOP", " 10.0 GB/s   6.67 GB/s to 11.1 GB/s", " 4 GiB\n",
          "16 MiB", "reduce_scatter of 16 MiB took 12.6 ms"})
      QVERIFY2(text.find(phrase) != std::string::npos, (text + "\nlacks: " + phrase).c_str());
    const auto percent = fmt::format("argest error {:.0f} %", 100 * made({odd, odd}).link.worstResidual);
    QVERIFY2(text.find(percent) != std::string::npos, text.c_str());
    QVERIFY(profileOf(made({odd, odd})).sources[1].what.find(percent) != std::string::npos);
    constexpr std::string_view kMuch = "Latency and bandwidth do not explain all times";
    QVERIFY(text.find(kMuch) != std::string::npos);
    QVERIFY(toText(made({sound(), sound()})).find(kMuch) == std::string::npos);
  }

  void refusesInvalidMeasurements_data() {
    QTest::addColumn<QString>("change");
    QTest::addColumn<QByteArray>("phrase");
    QTest::newRow("one size less") << "shorter" << QByteArray("Rank 1 measured 13 sizes, but rank 0 measured 14.");
    QTest::newRow("another size") << "amount" << QByteArray("Rank 1 measured half of 7, but rank 0 measured half of");
    QTest::newRow("another kind") << "kind" << QByteArray("Rank 1 measured memory of");
    QTest::newRow("not a number") << "nan" << QByteArray("an invalid measurement");
    QTest::newRow("infinite") << "infinite" << QByteArray("an invalid measurement");
    QTest::newRow("no time") << "zero" << QByteArray("an invalid measurement");
    QTest::newRow("negative") << "negative" << QByteArray("an invalid measurement");
    QTest::newRow("out of order") << "order" << QByteArray("an invalid measurement");
    QTest::newRow("never repeated") << "repeats" << QByteArray("an invalid measurement");
  }
  void refusesInvalidMeasurements() {
    QFETCH(QString, change);
    QFETCH(QByteArray, phrase);
    auto other = sound();
    Measurement& first = other.front();
    if (change == "shorter") other.pop_back();
    if (change == "amount") first.amount = 7;
    if (change == "kind") first.what = Measured::Memory;
    if (change == "nan") first.median = std::nan("");
    if (change == "infinite") first.highest = std::numeric_limits<double>::infinity();
    if (change == "zero") first.lowest = 0;
    if (change == "negative") first.lowest = -1;
    if (change == "order") first.lowest = 2 * first.median;
    if (change == "repeats") first.repeats = 0;
    const auto result = calibrationOf(facts(), {sound(), other});
    QVERIFY(!result);
    QCOMPARE(result.error().code, ErrorCode::RankFailed);
    QVERIFY2(result.error().message.find(phrase.toStdString()) != std::string::npos, result.error().message.c_str());
  }

  void refusesAMissingKind() {
    for (const Measured kind : {Measured::Half, Measured::Float32, Measured::Float64, Measured::Memory,
                                Measured::AllReduce, Measured::AllGather, Measured::ReduceScatter}) {
      auto few = sound();
      std::erase_if(few, [&](const Measurement& each) { return each.what == kind; });
      const auto result = calibrationOf(facts(), {few, few});
      QVERIFY(!result);
      const auto phrase = fmt::format("did not measure {}.", protocol::toText(kind));
      QVERIFY2(result.error().message.find(phrase) != std::string::npos, result.error().message.c_str());
    }
    QVERIFY(!calibrationOf(facts(), {}));
    QVERIFY(!calibrationOf(facts(), {{}, {}}));
  }

  void ranksThatCannotBeAreRefusedBeforeAnyStarts() {
    for (const int ranks : {-1, 0, 1, 1025}) {
      const auto result = calibrate({ranks, launch::Backend::Gloo, "/no/such/program"}, [](const auto&) {});
      QVERIFY(!result);
      QCOMPARE(result.error().code, ErrorCode::BadUsage);
      const bool saysWhy = result.error().message.find("Use at least 2 ranks") != std::string::npos;
      QCOMPARE(saysWhy, ranks == 1);
    }
  }

  /// The memory for all programs and for LibTorch in each process is within the available memory.
  void roomIsShared() {
    for (const int ranks : {1, 2, 8}) {
      const std::int64_t available = std::int64_t{64} << 30, room = roomForProgram(available, ranks);
      QVERIFY(room > 0 && ranks * room < available);
      QVERIFY(ranks * room > available / 2);
      QCOMPARE(roomForProgram(1 << 20, ranks), 0);
      QCOMPARE(roomForProgram(0, ranks), 0);
    }
  }
};

QTEST_GUILESS_MAIN(TestCalibration)
#include "tst_calibration.moc"
