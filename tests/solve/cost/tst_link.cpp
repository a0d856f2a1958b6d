/// The fit of a link to measured collectives. It recovers the link from exact and noisy times, and refuses measurements
/// from which no link follows.
#include "solve/cost/link.h"
#include "tests/support/seeds.h"

#include <QTest>

#include <cmath>
#include <random>

using namespace cleave;
using namespace cleave::solve;
using rules::CollectiveKind;

namespace {

constexpr std::array kKinds{CollectiveKind::AllReduce, CollectiveKind::AllGather, CollectiveKind::ReduceScatter};

/// Times of collectives of 1 KiB to 16 MiB on a link.
std::vector<CollectiveTime> timesOn(const LinkFit& link, int ranks) {
  std::vector<CollectiveTime> times;
  for (const CollectiveKind kind : kKinds) {
    for (std::int64_t bytes = 1 << 10; bytes <= 16 << 20; bytes *= 4)
      times.push_back({kind, bytes, link.seconds(kind, bytes, ranks)});
  }
  return times;
}

struct RandomLink {
  explicit RandomLink(std::uint64_t seed) : random(seed) {
    link.latencySeconds = std::pow(10, uniform(-6, -3));
    link.bytesPerSecond = std::pow(10, uniform(8, 11.5));
    ranks = static_cast<int>(2 + random() % 15);
  }
  double uniform(double low, double high) { return std::uniform_real_distribution(low, high)(random); }
  std::mt19937_64 random;
  LinkFit link;
  int ranks = 2;
};

bool isNear(double found, double wanted, double relative) { return std::abs(found - wanted) <= relative * wanted; }

}  // namespace

class TestLink : public QObject {
  Q_OBJECT
 private slots:
  void sharesAreThoseOfARing() {
    QCOMPARE(ringShare(CollectiveKind::AllReduce, 2), 1.0);
    QCOMPARE(ringShare(CollectiveKind::AllReduce, 4), 1.5);
    QCOMPARE(ringShare(CollectiveKind::AllGather, 4), 0.75);
    QCOMPARE(ringShare(CollectiveKind::ReduceScatter, 2), 0.5);
    QCOMPARE(ringShare(CollectiveKind::AllReduce, 1), 0.0);
  }

  void findsTheLinkFromExactTimes() {
    for (const std::uint64_t seed : test::Seeds(500)) {
      const RandomLink made(seed);
      const auto found = fitLink(timesOn(made.link, made.ranks), made.ranks);
      QVERIFY2(found, found ? "" : found.error().message.c_str());
      QVERIFY(isNear(found->latencySeconds, made.link.latencySeconds, 1e-6));
      QVERIFY(isNear(found->bytesPerSecond, made.link.bytesPerSecond, 1e-6));
      QVERIFY(found->worstResidual < 1e-6);
    }
  }

  /// Every measurement has an error of up to 10 %. The prediction of each collective has an error of little more.
  void findsTheLinkInNoise() {
    constexpr double kNoise = 0.1;
    for (const std::uint64_t seed : test::Seeds(500)) {
      RandomLink made(seed);
      auto times = timesOn(made.link, made.ranks);
      for (CollectiveTime& time : times) time.seconds *= made.uniform(1 - kNoise, 1 + kNoise);
      const auto found = fitLink(times, made.ranks);
      QVERIFY2(found, found ? "" : found.error().message.c_str());
      // On a slow link even 1 KiB hardly shows α, and on a fast one 16 MiB hardly shows β. Only the sum is known.
      for (const CollectiveTime& time : timesOn(made.link, made.ranks))
        QVERIFY(isNear(found->seconds(time.kind, time.bytes, made.ranks), time.seconds, 2 * kNoise));
      QVERIFY(found->worstResidual < 0.4);
      for (const CollectiveTime& time : times) {
        const double off = std::abs(found->seconds(time.kind, time.bytes, made.ranks) - time.seconds) / time.seconds;
        QVERIFY(off <= found->worstResidual);
      }
      const CollectiveTime& worst = times[found->worst];
      QVERIFY(isNear(std::abs(found->seconds(worst.kind, worst.bytes, made.ranks) - worst.seconds) / worst.seconds,
                     found->worstResidual, 1e-9));
    }
  }

  /// No other link near the found one has a smaller sum of squared relative errors.
  void isTheLeastSumOfSquares() {
    for (const std::uint64_t seed : test::Seeds(200)) {
      RandomLink made(seed);
      auto times = timesOn(made.link, made.ranks);
      for (CollectiveTime& time : times) time.seconds *= made.uniform(0.3, 3);
      const auto found = fitLink(times, made.ranks);
      if (!found) continue;  // noise beyond any bandwidth
      const auto squares = [&](const LinkFit& link) {
        double sum = 0;
        for (const CollectiveTime& time : times)
          sum += std::pow(link.seconds(time.kind, time.bytes, made.ranks) / time.seconds - 1, 2);
        return sum;
      };
      const double least = squares(*found);
      for (const double alpha : {0.99, 1.0, 1.01}) {
        for (const double bandwidth : {0.99, 1.0, 1.01}) {
          const LinkFit other{std::max(kLeastLatencySeconds, found->latencySeconds * alpha),
                              found->bytesPerSecond * bandwidth, 0, 0};
          QVERIFY(squares(other) >= least * (1 - 1e-9));
        }
      }
    }
  }

  /// Times that grow faster than the sizes would have a negative latency.
  void latencyIsNeverNegative() {
    std::vector<CollectiveTime> times;
    for (std::int64_t bytes = 1 << 10; bytes <= 16 << 20; bytes *= 4)
      times.push_back({CollectiveKind::AllReduce, bytes, 1e-12 * std::pow(static_cast<double>(bytes), 1.3)});
    const auto found = fitLink(times, 2);
    QVERIFY2(found, found ? "" : found.error().message.c_str());
    QCOMPARE(found->latencySeconds, kLeastLatencySeconds);
    QVERIFY(found->bytesPerSecond > 0);
    QVERIFY(found->worstResidual > 0.1);
  }

  void refusesMeasurementsWithoutInformation_data() {
    QTest::addColumn<int>("ranks");
    QTest::addColumn<QList<double>>("seconds");  // of 1 KiB, 4 KiB, ...; the last twice
    QTest::addColumn<QByteArray>("phrase");
    QTest::addColumn<int>("code");
    const auto row = [](const char* name, int ranks, QList<double> seconds, const char* phrase, ErrorCode code) {
      QTest::newRow(name) << ranks << seconds << QByteArray(phrase) << exitCode(code);
    };
    constexpr double kInfinite = std::numeric_limits<double>::infinity();
    row("one rank", 1, {1e-5, 2e-5}, "at least 2 ranks", ErrorCode::BadInput);
    row("nothing", 2, {}, "at least two sizes", ErrorCode::BadInput);
    row("one size", 2, {1e-5}, "at least two sizes", ErrorCode::BadInput);
    row("no time", 2, {1e-5, 0}, "must be positive", ErrorCode::BadInput);
    row("a negative time", 2, {-1e-5, 2e-5}, "must be positive", ErrorCode::BadInput);
    row("no number", 2, {1e-5, std::nan("")}, "must be positive", ErrorCode::BadInput);
    row("an infinite time", 2, {1e-5, kInfinite}, "must be positive", ErrorCode::BadInput);
    row("no longer", 2, {1e-5, 1e-5}, "did not take longer", ErrorCode::Environment);
    row("shorter", 2, {3e-5, 2e-5, 1e-5}, "did not take longer", ErrorCode::Environment);
  }
  void refusesMeasurementsWithoutInformation() {
    QFETCH(int, ranks);
    QFETCH(QList<double>, seconds);
    QFETCH(QByteArray, phrase);
    QFETCH(int, code);
    std::vector<CollectiveTime> times;
    std::int64_t bytes = 1 << 10;
    for (const double each : seconds) {
      times.push_back({CollectiveKind::AllGather, bytes, each});
      bytes *= 4;
    }
    if (!times.empty()) times.push_back(times.back());
    const auto found = fitLink(times, ranks);
    QVERIFY(!found);
    QCOMPARE(exitCode(found.error().code), code);
    QVERIFY2(found.error().message.find(phrase.toStdString()) != std::string::npos, found.error().message.c_str());
  }

  void refusesSizesOfZero() {
    const std::vector<CollectiveTime> times{{CollectiveKind::AllReduce, 0, 1e-5}, {CollectiveKind::AllReduce, 8, 2e-5}};
    QVERIFY(!fitLink(times, 2));
  }
};

QTEST_APPLESS_MAIN(TestLink)
#include "tst_link.moc"
