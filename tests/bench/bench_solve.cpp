#include "solve/engine.h"
#include "solve/trace/cursor.h"
#include "solve/trace/recorder.h"
#include "tests/bench/bench.h"
#include "tests/support/llama_graph.h"

#include <random>

namespace {

using namespace cleave;
using namespace cleave::solve;

std::shared_ptr<const Problem> problemOf(const test::LlamaSizes& sizes, int ranks,
                                         const std::vector<std::string>& pins = {}) {
  auto problem = std::make_shared<Problem>();
  problem->graph = test::llamaGraph(sizes);
  problem->context.worldSize = ranks;
  for (const std::string& pin : pins) problem->pins.push_back(*Pin::parse(pin));
  return problem;
}

/// Tiny Llama under tensor parallelism with a pin that no plan satisfies. Each additional layer multiplies the tries by
/// four.
std::shared_ptr<const Problem> exploding(std::int64_t layers) {
  return problemOf({.layers = layers, .hasLoss = false}, 2, {"lm_head=row"});
}

std::shared_ptr<const Trace> recorded(const std::shared_ptr<const Problem>& problem) {
  TraceRecorder recorder(problem);
  const auto result = solve::solve(*problem, Engine::Reference, recorder);
  CLEAVE_CHECK(result.has_value(), "{}", result.error().message);
  return recorder.trace();
}

test::LlamaSizes llama405B() {
  return {.layers = 126,
          .hidden = 16384,
          .heads = 128,
          .kvHeads = 8,
          .intermediate = 53248,
          .vocab = 128256,
          .sequence = 128};
}

SolveResult measured(bench::Bench& bench, const std::string& name, const Problem& problem) {
  SolveResult result;
  bench.measure(name + "_ms", [&] {
    const auto sink = makeCountingSink();
    result = *solve::solve(problem, Engine::Optimal, *sink);
  });
  bench.report(name + "_solved", result.outcome == Outcome::Solved ? 1 : 0);
  return result;
}

}  // namespace

BENCH_CASE("solve/exploding") {
  const std::int64_t most = bench.isSmoke() ? 3 : 7;
  for (std::int64_t layers = 1; layers <= most; ++layers) {
    const auto problem = exploding(layers);
    SearchStats stats;
    const double ms = bench.measure(
        fmt::format("layers_{}_ms", layers),
        [&] {
          TraceRecorder recorder(problem);
          const auto result = solve::solve(*problem, Engine::Reference, recorder);
          stats = result->stats;
        },
        layers < 6 ? 5 : 3);
    bench.report(fmt::format("layers_{}_tries", layers), stats.tries);
    if (layers == most) bench.report("events_per_second", static_cast<double>(stats.events) / ms * 1000);
  }
}

BENCH_CASE("solve/126-layers") {
  for (const Engine engine : {Engine::Reference, Engine::Learning}) {
    const auto problem = problemOf(llama405B(), 8);
    SolveResult result;
    const double ms = bench.measure(fmt::format("{}_ms", toText(engine)), [&] {
      const auto sink = makeCountingSink();
      result = *solve::solve(*problem, engine, *sink);
    });
    CLEAVE_CHECK(result.outcome == Outcome::Solved, "has a plan");
    bench.report(fmt::format("{}_tries", toText(engine)), result.stats.tries);
    bench.report("nodes", problem->graph->nodes.size());
    bench.report(fmt::format("{}_nodes_per_second", toText(engine)),
                 static_cast<double>(problem->graph->nodes.size()) / ms * 1000);
  }
}

/// All answers of `optimal` for 405B's sizes: without a binding budget, with one, the front, regrets.
BENCH_CASE("solve/126-layers-optimal") {
  for (const bool isTraining : {false, true}) {
    Problem problem = *problemOf(llama405B(), 8);
    problem.context.candidateSet = rules::CandidateSet::Full;
    problem.context.sequenceParallel = rules::SequenceParallel::Auto;
    problem.cost.isTraining = isTraining;
    problem.cost.memoryBudget = 1ll << 60;
    // A slow link: replicated layers are fast, split ones are small.
    problem.cost.profile.linkBytesPerSecond = 2e9;
    const std::string kind = isTraining ? "training" : "inference";
    std::vector<NodeId> layers;
    for (const NodeId node : idRange<NodeId>(problem.graph->nodes.size())) {
      if (graph::layerShape(*problem.graph, node)) layers.push_back(node);
    }
    for (const double slack : {0.0, 1.0}) {
      problem.cost.slackPercent = slack;
      measured(bench, kind + (slack > 0 ? "_slack" : "_fastest"), problem);
    }
    SolveResult result = measured(bench, kind, problem);
    const Optimum& optimum = *result.optimum;
    bench.report(kind + "_foldedSteps", optimum.stats().foldedSteps);
    bench.report(kind + "_transitions", optimum.stats().transitions);
    bench.report(kind + "_widest", optimum.stats().widest);
    bench.report(kind + "_bytes_a_node",
                 static_cast<double>(optimum.stats().memoryBytes) / static_cast<double>(problem.graph->nodes.size()));
    Optimum::Front front;
    bench.measure(
        kind + "_front_ms", [&] { front = *optimum.front(); }, 3);
    bench.report(kind + "_points", front.points.size());
    bench.report(kind + "_gap", front.worstGap);
    bench.measure(
        kind + "_smallest_regrets_ms", [&] { CLEAVE_CHECK(!optimum.smallestRegrets(layers).empty(), "steps"); }, 3);
    bench.measure(
        kind + "_regrets_ms",
        [&] { CLEAVE_CHECK(optimum.regrets(problem.graph->outputs[0].value).has_value(), "answers"); }, 3);
    const auto visit = [](Optimum::Listed) -> Result<void> { return {}; };
    bench.measure(
        kind + "_best_10_ms", [&] { CLEAVE_CHECK(optimum.best(10, visit)->plans == 10, "plans"); }, 3);
    if (front.points.size() < 2) continue;
    // Between the fastest plan and the smallest one, so that the budget binds.
    problem.cost.memoryBudget = (optimum.cost().bytes() + front.points.back().bytes) / 2;
    result = measured(bench, kind + "_budget", problem);
    if (!result.optimum) continue;
    bench.report(kind + "_budget_proved", result.optimum->isProved() ? 1 : 0);
    bench.report(kind + "_budget_plans_checked", result.optimum->stats().plansChecked);
    bench.report(kind + "_budget_gap",
                 static_cast<double>(result.optimum->cost().femtoseconds() - result.optimum->lowerBoundFs()) /
                     static_cast<double>(result.optimum->cost().femtoseconds()));
  }
}

/// The time per node must not grow with the graph. All sizes have the same total number of nodes, and each graph is
/// solved once before any is repeated, so that the cache does not favour small graphs.
BENCH_CASE("solve/nodes") {
  const std::int64_t mostLayers = bench.isSmoke() ? 13 : 1333;
  for (const Engine engine : {Engine::Reference, Engine::Learning, Engine::Optimal}) {
    for (const std::int64_t layers : {std::int64_t{13}, std::int64_t{133}, std::int64_t{1333}}) {
      if (layers > mostLayers) break;
      std::vector<std::shared_ptr<Problem>> problems;
      for (std::int64_t i = 0; i < mostLayers / layers; ++i) {
        problems.push_back(std::make_shared<Problem>(*problemOf({.layers = layers}, 2)));
        if (engine == Engine::Optimal) problems.back()->context.candidateSet = rules::CandidateSet::Full;
      }
      const std::size_t nodes = problems.front()->graph->nodes.size();
      const std::string name = fmt::format("{}_{}", toText(engine), nodes);
      const double ms = bench.least(
                            name + "_ms",
                            [&] {
                              for (const auto& problem : problems) {
                                const auto sink = makeCountingSink();
                                CLEAVE_CHECK(solve::solve(*problem, engine, *sink).has_value(), "solves");
                              }
                            },
                            15) /
                        static_cast<double>(problems.size());
      bench.report(name + "_us_a_node", ms * 1000 / static_cast<double>(nodes));
      bench.report(name + "_nodes_per_second", static_cast<double>(nodes) / ms * 1000);
    }
  }
}

BENCH_CASE("solve/record") {
  const auto problem = problemOf({.layers = 2}, 2);
  const std::uint64_t events = bench.isSmoke() ? 1 << 16 : 1 << 24;
  const double ms = bench.measure("record_ms", [&] {
    TraceRecorder recorder(problem);
    for (std::uint64_t i = 0; i < events; ++i)
      recorder.onEvent({.type = EventType::Visit, .node = static_cast<std::uint32_t>(i & 63)});
  });
  bench.report("events", events);
  bench.report("events_per_second", static_cast<double>(events) / ms * 1000);
}

BENCH_CASE("solve/seek") {
  const auto trace = recorded(exploding(bench.isSmoke() ? 4 : 7));
  Cursor cursor(trace);
  bench.report("events", trace->size());
  bench.measure(
      "index_ms", [&] { cursor.seek(trace->size()); }, 1);
  std::mt19937_64 random(1);
  const auto window = std::min<StepId>(trace->size(), 1'000'000);
  bench.measure(
      "seek_ms", [&] { cursor.seek(random() % window); }, 501);
  bench.measure(
      "seek_anywhere_ms", [&] { cursor.seek(random() % trace->size()); }, 501);
  cursor.seek(trace->size() / 2);
  bench.measure(
      "back_one_ms", [&] { cursor.seek(cursor.step() - 1); }, 501);
  bench.measure(
      "next_conflict_ms", [&] { cursor.seek(cursor.next(EventType::Conflict).value_or(0)); }, 501);
  bench.measure("timeline_ms",
                [&] { CLEAVE_CHECK(timeline(*trace, 0, trace->size(), 1000).size() == 1000, "buckets"); });
}
