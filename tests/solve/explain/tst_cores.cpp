#include "solve/explain/explain.h"
#include "tests/solve/explain/core_nodes.h"
#include "tests/support/llama_graph.h"
#include "tests/support/seeds.h"
#include "tests/support/solve_support.h"

#include <QTest>

using namespace cleave;
using namespace cleave::solve;

namespace {

/// Finds out if tiny Llama has a plan under a subset of the pins.
class Subsets {
 public:
  explicit Subsets(const Problem& problem) : m_problem(problem) {}

  bool hasPlan(std::uint32_t pins) {
    const auto [known, isNew] = m_known.try_emplace(pins, false);
    if (!isNew) return known->second;
    Problem some = with(pins);
    const auto result = solve::solve(some, Engine::Learning, *makeCountingSink());
    if (!result) qFatal("%s", result.error().message.c_str());
    return known->second = result->outcome == Outcome::Solved;
  }

  Problem with(std::uint32_t pins) const {
    Problem some = m_problem;
    some.pins.clear();
    for (std::size_t i = 0; i < m_problem.pins.size(); ++i) {
      if (pins >> i & 1) some.pins.push_back(m_problem.pins[i]);
    }
    return some;
  }

 private:
  const Problem& m_problem;
  std::map<std::uint32_t, bool> m_known;
};

/// Pins of layers and of values for a tiny Llama.
std::string anyPin(std::mt19937_64& random, const Graph& graph) {
  static constexpr std::array kLayers{"q_proj",    "k_proj",  "v_proj",    "o_proj",
                                      "gate_proj", "up_proj", "down_proj", "lm_head"};
  static constexpr std::array kForms{"column", "row", "replicated", "gather+column", "row+scatter"};
  const bool forbids = random() % 4 == 0;
  const auto join = forbids ? "!=" : "=";
  if (random() % 2 == 0)
    return fmt::format("*{}{}{}", kLayers[random() % kLayers.size()], join, kForms[random() % kForms.size()]);
  const auto& value = graph.values[random() % graph.values.size()];
  const std::size_t rank = value.type.shape.size();
  return fmt::format("{}{}{}", value.name, join,
                     rank == 0 || random() % 4 == 0 ? "R" : fmt::format("S({})", random() % rank));
}

}  // namespace

/// The pins of a core conflict, and each of them is needed: every subset of the pins is solved.
class TestCores : public QObject {
  Q_OBJECT
 private slots:
  void noSubsetOfACoreFails_data() {
    QTest::addColumn<int>("heads");
    QTest::addColumn<int>("kvHeads");
    QTest::addColumn<int>("ranks");
    QTest::newRow("4 KV heads on 8 ranks") << 8 << 4 << 8;
    QTest::newRow("2 KV heads on 4 ranks") << 4 << 2 << 4;
    QTest::newRow("3 heads on 2 ranks") << 3 << 3 << 2;
    QTest::newRow("4 heads on 4 ranks") << 4 << 4 << 4;
  }
  void noSubsetOfACoreFails() {
    QFETCH(int, heads);
    QFETCH(int, kvHeads);
    QFETCH(int, ranks);
    const test::Seeds seeds(100, 500);
    const auto graph = test::llamaGraph({.layers = 1, .hidden = heads * 16, .heads = heads, .kvHeads = kvHeads});
    int cores = 0, smaller = 0;
    for (const std::uint64_t seed : seeds) {
      std::mt19937_64 random(seed);
      Problem problem = *test::problemOf(graph, ranks);
      problem.context.candidateSet = random() % 2 == 0 ? rules::CandidateSet::Full : rules::CandidateSet::Optimum;
      problem.context.sequenceParallel = static_cast<rules::SequenceParallel>(random() % 3);
      for (std::size_t i = 2 + random() % 3; i > 0; --i) {
        problem.pins.push_back(*Pin::parse(anyPin(random, *graph)));
        if (!problem.checkPins()) problem.pins.pop_back();
      }
      Subsets subsets(problem);
      const std::uint32_t all = (1u << problem.pins.size()) - 1;
      const auto found = irreducibleCore(problem, Engine::Learning);
      QVERIFY2(found.has_value(), found ? "" : found.error().message.c_str());
      std::string about = fmt::format("seed {}", seed);
      for (const Pin& pin : problem.pins) about += ", " + pin.text;
      QVERIFY2(found->outcome != CoreOutcome::NotKnown, about.c_str());
      QVERIFY2((found->outcome == CoreOutcome::HasSolution) == subsets.hasPlan(all), about.c_str());
      if (found->outcome != CoreOutcome::HasCore) continue;
      ++cores;
      about += "\n" + found->core.text();
      std::uint32_t core = 0;
      for (const Constraint& constraint : found->core.constraints) {
        if (constraint.kind != ConstraintKind::Pin) continue;
        const auto at = std::find_if(problem.pins.begin(), problem.pins.end(),
                                     [&](const Pin& pin) { return pin.text == *constraint.lift; });
        QVERIFY2(at != problem.pins.end(), about.c_str());
        core |= 1u << (at - problem.pins.begin());
      }
      smaller += core != all;
      QVERIFY2(found->core.isIrreducible, about.c_str());
      QVERIFY2(!subsets.hasPlan(core), about.c_str());
      for (std::uint32_t part = (core - 1) & core; part != core; part = part == 0 ? core : (part - 1) & core) {
        QVERIFY2(subsets.hasPlan(part), fmt::format("the pins {:b} are enough: {}", part, about).c_str());
      }
      if (found->core.text().find(" more operators from ") != std::string::npos)
        continue;  // the middle of a chain is counted, not named
      const std::string wrong = test::wrongNodes(subsets.with(core), found->core);
      QVERIFY2(wrong.empty(), (wrong + ": " + about).c_str());
    }
    qInfo("%d cores, %d of them leave a pin out", cores, smaller);
    QVERIFY(!seeds.isFull() || (cores > 20 && smaller > 5));
  }

  /// The residual stream is split on the sequence at its start and replicated at its end. No block in between may
  /// change that, so the core has all of them.
  void aChainThroughManyBlocksIsFollowedToItsEnd() {
    constexpr std::int64_t kLayers = 120;
    const auto graph = test::llamaGraph({.layers = kLayers});
    Problem problem = *test::problemOf(graph, 2);
    problem.context.sequenceParallel = rules::SequenceParallel::On;
    for (const auto& [layer, placement] : {std::pair("*.0.self_attn.q_proj", "S(1)"), std::pair("lm_head", "R")}) {
      const PinTargets targets = targetsOf(*Pin::parse(fmt::format("{}=column", layer)), *graph);
      QCOMPARE(targets.layers.size(), 1u);
      const ValueId input = graph::layerShape(*graph, targets.layers.front())->input;
      problem.pins.push_back(*Pin::parse(fmt::format("{}={}", graph->value(input).name, placement)));
    }
    QVERIFY(problem.checkPins().has_value());
    const auto found = irreducibleCore(problem, Engine::Learning, {}, kDefaultWork / 4);
    QVERIFY2(found.has_value(), found ? "" : found.error().message.c_str());
    QCOMPARE(found->outcome, CoreOutcome::HasCore);
    QVERIFY2(found->core.isIrreducible, found->core.text().c_str());
    QVERIFY2(found->core.text().find(" more operators from ") != std::string::npos, found->core.text().c_str());
  }
};

QTEST_APPLESS_MAIN(TestCores)
#include "tst_cores.moc"
