/// The tables of a run's settings and of a rank's options: what they write, they read.
#include "pipeline/settings/run_settings.h"
#include "spec/rank/rank_settings.h"
#include "tests/support/seeds.h"

#include <fmt/ranges.h>
#include <QTest>

#include <random>

using namespace cleave;

namespace {

constexpr const char* kExistingFile = CLEAVE_SOURCE_DIR "/README.md";  ///< the tables reject files that are missing

class Dice {
 public:
  explicit Dice(std::uint64_t seed) : m_random(seed) {}
  std::int64_t upTo(std::int64_t most) { return std::uniform_int_distribution<std::int64_t>(0, most)(m_random); }
  bool coin() { return upTo(1) == 1; }
  double number() { return static_cast<double>(upTo(1 << 20)) / 4096; }

 private:
  std::mt19937_64 m_random;
};

program::Training randomTraining(Dice& dice) {
  program::Training training;
  training.steps = 1 + dice.upTo(99);
  training.learningRate = dice.number();
  training.weightDecay = dice.number();
  if (dice.coin()) training.clipNorm = dice.number();
  training.accumulate = 1 + dice.upTo(7);
  return training;
}

spec::RunSpec randomRun(Dice& dice, spec::RunMode mode) {
  spec::RunSpec run;
  if (dice.coin()) run.input = kExistingFile;
  if (dice.coin()) run.rtol = dice.number();
  if (dice.coin()) run.atol = dice.number();
  if (dice.coin()) run.backend = launch::Backend::Nccl;
  run.skipWeights = dice.coin();
  run.ignoreMemory = dice.coin();
  run.silence = std::chrono::milliseconds(1000 + dice.upTo(100'000));
  if (dice.coin()) run.collectiveTimeout = std::chrono::seconds(1 + dice.upTo(80'000));
  run.bisects = mode == spec::RunMode::Bisect;
  if (run.bisects) {
    if (dice.coin()) run.against = kExistingFile;
    return run;
  }
  if (dice.coin()) run.output = "it's an output.safetensors";
  run.compareUnsplit = dice.coin();
  if (mode == spec::RunMode::Train) run.training = randomTraining(dice);
  if (mode == spec::RunMode::Generate) {
    run.generation.tokens = 1 + dice.upTo(99);
    if (dice.coin()) run.prompt = "1,2;3,4";
    run.ignoresEndToken = dice.coin();
  }
  if (mode == spec::RunMode::Shapes) {
    run.shapes = {{1 + dice.upTo(7), 1 + dice.upTo(63)}, {2, 16}};
    run.padsToPlanned = dice.coin();
  }
  return run;
}

spec::RankSpec randomRank(Dice& dice) {
  spec::RankSpec rank;
  if (dice.coin()) rank.then = {{"a.json"}, {"b.json", {1 + dice.upTo(7), 1 + dice.upTo(63)}}};
  if (dice.coin()) rank.backend = "nccl";
  rank.replicas = 1 + static_cast<int>(dice.upTo(7));
  if (dice.coin()) rank.inputFile = "in.safetensors";
  if (dice.coin()) rank.watchFile = "watch.json", rank.watchedFile = "watched";
  rank.collectiveTimeout = std::chrono::seconds(1 + dice.upTo(80'000));
  rank.passes = 1 + static_cast<int>(dice.upTo(9));
  rank.isQuiet = dice.coin();
  rank.recordsTimes = dice.coin();
  if (dice.coin()) rank.training = randomTraining(dice);
  if (dice.coin()) {
    rank.generation = {1 + dice.upTo(99), {dice.upTo(99), dice.upTo(99)}, dice.upTo(99)};
    rank.decodeFile = kExistingFile;
  }
  return rank;
}

template <class Request>
void comesBack(const settings::SettingRows<Request>& rows, const Request& asked, Request read, std::uint64_t seed) {
  const auto words = settings::argumentsOf(rows, asked);
  const std::string line = fmt::format("seed {}: {}", seed, fmt::join(words, " "));
  const auto done = settings::readArguments(rows, words, read);
  QVERIFY2(done.has_value(), done ? "" : (line + ": " + done.error().message).c_str());
  QVERIFY2(read == asked, line.c_str());
}

}  // namespace

class TestRunSettings : public QObject {
  Q_OBJECT
 private slots:
  void everyModeReadsWhatItWrites_data() {
    QTest::addColumn<int>("mode");
    for (const spec::RunMode mode : spec::kRunModes)
      QTest::addRow("%s", std::string(spec::toText(mode)).c_str()) << static_cast<int>(mode);
  }
  void everyModeReadsWhatItWrites() {
    QFETCH(int, mode);
    const auto asked = static_cast<spec::RunMode>(mode);
    for (const std::uint64_t seed : test::Seeds(300)) {
      Dice dice(seed);
      const spec::RunSpec run = randomRun(dice, asked);
      QCOMPARE(run.mode(), asked);
      spec::RunSpec byCommand;
      byCommand.bisects = run.bisects;  // the command, not a flag
      comesBack(pipeline::runSettings(asked), run, byCommand, seed);
    }
  }

  void ranksReadWhatTheLauncherWrites() {
    for (const std::uint64_t seed : test::Seeds(300)) {
      Dice dice(seed);
      comesBack(spec::rankSettings(), randomRank(dice), {}, seed);
    }
  }

  void valuesOutOfRangeAreRefused_data() {
    QTest::addColumn<QString>("word");
    QTest::addColumn<QString>("says");
    const auto row = [](const char* word, const char* says) { QTest::newRow(word) << word << says; };
    row("--steps=0", "--steps is \"0\": write a whole number from 1 to 100000.");
    row("--silence=0.5", "--silence is \"0.5\": write seconds from 1 to 86400.");
    row("--rtol=inf", "--rtol is \"inf\": write a finite number from 0.");
    row("--shapes=2x", "--shapes is \"2x\": write BATCHxSEQUENCE, several separated by commas, e.g. 2x16,1x64.");
    row("--shapes=", "--shapes is \"\": write BATCHxSEQUENCE");
    row("--expect=/no/such/file", "--expect is \"/no/such/file\": there is no such file.");
    row("--steps", "--steps has no value.");
    row("--nothing=1", "\"--nothing=1\" is not a flag");
    row("7", "\"7\" is not a flag");
  }
  void valuesOutOfRangeAreRefused() {
    QFETCH(QString, word);
    QFETCH(QString, says);
    spec::RunSpec run;
    const auto read = settings::readArguments(pipeline::runSettings(spec::RunMode::Train), {word.toStdString()}, run);
    QVERIFY(!read);
    QCOMPARE(read.error().code, ErrorCode::BadUsage);
    QVERIFY2(QString::fromStdString(read.error().message).startsWith(says), read.error().message.c_str());
  }
};

QTEST_APPLESS_MAIN(TestRunSettings)
#include "tst_run_settings.moc"
