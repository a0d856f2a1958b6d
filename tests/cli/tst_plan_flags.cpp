// Flags and options: the parser of the command line reads the command lines that the window prints.
#include "cli/plan_flags.h"
#include "tests/support/seeds.h"

#include <fmt/ranges.h>
#include <CLI/CLI.hpp>
#include <QRegularExpression>
#include <QTest>

#include <array>
#include <random>

using namespace cleave;
using namespace cleave::pipeline;

namespace {

/// Parses arguments as `cleave-cli plan` does.
Result<PlanSettings> parsed(std::vector<std::string> words) {
  cli::PlanFlags flags;
  CLI::App command;
  flags.addTo(command);
  std::reverse(words.begin(), words.end());  // CLI11 reads them from the back
  try {
    command.parse(words);
  } catch (const CLI::ParseError& error) {
    return fail(ErrorCode::BadUsage, "{}", error.what());
  }
  CLEAVE_TRY(PlanSettings read, flags.read());
  CLEAVE_TRY_VOID(read.settle());
  return read;
}

/// Reads them as a session file does.
Result<PlanSettings> fromFile(const std::vector<std::string>& words) {
  CLEAVE_TRY(PlanSettings read, readPlanArguments(words.front(), {words.begin() + 1, words.end()}));
  CLEAVE_TRY_VOID(read.settle());
  return read;
}

class Dice {
 public:
  explicit Dice(std::uint64_t seed) : m_random(seed) {}
  int upTo(int most) { return std::uniform_int_distribution<int>(0, most)(m_random); }
  bool coin() { return upTo(1) == 1; }
  template <class T>
  T oneOf(std::vector<T> choices) {
    return choices[static_cast<std::size_t>(upTo(static_cast<int>(choices.size()) - 1))];
  }
  std::vector<std::string> some(const std::vector<std::string>& choices) {
    std::vector<std::string> chosen;
    for (const std::string& choice : choices)
      if (coin()) chosen.push_back(choice);
    return chosen;
  }

 private:
  std::mt19937_64 m_random;
};

spec::InputSpec randomCapture(Dice& dice) {
  spec::InputSpec capture;
  if (dice.coin()) capture.batch = 1 + dice.upTo(63);
  if (dice.coin()) capture.sequence = 1 + dice.upTo(8191);
  if (dice.coin()) capture.logitsToKeep = dice.upTo(8);
  capture.mask = dice.coin();
  capture.tokenTypes = dice.coin();
  capture.loss = dice.coin();
  if (dice.coin())
    capture.dtype = dice.oneOf<graph::DType>(
        {graph::DType::Float32, graph::DType::BFloat16, graph::DType::Float16, graph::DType::Float64});
  capture.freezing.freeze = dice.some({"model.embed_tokens.*", "*.bias"});
  capture.freezing.trainOnly = dice.some({"*lora*", "lm_head.weight"});
  return capture;
}

spec::PlanSpec randomSolve(Dice& dice, const std::vector<solve::DeviceProfile>& devices) {
  spec::PlanSpec solve;
  solve.ranks = 1 + dice.upTo(63);
  solve.engine = dice.oneOf<solve::Engine>({solve::Engine::Optimal, solve::Engine::Reference, solve::Engine::Learning});
  if (dice.coin())
    solve.candidateSet = dice.oneOf<rules::CandidateSet>({rules::CandidateSet::Optimum, rules::CandidateSet::Full});
  solve.sequenceParallel = dice.oneOf<rules::SequenceParallel>(
      {rules::SequenceParallel::Off, rules::SequenceParallel::On, rules::SequenceParallel::Auto});
  for (const std::string& pin : dice.some(
           {"lm_head=row", "model.layers.*.mlp.up_proj=column", "linear_3!=S(1)", "view_6=S(1:2,x2)", "q_proj=R"}))
    solve.pins.push_back(*solve::Pin::parse(pin));
  solve.rulesOff = dice.some({"*softmax*", "aten::mul.Tensor", "aten::view"});
  solve.redistributable = dice.some({"add_3", "linear_*", "it's odd"});
  solve.cost.profile = dice.oneOf(devices);
  solve.cost.isTraining = dice.coin();
  solve.cost.optimizer = dice.oneOf<solve::Optimizer>(
      {solve::Optimizer::None, solve::Optimizer::Sgd, solve::Optimizer::Momentum, solve::Optimizer::AdamW});
  if (dice.coin()) solve.cost.memoryBudget = (1ll << dice.upTo(40)) + dice.upTo(1000);
  if (dice.coin()) solve.cost.slackPercent = dice.upTo(100'000) / 1000.0;
  solve.cost.checkpointsActivations = solve.cost.isTraining && dice.coin();
  solve.dropout = solve.cost.isTraining && dice.coin();
  solve.seed = static_cast<std::uint64_t>(dice.upTo(1 << 30)) << dice.upTo(30);
  return solve;
}

}  // namespace

class TestPlanFlags : public QObject {
  Q_OBJECT
 private slots:
  void initTestCase() { qputenv("CLEAVE_RESOURCES", CLEAVE_SOURCE_DIR "/resources"); }

  void settingsComeBackFromTheirArguments() {
    const auto devices = deviceProfiles();
    QVERIFY(devices.has_value());
    for (const std::uint64_t seed : test::Seeds(1'000)) {
      Dice dice(seed);
      const spec::InputSpec capture = randomCapture(dice);
      const spec::PlanSpec solve = randomSolve(dice, *devices);
      PlanSettings asked = PlanSettings::of("/models/a b", capture, solve);
      asked.input.dropout = solve.dropsOut();
      const auto words = argumentsOf(asked);
      const std::string line = fmt::format("seed {}: {}", seed, fmt::join(words, " "));
      for (const auto& read : {parsed(words), fromFile(words)}) {
        QVERIFY2(read.has_value(), line.c_str());
        QVERIFY2(read->model == asked.model && read->device == asked.device, line.c_str());
        QVERIFY2(read->input == asked.input, line.c_str());
        QVERIFY2(read->plan == asked.plan, line.c_str());
      }
    }
  }

  /// Each row of the table reads what it writes, and clears, copies and compares its own field alone.
  void everyRowIsAboutItsOwnField() {
    const auto devices = deviceProfiles();
    QVERIFY(devices.has_value());
    for (const std::uint64_t seed : test::Seeds(200)) {
      Dice dice(seed);
      const auto random = [&] { return PlanSettings::of("m", randomCapture(dice), randomSolve(dice, *devices)); };
      const PlanSettings a = random(), b = random();
      PlanSettings copied = a;
      for (const auto& row : planSettings()) {
        const std::string line = fmt::format("seed {}: {}", seed, row.flag);
        PlanSettings other = a;
        row.copy(other, b);
        QVERIFY2(row.isSame(other, b), line.c_str());
        for (const auto& rest : planSettings())
          if (&rest != &row) QVERIFY2(rest.isSame(other, a), line.c_str());
        row.copy(copied, b);
        PlanSettings read;
        for (const std::string& text : row.texts(a)) QVERIFY2(row.read(read, text).has_value(), line.c_str());
        QVERIFY2(row.texts(read) == row.texts(a), line.c_str());
      }
      copied.plan.cost.profile = b.plan.cost.profile;  // the row has its name alone
      QVERIFY2(copied.input == b.input && copied.plan == b.plan, qPrintable(QString::number(seed)));
    }
  }

  void wrongValuesAreNamedWithTheirFlag_data() {
    QTest::addColumn<QString>("flag");
    QTest::addColumn<QString>("text");
    QTest::addColumn<QString>("says");
    const auto row = [](const char* flag, const char* text, const char* says) {
      QTest::newRow(flag) << flag << text << says;
    };
    row("--mask", "perhaps", "--mask is \"perhaps\": write on or off.");
    row("--batch", "two", "--batch is \"two\": write a whole number from 1 to");
    row("--size", "s70", "--size is \"s70\": write a symbol and its size, such as s70=16.");
    row("--slack", "-1", "--slack is \"-1\": write a percentage from 0 to 10000, such as 0.5.");
    row("--memory-budget", "much", "--memory-budget is \"much\": write a size such as 40GiB");
    row("--engine", "quantum", "--engine is \"quantum\": write optimal, reference or learning.");
    row("--dtype", "f7", "--dtype is \"f7\": write float32, bfloat16, float16 or float64.");
    row("--dropout", "on", "--dropout on applies to training");
  }
  void wrongValuesAreNamedWithTheirFlag() {
    QFETCH(QString, flag);
    QFETCH(QString, text);
    QFETCH(QString, says);
    const std::vector<std::string> words{"m", flag.toStdString() + "=" + text.toStdString()};
    for (const auto& read : {parsed(words), fromFile(words)}) {
      QVERIFY(!read);
      QCOMPARE(read.error().code, ErrorCode::BadUsage);
      QVERIFY2(QString::fromStdString(read.error().message).startsWith(says), read.error().message.c_str());
    }
  }

  void defaultsNeedNoArguments() {
    spec::PlanSpec solve;
    solve.cost.profile = *deviceProfile(std::string(kDefaultDevice));
    QCOMPARE(argumentsOf(PlanSettings::of("m", {}, solve)), (std::vector<std::string>{"m", "--ranks", "2"}));
  }

  /// The help lists all words that a pin accepts, and no others.
  void theHelpNamesEveryWordOfPins() {
    cli::PlanFlags flags;
    CLI::App command;
    flags.addTo(command);
    const QString help = QString::fromStdString(command.get_option("--pin")->get_description());
    const auto list = QRegularExpression(R"(LAYER=STRATEGY \(([^)]*)\))").match(help);
    QVERIFY2(list.hasMatch(), qPrintable(help));
    const QStringList named = list.captured(1).split(", ");
    for (const QString& word : named) QVERIFY2(solve::Pin::parse("l==" + word.toStdString()), qPrintable(word));
    for (int s = 0; s <= static_cast<int>(rules::Strategy::InExpert); ++s) {
      const auto strategy = static_cast<rules::Strategy>(s);
      for (const std::string_view word : std::array{rules::toText(strategy), rules::axisOf(strategy)}) {
        if (!solve::Pin::parse(fmt::format("l={}", word))) continue;
        QVERIFY2(named.contains(QString::fromStdString(std::string(word))), qPrintable(help));
      }
    }
    QVERIFY(named.contains("in-expert"));
  }
};

QTEST_APPLESS_MAIN(TestPlanFlags)
#include "tst_plan_flags.moc"
