#include "bench/bench.h"
#include "solve/cursor.h"
#include "solve/engine.h"
#include "support/llama_graph.h"

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

/// Tiny Llama under tensor parallelism with a pin that no plan meets: four times the tries for each further layer.
std::shared_ptr<const Problem> exploding(std::int64_t layers) {
  return problemOf({.layers = layers, .hasLoss = false}, 2, {"lm_head=row"});
}

std::shared_ptr<const Trace> recorded(const std::shared_ptr<const Problem>& problem) {
  TraceRecorder recorder(problem);
  const auto result = solve::solve(*problem, Engine::Reference, recorder);
  CLEAVE_CHECK(result.has_value(), "{}", result.error().message);
  return recorder.trace();
}

void reportSearch(bench::Bench& bench, const SolveResult& result) {
  bench.report("solved", result.outcome == Outcome::Solved ? 1 : 0);
  bench.report("tries", result.stats.tries);
  bench.report("conflicts", result.stats.conflicts);
  bench.report("events", result.stats.events);
}

}  // namespace

BENCH_CASE("solve/exploding") {
  for (std::int64_t layers = 1; layers <= 7; ++layers) {
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
    if (layers == 7) bench.report("events_per_second", static_cast<double>(stats.events) / ms * 1000);
  }
}

BENCH_CASE("solve/126-layers") {
  const auto problem = problemOf({.layers = 126,
                                  .hidden = 16384,
                                  .heads = 128,
                                  .kvHeads = 8,
                                  .intermediate = 53248,
                                  .vocab = 128256,
                                  .sequence = 128},
                                 8);
  SolveResult result;
  const double ms = bench.measure("solve_ms", [&] {
    const auto sink = makeCountingSink();
    result = *solve::solve(*problem, Engine::Reference, *sink);
  });
  reportSearch(bench, result);
  bench.report("nodes", problem->graph->nodes.size());
  bench.report("nodes_per_second", static_cast<double>(problem->graph->nodes.size()) / ms * 1000);
}

BENCH_CASE("solve/nodes") {
  for (const std::int64_t layers : {13, 133, 1333}) {
    const auto problem = problemOf({.layers = layers}, 2);
    const double ms = bench.measure(fmt::format("nodes_{}_ms", problem->graph->nodes.size()), [&] {
      const auto sink = makeCountingSink();
      CLEAVE_CHECK(solve::solve(*problem, Engine::Reference, *sink).has_value(), "solves");
    });
    bench.report(fmt::format("nodes_{}_us_a_node", problem->graph->nodes.size()),
                 ms * 1000 / static_cast<double>(problem->graph->nodes.size()));
  }
}

BENCH_CASE("solve/record") {
  const auto problem = problemOf({.layers = 2}, 2);
  constexpr std::uint64_t kEvents = 1 << 24;
  const double ms = bench.measure("record_ms", [&] {
    TraceRecorder recorder(problem);
    for (std::uint64_t i = 0; i < kEvents; ++i)
      recorder.onEvent({.type = EventType::Visit, .node = static_cast<std::uint32_t>(i & 63)});
  });
  bench.report("events", kEvents);
  bench.report("events_per_second", static_cast<double>(kEvents) / ms * 1000);
}

BENCH_CASE("solve/seek") {
  const auto trace = recorded(exploding(7));
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
