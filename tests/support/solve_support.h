#pragma once
/// Problems from text, recordings as text, and random small graphs, for the tests of core/solve.
#include "graph/graph_builder.h"
#include "solve/engine.h"
#include "solve/trace/cursor.h"
#include "solve/trace/recorder.h"
#include "tests/support/need.h"

#include <QtGlobal>

#include <memory>
#include <random>
#include <string>
#include <vector>

namespace cleave::test {

inline std::shared_ptr<const solve::Problem> problemOf(
    std::shared_ptr<const graph::Graph> graph, int ranks, const std::vector<std::string>& pins = {},
    rules::SequenceParallel sequence = rules::SequenceParallel::Off) {
  auto problem = std::make_shared<solve::Problem>();
  problem->graph = std::move(graph);
  problem->context = {.worldSize = ranks, .sequenceParallel = sequence};
  for (const std::string& text : pins) problem->pins.push_back(need(solve::Pin::parse(text)));
  return problem;
}

/// Solves without a recording.
inline solve::SolveResult solvedBy(solve::Engine engine, const solve::Problem& problem) {
  const auto sink = solve::makeCountingSink();
  return need(solve::solve(problem, engine, *sink));
}

inline bool sameSolution(const solve::Solution& a, const solve::Solution& b) {
  if (a.placements != b.placements || a.computedAs != b.computedAs || a.strategies.size() != b.strategies.size())
    return false;
  for (std::size_t i = 0; i < a.strategies.size(); ++i) {
    if (a.strategies[i].has_value() != b.strategies[i].has_value()) return false;
    if (a.strategies[i] && a.strategies[i]->strategy != b.strategies[i]->strategy) return false;
  }
  return true;
}

struct Recorded {
  solve::SolveResult result;
  std::shared_ptr<const solve::Trace> trace;
};

inline Recorded record(const std::shared_ptr<const solve::Problem>& problem, solve::RecorderLimits limits = {},
                       const Progress& progress = {}, solve::Engine engine = solve::Engine::Reference) {
  solve::TraceRecorder recorder(problem, std::move(limits));
  auto result = need(solve::solve(*problem, engine, recorder, progress));
  return {std::move(result), recorder.trace()};
}

inline std::vector<solve::Event> eventsOf(const solve::Trace& trace) {
  std::vector<solve::Event> events(trace.size());
  events.resize(trace.read(0, events));
  return events;
}

inline std::string textOf(const solve::Trace& trace) {
  std::string text;
  const auto events = eventsOf(trace);
  for (std::size_t i = 0; i < events.size(); ++i) text += solve::toText(trace, i, events[i]) + "\n";
  return text;
}

/// A small random model: layers in series or in parallel, pointwise operators, residuals, views, reductions, a tied
/// weight. Most sizes divide by two.
class RandomGraph {
 public:
  explicit RandomGraph(std::uint64_t seed) : m_random(seed) {}

  std::shared_ptr<const graph::Graph> build(int operators) {
    graph::GraphBuilder builder("random");
    m_builder = &builder;
    m_width = pick({4, 6, 7, 8});
    m_pool.push_back(builder.addInput("x", {graph::DType::Float32, {2, 4, m_width}}));
    for (int i = 0; i < operators; ++i) addOperator(i);
    builder.addOutput("y", m_pool.back());
    return std::make_shared<const graph::Graph>(need(std::move(builder).finish()));
  }

  std::int64_t pick(std::initializer_list<std::int64_t> choices) {
    return *(choices.begin() + static_cast<std::ptrdiff_t>(m_random() % choices.size()));
  }

 private:
  const graph::Shape& shape(graph::ValueId v) const { return m_builder->current().shapeOf(v); }
  graph::ValueId any() { return m_pool[m_pool.size() - 1 - m_random() % std::min<std::size_t>(3, m_pool.size())]; }
  graph::ValueId call(std::string_view op, std::vector<graph::Argument> args, graph::Shape shape,
                      graph::ScopeId scope = graph::ScopeId(0)) {
    return m_builder->addCall(op, std::move(args), {{graph::DType::Float32, std::move(shape)}}, scope)[0];
  }

  void addOperator(int i) {
    const graph::ValueId x = any();
    switch (m_random() % 7) {
      case 0:
      case 1:
      case 2: return m_pool.push_back(linear(x, i));
      case 3: return m_pool.push_back(call("aten::relu", {x}, shape(x)));
      case 4: return m_pool.push_back(m_random() % 2 == 0 ? sum(x) : scaled(x, i));
      case 5: return m_pool.push_back(normalised(x));
      default: return m_pool.push_back(folded(x));
    }
  }

  graph::ValueId linear(graph::ValueId x, int i) {
    graph::Shape result = shape(x);
    const std::int64_t in = result.back();
    graph::ValueId weight;
    for (graph::ValueId known : m_weights) {
      if (shape(known)[1] == in && m_random() % 3 == 0) weight = known;
    }
    const std::string path = fmt::format("layer{}", i);
    if (!weight.isValid()) {
      weight = m_builder->addParameter(path + ".weight", {graph::DType::Float32, {pick({m_width, m_width, 6, 7}), in}});
      m_weights.push_back(weight);
    }
    graph::Argument bias;
    result.back() = shape(weight)[0];
    if (m_random() % 3 == 0) bias = m_builder->addParameter(path + ".bias", {graph::DType::Float32, {result.back()}});
    return call("aten::linear", {x, weight, bias}, result, m_builder->scope(path));
  }

  graph::ValueId sum(graph::ValueId x) {
    for (graph::ValueId other : m_pool) {
      if (other != x && shape(other) == shape(x))
        return call("aten::add.Tensor", {x, other, std::int64_t{1}}, shape(x));
    }
    return call("aten::mul.Tensor", {x, x}, shape(x));
  }

  /// Multiplies by a parameter that no layer owns and that may be split with the features.
  graph::ValueId scaled(graph::ValueId x, int i) {
    const auto scale = m_builder->addParameter(fmt::format("scale{}", i), {graph::DType::Float32, {shape(x).back()}});
    return call("aten::mul.Tensor", {x, scale}, shape(x));
  }

  graph::ValueId normalised(graph::ValueId x) {
    graph::Shape reduced = shape(x);
    reduced.back() = 1;
    const auto mean = call("aten::mean.dim", {x, std::vector<std::int64_t>{-1}, true, graph::Argument{}}, reduced);
    return call("aten::sub.Tensor", {x, mean, std::int64_t{1}}, shape(x));
  }

  graph::ValueId folded(graph::ValueId x) {
    const graph::Shape s = shape(x);
    if (s.size() != 3 || s[2] % 2 != 0) return call("aten::neg", {x}, s);
    const graph::Shape heads{s[0], s[1], 2, s[2] / 2};
    const auto split = call("aten::view", {x, std::vector<std::int64_t>(heads)}, heads);
    const auto exp = call("aten::exp", {split}, heads);
    return call("aten::view", {exp, std::vector<std::int64_t>(s)}, s);
  }

  std::mt19937_64 m_random;
  graph::GraphBuilder* m_builder = nullptr;
  std::int64_t m_width = 0;
  std::vector<graph::ValueId> m_pool;
  std::vector<graph::ValueId> m_weights;
};

}  // namespace cleave::test
