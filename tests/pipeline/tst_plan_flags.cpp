// Flags and options: the parser of the command line reads the command lines that the window prints.
#include "pipeline/session/plan_flags.h"
#include "tests/support/seeds.h"

#include <fmt/ranges.h>
#include <CLI/CLI.hpp>
#include <QtTest>

#include <array>
#include <random>

using namespace cleave;
using namespace cleave::pipeline;

namespace {

/// Parses arguments as `cleave-cli plan` does.
Result<PlanFlags> parsed(std::vector<std::string> words) {
  PlanFlags flags;
  CLI::App command;
  flags.addTo(command);
  std::reverse(words.begin(), words.end());  // CLI11 reads them from the back
  try {
    command.parse(words);
  } catch (const CLI::ParseError& error) {
    return fail(ErrorCode::BadUsage, "{}", error.what());
  }
  return flags;
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

torch_capture::CaptureOptions randomCapture(Dice& dice) {
  torch_capture::CaptureOptions capture;
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

SolveOptions randomSolve(Dice& dice, const std::vector<solve::DeviceProfile>& devices) {
  SolveOptions solve;
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
  solve.trainsWithDropout = dice.coin();
  solve.seed = static_cast<std::uint64_t>(dice.upTo(1 << 30)) << dice.upTo(30);
  return solve;
}

std::vector<std::string> textsOf(const std::vector<solve::Pin>& pins) {
  std::vector<std::string> texts;
  for (const solve::Pin& pin : pins) texts.push_back(pin.text);
  return texts;
}

}  // namespace

class TestPlanFlags : public QObject {
  Q_OBJECT
 private slots:
  void initTestCase() { qputenv("CLEAVE_RESOURCES", CLEAVE_SOURCE_DIR "/resources"); }

  void optionsComeBackFromTheirArguments() {
    const auto devices = deviceProfiles();
    QVERIFY(devices.has_value());
    for (const std::uint64_t seed : test::Seeds(1'000)) {
      Dice dice(seed);
      const torch_capture::CaptureOptions capture = randomCapture(dice);
      const SolveOptions solve = randomSolve(dice, *devices);
      const auto words = PlanFlags::of("/models/a b", capture, solve).arguments();
      const std::string line = fmt::format("seed {}: {}", seed, fmt::join(words, " "));
      const auto flags = parsed(words);
      QVERIFY2(flags.has_value(), line.c_str());
      const auto captured = flags->captureOptions();
      const auto solved = flags->solveOptions();
      QVERIFY2(captured && solved, line.c_str());
      QVERIFY2(flags->model == "/models/a b", line.c_str());
      QVERIFY2(captured->batch == capture.batch && captured->sequence == capture.sequence &&
                   captured->mask == capture.mask && captured->tokenTypes == capture.tokenTypes &&
                   captured->loss == capture.loss && captured->logitsToKeep == capture.logitsToKeep &&
                   captured->dtype == capture.dtype && captured->dropout == solve.dropsOut() &&
                   captured->freezing == capture.freezing,
               line.c_str());
      QVERIFY2(solved->ranks == solve.ranks && solved->engine == solve.engine &&
                   solved->candidateSet == solve.candidateSet && solved->sequenceParallel == solve.sequenceParallel &&
                   solved->seed == solve.seed && solved->dropsOut() == solve.dropsOut(),
               line.c_str());
      QVERIFY2(textsOf(solved->pins) == textsOf(solve.pins) && solved->rulesOff == solve.rulesOff &&
                   solved->redistributable == solve.redistributable,
               line.c_str());
      QVERIFY2(solved->cost == solve.cost, line.c_str());
    }
  }

  void defaultsNeedNoArguments() {
    SolveOptions solve;
    solve.cost.profile = *deviceProfile(std::string(kDefaultDevice));
    QCOMPARE(PlanFlags::of("m", {}, solve).arguments(), (std::vector<std::string>{"m", "--ranks", "2"}));
  }

  /// The help lists all words that a pin accepts, and no others.
  void theHelpNamesEveryWordOfPins() {
    PlanFlags flags;
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
