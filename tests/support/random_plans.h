#pragma once
/// Random problems that are small enough to list all plans. Each has at least two layers and a residual. Each of these
/// occurs with probability 1/2: a tied weight, a fused block, a size that does not divide, training, a pin.
/// Redistributable values and disabled rules occur sometimes.
#include "graph/graph_builder.h"
#include "tests/support/solve_support.h"

#include <array>

namespace cleave::test {

class RandomProblem {
 public:
  explicit RandomProblem(std::uint64_t seed) : m_random(seed), m_builder("random") {}

  std::shared_ptr<solve::Problem> build() {
    auto problem = std::make_shared<solve::Problem>();
    auto& context = problem->context;
    context.worldSize = static_cast<int>(pick({2, 2, 4, 3}));
    context.candidateSet = chance(4) ? rules::CandidateSet::Optimum : rules::CandidateSet::Full;
    context.sequenceParallel = static_cast<rules::SequenceParallel>(m_random() % 3);
    m_ranks = context.worldSize;
    problem->graph = graph();
    setCosts(problem->cost);
    if (chance(2)) addPin(*problem);
    if (chance(20))
      problem->redistributable = {problem->graph->values[m_random() % problem->graph->values.size()].name};
    if (chance(8)) problem->rulesOff = {problem->graph->ops[m_random() % problem->graph->ops.size()]};
    if (!problem->checkPins()) problem->redistributable = problem->rulesOff = {};
    return problem;
  }

  std::uint64_t number() { return m_random(); }
  bool chance(std::uint64_t oneIn) { return m_random() % oneIn == 0; }
  std::int64_t pick(std::initializer_list<std::int64_t> choices) {
    return *(choices.begin() + static_cast<std::ptrdiff_t>(m_random() % choices.size()));
  }

 private:
  static constexpr std::size_t kMostNodes = 12;
  using ValueId = graph::ValueId;

  std::size_t room() const { return kMostNodes - m_builder.current().nodes.size(); }
  const graph::Shape& shape(ValueId v) const { return m_builder.current().shapeOf(v); }
  ValueId call(std::string_view op, std::vector<graph::Argument> args, graph::Shape shape,
               graph::ScopeId scope = graph::ScopeId(0)) {
    return m_builder.addCall(op, std::move(args), {{graph::DType::Float32, std::move(shape)}}, scope)[0];
  }

  std::shared_ptr<const graph::Graph> graph() {
    const bool isAwkward = chance(2);
    m_hidden = m_ranks * pick({2, 4});
    const std::int64_t sequence = isAwkward && chance(3) ? 2 * m_ranks + 1 : 2 * m_ranks;
    if (isAwkward && chance(2)) m_hidden += 2;
    const bool hasEmbedding = chance(4);
    ValueId x;
    if (hasEmbedding) {
      const ValueId ids = m_builder.addInput("ids", {graph::DType::Int64, {2, sequence}});
      x = embedding(ids, isAwkward ? 2 * m_hidden + 1 : 2 * m_hidden);
    } else {
      x = m_builder.addInput("x", {graph::DType::Float32, {2, sequence, m_hidden}});
    }
    const ValueId skipped = x;
    if (hasEmbedding || !chance(2)) x = linear(x, m_hidden);
    if (chance(2)) x = fused(x, isAwkward && chance(2) ? m_ranks + 1 : m_hidden / 2);
    if (m_layers < 2) x = linear(x, m_hidden);
    if (shape(x).back() != m_hidden) x = linear(x, m_hidden);
    if (chance(2) && !m_weights.empty()) x = tied(x);
    x = call("aten::add.Tensor", {skipped, x, std::int64_t{1}}, shape(x));
    m_pool = {skipped, x};
    while (room() > 0 && !chance(4)) more();
    m_builder.addOutput("y", m_pool.back());
    if (chance(4)) m_builder.addOutput("also", m_pool.front());
    auto built = std::move(m_builder).finish();
    if (!built) qFatal("%s", built.error().message.c_str());
    return std::make_shared<const graph::Graph>(std::move(*built));
  }

  ValueId embedding(ValueId ids, std::int64_t rows) {
    const ValueId table = m_builder.addParameter("embed.weight", {graph::DType::Float32, {rows, m_hidden}});
    ++m_layers;
    return call("aten::embedding", {table, ids}, {2, shape(ids)[1], m_hidden}, m_builder.scope("embed"));
  }

  ValueId product(ValueId x, ValueId weight, const graph::Argument& bias) {
    graph::Shape result = shape(x);
    result.back() = shape(weight)[0];
    return call("aten::linear", {x, weight, bias}, result, m_builder.scope(fmt::format("layer{}", m_layers++)));
  }

  ValueId linear(ValueId x, std::int64_t outputs) {
    const std::string path = fmt::format("layer{}", m_layers);
    const ValueId weight =
        m_builder.addParameter(path + ".weight", {graph::DType::Float32, {outputs, shape(x).back()}});
    m_weights.push_back(weight);
    graph::Argument bias;
    if (chance(8)) bias = m_builder.addParameter(path + ".bias", {graph::DType::Float32, {outputs}});
    return product(x, weight, bias);
  }

  ValueId tied(ValueId x) {
    for (const ValueId weight : m_weights) {
      if (shape(weight)[1] == shape(x).back() && shape(weight)[0] == m_hidden) return product(x, weight, {});
    }
    return x;
  }

  /// A fused projection, sliced or split once.
  ValueId fused(ValueId x, std::int64_t width) {
    const ValueId both = linear(x, 2 * width);
    graph::Shape half = shape(both);
    half.back() = width;
    std::vector<ValueId> parts;
    if (chance(2)) {
      parts =
          m_builder.addCall("aten::split_with_sizes", {both, std::vector<std::int64_t>{width, width}, std::int64_t{-1}},
                            {{graph::DType::Float32, half}, {graph::DType::Float32, half}});
    } else {
      for (const std::int64_t start : {std::int64_t{0}, width}) {
        parts.push_back(
            call("aten::slice.Tensor", {both, std::int64_t{2}, start, start + width, std::int64_t{1}}, half));
      }
    }
    return call("aten::mul.Tensor", {parts[0], parts[1]}, half);
  }

  void more() {
    const ValueId x = m_pool[m_random() % m_pool.size()];
    const graph::Shape s = shape(x);
    graph::Shape reduced = s;
    reduced.back() = 1;
    switch (m_random() % 8) {
      case 0: return m_pool.push_back(call("aten::relu", {x}, s));
      case 1: return m_pool.push_back(call("aten::_softmax", {x, std::int64_t{-1}, false}, s));
      case 2:
        return m_pool.push_back(
            call("aten::mean.dim", {x, std::vector<std::int64_t>{-1}, true, graph::Argument{}}, reduced));
      case 3:
        if (room() > 1 && s.back() == m_hidden) return m_pool.push_back(linear(x, m_hidden));
        return m_pool.push_back(call("aten::neg", {x}, s));
      case 4: return m_pool.push_back(folded(x));
      case 5:
        if (room() > 1) {
          const ValueId scale =
              m_builder.addParameter(fmt::format("scale{}", room()), {graph::DType::Float32, {s.back()}});
          return m_pool.push_back(call("aten::mul.Tensor", {x, scale}, s));
        }
        return m_pool.push_back(call("aten::abs", {x}, s));
      default: {
        const ValueId y = m_pool[m_random() % m_pool.size()];
        if (shape(y) != s) return m_pool.push_back(call("aten::sigmoid", {x}, s));
        return m_pool.push_back(call("aten::add.Tensor", {x, y, std::int64_t{1}}, s));
      }
    }
  }

  /// Passes through a view that makes two heads, if the size allows it.
  ValueId folded(ValueId x) {
    const graph::Shape s = shape(x);
    if (s.back() % 2 != 0 || room() < 2) return call("aten::exp", {x}, s);
    const graph::Shape heads{s[0], s[1], 2, s[2] / 2};
    const ValueId split = call("aten::view", {x, std::vector<std::int64_t>(heads)}, heads);
    return call("aten::view", {split, std::vector<std::int64_t>(s)}, s);
  }

  /// Random costs: splitting small tensors saves time on some devices only.
  void setCosts(solve::CostSettings& cost) {
    cost.isTraining = chance(2);
    cost.slackPercent = 0;
    cost.optimizer = static_cast<solve::Optimizer>(m_random() % 4);
    cost.profile.floatFlopsPerSecond = static_cast<double>(pick({1'000'000, 100'000'000, 10'000'000'000}));
    cost.profile.memoryBytesPerSecond = static_cast<double>(pick({1'000'000, 100'000'000}));
    cost.profile.linkBytesPerSecond = static_cast<double>(pick({1'000'000, 30'000'000, 1'000'000'000}));
    cost.profile.linkLatencySeconds = static_cast<double>(pick({0, 1, 20})) * 1e-6;
  }

  void addPin(solve::Problem& problem) {
    const auto& values = problem.graph->values;
    const bool forbids = chance(2);
    std::string text;
    if (chance(2)) {
      const auto& value = values[m_random() % values.size()];
      const auto rank = value.type.shape.size();
      text = value.name + (forbids ? "!=" : "=") +
             (rank == 0 || chance(3) ? "R" : fmt::format("S({})", m_random() % rank));
    } else {
      static constexpr std::array kForms{"column", "row", "replicated", "vocab", "gather+column", "row+scatter"};
      text = fmt::format("layer{}{}{}", m_random() % 2, forbids ? "!=" : "=", kForms[m_random() % kForms.size()]);
    }
    problem.pins.push_back(*solve::Pin::parse(text));
    if (!problem.checkPins()) problem.pins.pop_back();
  }

  std::mt19937_64 m_random;
  graph::GraphBuilder m_builder;
  int m_ranks = 2;
  int m_layers = 0;
  std::int64_t m_hidden = 0;
  std::vector<ValueId> m_pool, m_weights;
};

}  // namespace cleave::test
