#pragma once
/// Shared by the tests of verdicts: a device with round numbers, plans of an engine, random small models with random
/// demands, and the fastest plan that splits a layer.
#include "plan/build/plan_request.h"
#include "plan/replication/choice_splits.h"
#include "tests/support/llama_graph.h"
#include "tests/support/plan_fixture.h"

#include <random>

namespace cleave::plan::testing {

using solve::Engine;

inline constexpr std::int64_t kNoLimit = std::numeric_limits<std::int64_t>::max();

inline solve::DeviceProfile device() {
  solve::DeviceProfile profile;
  profile.name = "round";
  profile.memoryBytes = std::int64_t{1} << 40;
  profile.halfFlopsPerSecond = 1e14;
  profile.floatFlopsPerSecond = 1e12;
  profile.doubleFlopsPerSecond = 1e12;
  profile.memoryBytesPerSecond = 1e12;
  profile.linkBytesPerSecond = 1e11;
  profile.linkLatencySeconds = 1e-6;
  return profile;
}

struct Case {
  solve::Problem problem;
  Engine engine = Engine::Optimal;
};

inline std::optional<solve::SolveResult> solved(const solve::Problem& problem, Engine engine) {
  const auto sink = solve::makeCountingSink();
  auto result = solve::solve(problem, engine, *sink);
  if (!result) qFatal("%s", result.error().message.c_str());
  if (!result->solution) return std::nullopt;
  return *std::move(result);
}

inline Plan planOf(const Case& c, const solve::SolveResult& result) {
  PlanRequest request;
  request.problem = std::make_shared<const solve::Problem>(c.problem);
  request.solution = std::make_shared<const solve::Solution>(*result.solution);
  request.engine = c.engine;
  request.optimum = result.optimum;
  return testing::planned(request);
}

inline bool weightIsSplit(const Graph& graph, const solve::Solution& solution, NodeId node, int ranks) {
  const auto layer = graph::layerShape(graph, node);
  if (!layer->weight.isValid()) return solution.of(layer->input).isSplit();
  const graph::Shape& shape = graph.shapeOf(layer->weight);
  return *solution.of(layer->weight).localShape(shape, ranks) != shape;
}

class Dice {
 public:
  explicit Dice(std::uint64_t seed) : m_random(seed) {}
  std::int64_t upTo(std::int64_t most) { return std::uniform_int_distribution<std::int64_t>(0, most)(m_random); }
  std::int64_t from(std::initializer_list<std::int64_t> values) {
    return values.begin()[upTo(std::ssize(std::vector<std::int64_t>(values)) - 1)];
  }
  bool oneIn(std::int64_t n) { return upTo(n - 1) == 0; }

 private:
  std::mt19937_64 m_random;
};

inline Case randomCase(Dice& dice) {
  test::LlamaSizes sizes;
  sizes.layers = 1;
  sizes.heads = dice.from({1, 2, 3, 4, 6, 7, 8, 12});
  sizes.kvHeads = sizes.heads;
  while (dice.oneIn(2)) {
    const std::int64_t fewer = 1 + dice.upTo(sizes.heads - 1);
    if (sizes.heads % fewer == 0) sizes.kvHeads = fewer;
  }
  sizes.hidden = sizes.heads * dice.from({2, 4, 8, 64});
  sizes.intermediate = dice.from({12, 13, 24, 56, 64, 112, 1024});
  sizes.vocab = dice.from({17, 24, 60, 63, 64, 4096});
  sizes.sequence = dice.from({4, 6, 8, 16, 256});
  sizes.hasLoss = dice.oneIn(2);
  sizes.isTied = dice.oneIn(3);
  sizes.hasWideNorms = dice.oneIn(6);
  Case c;
  c.problem.graph = test::llamaGraph(sizes);
  c.problem.context.worldSize = static_cast<int>(dice.from({2, 2, 3, 4, 4, 5, 6, 8}));
  c.problem.context.candidateSet = dice.oneIn(3) ? rules::CandidateSet::Optimum : rules::CandidateSet::Full;
  c.problem.context.sequenceParallel = static_cast<rules::SequenceParallel>(dice.from({0, 0, 0, 1, 2}));
  c.problem.cost.profile = device();
  if (dice.oneIn(2)) c.problem.cost.profile.linkLatencySeconds = 1e-9;
  if (dice.oneIn(3)) c.problem.cost.profile.floatFlopsPerSecond = 1e10;
  c.problem.cost.isTraining = dice.oneIn(4);
  const char* pins[] = {"lm_head=replicated",        "*.q_proj=replicated",  "*.o_proj!=row",
                        "model.embed_tokens!=vocab", "*.up_proj=replicated", "*.down_proj!=row"};
  for (const char* pin : pins) {
    if (dice.oneIn(8)) c.problem.pins.push_back(*solve::Pin::parse(pin));
  }
  c.problem.cost.slackPercent = static_cast<double>(dice.from({0, 0, 1, 5, 50}));
  c.engine = dice.oneIn(3) ? Engine::Learning : Engine::Optimal;
  return c;
}

inline std::string describe(const Case& c) {
  std::string text = fmt::format("{} ranks, candidates {}, sequence parallelism {}, {}", c.problem.context.worldSize,
                                 rules::toText(c.problem.context.candidateSet),
                                 rules::toText(c.problem.context.sequenceParallel), solve::toText(c.engine));
  for (const solve::Pin& pin : c.problem.pins) text += ", " + pin.text;
  return text;
}

inline solve::Pin pinTo(const Graph& graph, NodeId node, std::vector<rules::Strategy> strategies) {
  solve::Pin pin;
  pin.pattern = graph::layerName(graph, node);
  pin.text = pin.pattern + " is split";
  pin.strategies = std::move(strategies);
  return pin;
}

inline std::vector<rules::Strategy> splitForms(const solve::Problem& problem, NodeId node) {
  std::vector<rules::Strategy> forms;
  for (const auto& option :
       rules::layerStrategies(*problem.graph, node, *graph::layerShape(*problem.graph, node), problem.context)
           .offered) {
    if (splitsWeight({.strategy = option}, problem.context.worldSize)) forms.push_back(option.strategy);
  }
  return forms;
}

/// The fastest plan within the budget that splits the layer; nullopt if no such plan exists.
inline std::optional<solve::SolveResult> fastestSplitWithin(solve::Problem problem, NodeId node) {
  problem.cost.slackPercent = 0;
  std::optional<solve::SolveResult> best;
  for (rules::Strategy form : splitForms(problem, node)) {
    solve::Problem pinned = problem;
    pinned.pins.push_back(pinTo(*problem.graph, node, {form}));
    auto result = solved(pinned, Engine::Optimal);
    if (!result || !weightIsSplit(*problem.graph, *result->solution, node, problem.context.worldSize)) continue;
    if (!best || result->optimum->cost().femtoseconds() < best->optimum->cost().femtoseconds())
      best = std::move(result);
  }
  return best;
}

/// The same without a budget.
inline std::optional<solve::SolveResult> fastestSplit(solve::Problem problem, NodeId node) {
  problem.cost.memoryBudget = kNoLimit;
  return fastestSplitWithin(std::move(problem), node);
}

}  // namespace cleave::plan::testing
