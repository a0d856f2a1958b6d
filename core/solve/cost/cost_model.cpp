#include "solve/cost/cost_model.h"

#include "solve/cost/buffers.h"
#include "solve/cost/link.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

namespace cleave::solve {
namespace {

using graph::CostClass;
using graph::LayerShape;
using graph::NodeKind;
using rules::CollectiveKind;
using rules::LayerStrategy;

/// 128 bits can store the sum of millions of the largest values.
Wide asInteger(double number) {
  constexpr double kLargest = 1e30;
  return static_cast<Wide>(std::round(std::min(number, kLargest)));
}

/// Transfer time of a ring collective, without latency.
double sendingSeconds(const DeviceProfile& profile, CollectiveKind kind, std::int64_t bytes, int ranks) {
  return ringShare(kind, ranks) * static_cast<double>(bytes) / profile.linkBytesPerSecond;
}

/// False for a value with a full copy on every rank, whatever its placement is. All ranks do the same work with it.
bool isInParts(const Placement& placement, int ranks) { return !placement.isReplicatedOn(ranks); }

/// True if each rank gets only a part of the gradient of the layer's replicated weight or bias.
bool leavesParts(const LayerStrategy& option, Role role, int ranks) {
  if (role == Role::Weight) return isInParts(option.input, ranks) && !option.before && !isInParts(option.weight, ranks);
  return role == Role::Bias && !isInParts(option.bias, ranks) && isInParts(option.result, ranks);
}

/// The roles of a layer's writes after its results: weight, bias, down projections.
constexpr std::array kParameterRoles{Role::Weight, Role::Bias, Role::Down};

}  // namespace

/// Adds up the cost of one step. One object serves one call.
class StepCounter {
 public:
  StepCounter(const Problem& problem, const Variables& variables, const CostFacts& facts, NodeId node,
              const Choice& choice, std::span<const Placement> placements)
      : m_problem(problem),
        m_graph(*problem.graph),
        m_variables(variables),
        m_facts(facts),
        m_node(node),
        m_choice(choice),
        m_placements(placements),
        m_ranks(problem.context.worldSize) {}

  StepCost count() {
    const graph::Node& node = m_graph.node(m_node);
    if (node.kind == NodeKind::Parameter) addParameter(node.results[0], m_choice.results[0], false);
    if (node.kind != NodeKind::Call) return m_cost;
    const auto& layer = m_variables.layer(m_node);
    layer&& m_choice.strategy ? addLayer(*layer, *m_choice.strategy) : addOperator();
    for (std::size_t i = 0; i < node.results.size(); ++i) addResult(node.results[i], i);
    addSavedInside();
    return m_cost;
  }

  void addCollective(CollectiveKind kind, std::int64_t bytes) { addCollective(kind, bytes, m_ranks); }
  /// Gradient sums are in the bucket, so they do not add α.
  void addGradientSum(std::int64_t bytes, int ranks) {
    if (bytes == 0) return;
    addTraffic(Femtoseconds::ofSeconds(sendingSeconds(m_problem.cost.profile, CollectiveKind::AllReduce, bytes, ranks)),
               bytes);
    m_cost.summedGradients = saturatingAdd(m_cost.summedGradients, bytes);
  }
  void addTraffic(Femtoseconds time, std::int64_t bytes) {
    m_cost.trafficFs += time;
    m_cost.trafficBytes = saturatingAdd(m_cost.trafficBytes, bytes);
  }
  const StepCost& cost() const { return m_cost; }
  std::int64_t bytes(ValueId value, const Placement& placement) const {
    return elements(value, placement) * m_facts.of(value).itemSize;
  }

 private:
  bool isTraining() const { return m_problem.cost.isTraining; }
  std::int64_t elements(ValueId value, const Placement& placement) const {
    if (placement.isReplicated()) return m_facts.of(value).count;
    return placement.localCount(m_graph.shapeOf(value), m_ranks);
  }
  /// Bytes of `count` elements of a parameter in its stored form.
  std::int64_t held(ValueId parameter, std::int64_t count) const {
    const ValueFacts& facts = m_facts.of(parameter);
    return facts.isPacked ? m_graph.heldBytes(parameter, count) : count * facts.itemSize;
  }
  /// Placement of result `index` before a redistribution.
  const Placement& computed(std::size_t index) const {
    return m_choice.computedAs.empty() ? m_choice.results[index] : m_choice.computedAs[index];
  }

  void addCollective(CollectiveKind kind, std::int64_t bytes, int ranks) {
    const DeviceProfile& profile = m_problem.cost.profile;
    addTraffic(Femtoseconds::ofSeconds(profile.linkLatencySeconds + sendingSeconds(profile, kind, bytes, ranks)),
               bytes);
  }

  /// Adds the collective that completes `result`, twice if a recomputed node needs the result.
  void addForwardCollective(CollectiveKind kind, std::int64_t bytes, ValueId result) {
    addCollective(kind, bytes);
    if (m_facts.of(result).isNeededAgain) addCollective(kind, bytes);
  }

  void addCompute(double flops, double bytes, int passes) {
    const double seconds =
        std::max(flops / m_facts.of(m_node).flopsPerSecond, bytes / m_problem.cost.profile.memoryBytesPerSecond);
    m_cost.computeFs += Femtoseconds::ofSeconds(seconds * passes);
    m_cost.flops += asInteger(flops * passes);
  }

  void addLayer(const LayerShape& layer, const LayerStrategy& option) {
    const ValueId result = m_graph.node(m_node).results[0];
    switch (layer.kind) {
      case graph::LayerKind::Linear: addLinear(layer, option, result); break;
      case graph::LayerKind::Embedding: addEmbedding(layer, option, result); break;
      case graph::LayerKind::CrossEntropy: addLoss(layer, option, result); break;
      case graph::LayerKind::Experts: addExperts(layer, option); break;
    }
    if (option.after == CollectiveKind::AllReduce) addForwardCollective(*option.after, replicatedBytes(result), result);
    if (option.after == CollectiveKind::ReduceScatter) {
      addForwardCollective(*option.after, replicatedBytes(result), result);
      if (m_facts.of(result).needsGradient) addCollective(CollectiveKind::AllGather, replicatedBytes(result));
    }
    const auto writes = m_variables.writes(m_node).subspan(m_graph.node(m_node).results.size());
    const std::array placements{option.weight, option.bias, option.down.value_or(Placement())};
    for (std::size_t i = 0; i < writes.size(); ++i) {
      const bool isPartial = m_facts.of(m_node).needsGradient && leavesParts(option, kParameterRoles[i], m_ranks);
      if (writes[i].isValid()) addParameter(writes[i], placements[i], isPartial);
    }
  }

  std::int64_t replicatedBytes(ValueId value) const {
    return saturatingMul(m_facts.of(value).count, m_facts.of(value).itemSize);
  }

  void addLinear(const LayerShape& layer, const LayerStrategy& option, ValueId result) {
    const std::int64_t weight = elements(layer.weight, option.weight);
    const graph::Shape& sizes = m_graph.shapeOf(layer.weight);
    const std::int64_t out = sizes[static_cast<std::size_t>(layer.outAxis)];
    const bool isInSplit = option.weight.touches(layer.inAxis);
    const std::int64_t matrices = graph::matricesOf(m_graph, layer);
    if (out == 0 || matrices == 0) return;
    const std::int64_t in = isInSplit ? weight / out / matrices : sizes[static_cast<std::size_t>(layer.inAxis)];
    if (in == 0) return;
    const std::int64_t input = option.before ? m_facts.of(layer.input).count : elements(layer.input, option.input);
    const std::int64_t rows = input / in / matrices;  // rows of each matrix
    const std::int64_t part = rows * (weight / in);   // elements of the result before a collective
    const double itemSize = m_facts.of(result).itemSize;
    const bool isBiasLate = layer.bias.isValid() && option.after && *option.after != CollectiveKind::AllGather;
    const std::int64_t bias = layer.bias.isValid() ? elements(layer.bias, option.bias) : 0;
    const std::int64_t early = input + part + (isBiasLate ? 0 : bias);
    const double moved = static_cast<double>(early) * itemSize + static_cast<double>(held(layer.weight, weight));
    addCompute(2.0 * static_cast<double>(rows) * static_cast<double>(weight), moved, m_facts.of(m_node).passes);
    if (isBiasLate) {
      const std::int64_t kept = elements(result, option.result);
      addCompute(static_cast<double>(kept), static_cast<double>(2 * kept + bias) * itemSize,
                 1 + int{m_facts.of(result).needsGradient} + int{m_facts.of(result).isNeededAgain});
    }
    if (option.after == CollectiveKind::AllGather) {
      addForwardCollective(*option.after, saturatingMul(part * m_facts.of(result).itemSize, m_ranks), result);
    }
  }

  void addEmbedding(const LayerShape& layer, const LayerStrategy& option, ValueId result) {
    // A vocabulary-parallel lookup gives a partial sum of full size.
    const std::int64_t made = option.after ? m_facts.of(result).count : elements(result, option.result);
    addCompute(0,
               static_cast<double>(bytes(layer.input, option.input)) +
                   2.0 * static_cast<double>(made) * m_facts.of(result).itemSize,
               m_facts.of(m_node).passes);
  }

  void addLoss(const LayerShape& layer, const LayerStrategy& option, ValueId result) {
    const std::int64_t logits = elements(layer.input, option.input);
    const std::int64_t target = replicatedBytes(layer.target);
    addCompute(static_cast<double>(logits),
               static_cast<double>(logits * m_facts.of(layer.input).itemSize + target + replicatedBytes(result)),
               m_facts.of(m_node).passes);
    if (option.strategy != rules::Strategy::Vocab) return;
    // Row maxima, sums of exponentials, target logits (Megatron-LM, arXiv:1909.08053 section 3).
    const std::int64_t real = std::max(4, m_facts.of(layer.input).itemSize);
    const int reductions = m_facts.of(m_node).isAgain ? 6 : 3;
    for (int i = 0; i < reductions; ++i)
      addCollective(CollectiveKind::AllReduce, m_facts.of(layer.target).count * real);
  }

  /// The model assumes that tokens spread evenly: each expert gets tokens * k / experts. If that is less than one, a
  /// step reads the same fraction of the weights.
  void addExperts(const LayerShape& layer, const LayerStrategy& option) {
    const std::int64_t experts = m_graph.shapeOf(layer.weight)[0];
    if (experts == 0) return;
    const std::int64_t in = elements(layer.weight, option.weight);
    const std::int64_t out = elements(layer.down, option.down.value_or(Placement()));
    const double weights = static_cast<double>(saturatingAdd(in, out));
    const double perExpert = static_cast<double>(m_facts.of(layer.target).count) / static_cast<double>(experts);
    const double tokens = 2.0 * static_cast<double>(m_facts.of(layer.input).count);
    const double stored = static_cast<double>(saturatingAdd(held(layer.weight, in), held(layer.down, out)));
    const double moved = tokens * m_facts.of(layer.weight).itemSize + std::min(1.0, perExpert) * stored;
    addCompute(2.0 * perExpert * weights, moved, m_facts.of(m_node).passes);
  }

  /// `isPartial`: each rank has a part of the gradient of the replicated parameter.
  void addParameter(ValueId value, const Placement& placement, bool isPartial) {
    const std::int64_t count = elements(value, placement);
    const ValueFacts& facts = m_facts.of(value);
    m_cost.parameters = saturatingAdd(m_cost.parameters, held(value, count));
    if (!facts.needsGradient) return;
    const std::int64_t gradient = count * facts.itemSize;
    m_cost.gradients = saturatingAdd(m_cost.gradients, gradient);
    m_cost.optimizer = saturatingAdd(
        m_cost.optimizer, saturatingMul(count, optimizerMemory(m_problem.cost.optimizer, facts.itemSize).states));
    if (m_ranks == 1) return;
    if (isPartial) addGradientSum(gradient, m_ranks);
    const auto [shared, replicas] = sharedElements(value, placement, count);
    if (replicas > 1) addGradientSum(shared * facts.itemSize, replicas);
  }

  /// Number of elements of a rank's part that other ranks also have, and the number of ranks with these elements.
  std::pair<std::int64_t, int> sharedElements(ValueId value, const Placement& placement, std::int64_t count) const {
    if (!isInParts(placement, m_ranks)) return {0, 1};
    if (placement.blocks().empty()) return {placement.replicas() > 1 ? count : 0, placement.replicas()};
    const std::int64_t size = m_graph.shapeOf(value)[static_cast<std::size_t>(placement.firstDim())];
    const std::int64_t others = size == 0 ? 0 : m_facts.of(value).count / size;
    std::int64_t shared = 0;
    int replicas = 1;
    for (const rules::Block& block : placement.blocksOf(size)) {
      if (block.replicas <= 1) continue;
      shared += others * (block.size / (m_ranks / block.replicas));
      replicas = std::max(replicas, block.replicas);
    }
    return {shared, replicas};
  }

  void addOperator() {
    const NodeFacts& facts = m_facts.of(m_node);
    if (facts.op->cost == CostClass::Nothing) return;
    const auto reads = m_variables.reads(m_node);
    const auto& results = m_graph.node(m_node).results;
    std::int64_t moved = 0, largest = 0, made = 0;
    for (std::size_t i = 0; i < results.size(); ++i) {
      const std::int64_t count = elements(results[i], computed(i));
      moved = saturatingAdd(moved, count * m_facts.of(results[i]).itemSize);
      largest = std::max(largest, count);
      if (i == 0) made = count;
    }
    const std::int64_t madeBytes = moved;
    for (std::size_t i = 0; i < reads.size(); ++i) {
      if (isRepeated(reads, i)) continue;
      std::int64_t count = elements(reads[i].value, m_placements[i]);
      if (facts.op->cost == CostClass::Lookup && i == 0) count = std::min(count, made);
      moved = saturatingAdd(moved, held(reads[i].value, count));
      largest = std::max(largest, count);
    }
    addCompute(flops(facts, made, largest), static_cast<double>(madeBytes == 0 ? 0 : moved), facts.passes);
  }

  static bool isRepeated(std::span<const Read> reads, std::size_t index) {
    // A long list (a concatenation) rarely has a tensor twice, so only the first ones are compared.
    constexpr std::size_t kFew = 4;
    for (std::size_t j = 0; j < std::min(index, kFew); ++j) {
      if (reads[j].value == reads[index].value) return true;
    }
    return false;
  }

  double flops(const NodeFacts& facts, std::int64_t made, std::int64_t largest) const {
    switch (facts.op->cost) {
      case CostClass::Product:
      case CostClass::Convolution: return 2.0 * static_cast<double>(made) * static_cast<double>(facts.depth);
      case CostClass::Attention: {
        const double query = m_placements.empty()
                                 ? 0
                                 : static_cast<double>(elements(m_variables.reads(m_node)[0].value, m_placements[0]));
        return 2.0 * static_cast<double>(facts.depth) * (query + static_cast<double>(made));
      }
      case CostClass::Lookup: return 0;
      default: return static_cast<double>(largest);
    }
  }

  void addResult(ValueId value, std::size_t index) {
    const ValueFacts& facts = m_facts.of(value);
    const Placement& placement = m_choice.results[index];
    const std::int64_t held = bytes(value, placement);
    if (facts.isSaved) m_cost.activations = saturatingAdd(m_cost.activations, held);
    if (facts.isCached) m_cost.kvCache = saturatingAdd(m_cost.kvCache, held);
    if (m_ranks == 1) return;
    if (facts.isOutput && placement.isSplit()) addCollective(CollectiveKind::AllGather, saturatingMul(held, m_ranks));
    if (computed(index) == placement) return;
    if (placement.isReplicated()) {
      addForwardCollective(CollectiveKind::AllGather, saturatingMul(bytes(value, computed(index)), m_ranks), value);
    } else if (facts.needsGradient) {
      addCollective(CollectiveKind::AllGather, saturatingMul(held, m_ranks));
    }
  }

  /// Adds the memory that autograd saves in addition to values of the graph.
  void addSavedInside() {
    if (m_facts.of(m_node).isAgain) return;
    const Placement operand = m_placements.empty() ? Placement() : m_placements[0];
    const std::int64_t kept =
        Buffers(m_problem, m_variables, m_facts).savedInside(m_node, m_choice.strategy, computed(0), operand);
    m_cost.activations = saturatingAdd(m_cost.activations, kept);
  }

  const Problem& m_problem;
  const Graph& m_graph;
  const Variables& m_variables;
  const CostFacts& m_facts;
  const NodeId m_node;
  const Choice& m_choice;
  const std::span<const Placement> m_placements;
  const int m_ranks;
  StepCost m_cost;
};

CostModel::CostModel(const Problem& problem, const Variables& variables)
    : m_problem(problem), m_variables(variables), m_facts(std::make_unique<const CostFacts>(problem, variables)) {}
CostModel::~CostModel() = default;

StepCost CostModel::step(NodeId node, const Choice& choice, std::span<const Placement> reads) const {
  CLEAVE_CHECK(reads.size() == m_variables.reads(node).size(), "a placement for each operand");
  return StepCounter(m_problem, m_variables, *m_facts, node, choice, reads).count();
}

bool CostModel::mayShare(ValueId value) const {
  const ValueFacts& facts = m_facts->of(value);
  return m_problem.context.worldSize > 1 && (facts.needsGradient || facts.isGathered);
}

Shares CostModel::needsShared(NodeId node, const Choice& choice, std::span<const Placement> reads,
                              std::size_t index) const {
  const Read read = m_variables.reads(node)[index];
  if (!mayShare(read.value)) return kSharesNothing;
  const bool needsGradient = m_facts->of(read.value).needsGradient && m_facts->of(node).needsGradient;
  const int ranks = m_problem.context.worldSize;
  const bool isWhole = !isInParts(reads[index], ranks);
  const auto sums = [&](bool leaves) { return leaves && needsGradient ? kSharesGradientSum : kSharesNothing; };
  if (!choice.strategy) {
    const auto& computed = choice.computedAs.empty() ? choice.results : choice.computedAs;
    return sums(isWhole && std::any_of(computed.begin(), computed.end(),
                                       [&](const Placement& result) { return isInParts(result, ranks); }));
  }
  const LayerStrategy& option = *choice.strategy;
  const bool isSplit = isInParts(option.weight, ranks);
  switch (read.role) {
    case Role::LayerInput:
      if (option.before == CollectiveKind::AllGather) return kSharesGather | sums(isSplit);
      return sums(isWhole && isSplit);
    // Each rank has some of the experts of a token, or part of their features.
    case Role::Routing: return sums(isWhole && isSplit);
    case Role::Weight:
    case Role::Bias: return sums(isWhole && leavesParts(option, read.role, ranks));
    default: return kSharesNothing;
  }
}

Shares CostModel::paysShared(NodeId node, const Choice& choice, std::size_t index) const {
  const std::size_t results = m_problem.graph->node(node).results.size();
  if (!choice.strategy || index < results || !m_facts->of(node).needsGradient) return kSharesNothing;
  const ValueId parameter = m_variables.writes(node)[index];
  const int ranks = m_problem.context.worldSize;
  const bool pays = parameter.isValid() && mayShare(parameter) &&
                    leavesParts(*choice.strategy, kParameterRoles[index - results], ranks);
  return pays ? kSharesGradientSum : kSharesNothing;
}

StepCost CostModel::shared(ValueId value, const Placement& placement, Shares parts) const {
  static const Choice kNone;
  StepCounter counter(m_problem, m_variables, *m_facts, m_problem.graph->value(value).producer, kNone, {});
  const ValueFacts& facts = m_facts->of(value);
  const int ranks = m_problem.context.worldSize;
  const std::int64_t bytes = counter.bytes(value, placement);
  const std::int64_t whole = saturatingMul(bytes, ranks);
  if (parts & kSharesGather) {
    // A graph output is gathered by the step that computes it.
    if (!facts.isOutput) counter.addCollective(CollectiveKind::AllGather, whole);
    if (m_problem.cost.isTraining) counter.addCollective(CollectiveKind::AllGather, whole);
  }
  if (!(parts & kSharesGradientSum)) return counter.cost();
  if (isInParts(placement, ranks)) {
    counter.addCollective(CollectiveKind::ReduceScatter, whole);
  } else if (facts.isParameter) {
    counter.addGradientSum(bytes, ranks);
  } else {
    counter.addCollective(CollectiveKind::AllReduce, bytes);
  }
  return counter.cost();
}

bool CostModel::maySumGradients(NodeId node) const {
  if (!m_problem.cost.isTraining || m_problem.context.worldSize == 1) return false;
  const auto isTrained = [&](ValueId v) {
    return v.isValid() && m_facts->of(v).isParameter && m_facts->of(v).needsGradient;
  };
  const auto reads = m_variables.reads(node);
  const auto writes = m_variables.writes(node);
  return m_problem.graph->node(node).kind == NodeKind::Call &&
         (std::any_of(reads.begin(), reads.end(), [&](const Read& r) { return isTrained(r.value); }) ||
          std::any_of(writes.begin(), writes.end(), isTrained));
}

StepCost CostModel::bucketStart() const {
  return {.trafficFs = Femtoseconds::ofSeconds(m_problem.cost.profile.linkLatencySeconds)};
}

std::uint32_t CostModel::costClass(NodeId node) const { return m_facts->of(node).costClass; }
std::int64_t CostModel::fixedBytes() const { return m_facts->fixedBytes; }

template <class Add>
void CostModel::forEachCost(const Solution& solution, Add add) const {
  const Graph& graph = *m_problem.graph;
  std::vector<Shares> paid(graph.values.size(), kSharesNothing);
  bool isBucketStarted = false;
  const auto addCost = [&](NodeId node, const StepCost& cost) {
    add(node, cost);
    if (cost.summedGradients > 0 && !std::exchange(isBucketStarted, true)) add(node, bucketStart());
  };
  std::vector<Placement> placements;
  for (NodeId node : m_variables.deciders()) {
    const auto reads = m_variables.reads(node);
    const auto writes = m_variables.writes(node);
    placements.clear();
    for (const Read& read : reads) placements.push_back(solution.of(read.value));
    const Choice choice = choiceOf(m_variables, m_problem, solution, node);
    addCost(node, step(node, choice, placements));
    for (std::size_t i = 0; i < writes.size(); ++i) {
      if (writes[i].isValid()) paid[writes[i].index()] |= paysShared(node, choice, i);
    }
    for (std::size_t i = 0; i < reads.size(); ++i) {
      const ValueId value = reads[i].value;
      const Shares parts = needsShared(node, choice, placements, i) & ~paid[value.index()];
      if (parts == kSharesNothing) continue;
      paid[value.index()] |= parts;
      addCost(graph.value(value).producer, shared(value, solution.of(value), parts));
    }
  }
}

std::vector<StepCost> CostModel::byNode(const Solution& solution) const {
  std::vector<StepCost> costs(m_problem.graph->nodes.size());
  forEachCost(solution, [&](NodeId node, const StepCost& cost) { costs[node.index()] += cost; });
  return costs;
}

PlanCost CostModel::evaluate(const Solution& solution) const {
  PlanCost cost;
  forEachCost(solution, [&](NodeId, const StepCost& step) { cost.sum += step; });
  cost.fixedBytes = fixedBytes();
  cost.transientPeak = transientPeak(solution, cost.sum);
  return cost;
}

PlanCost costOf(const Problem& problem, const Solution& solution) {
  const Variables variables(problem);
  return CostModel(problem, variables).evaluate(solution);
}

Choice choiceOf(const Variables& variables, const Problem& problem, const Solution& solution, NodeId node) {
  Choice choice;
  const auto& results = problem.graph->node(node).results;
  choice.results.reserve(results.size());
  for (ValueId result : results) choice.results.push_back(solution.of(result));
  const bool isRedistributed =
      !solution.computedAs.empty() &&
      std::any_of(results.begin(), results.end(), [&](ValueId result) { return solution.computedAs.contains(result); });
  if (isRedistributed) {
    for (ValueId result : results) choice.computedAs.push_back(solution.computed(result));
  }
  if (variables.layer(node)) choice.strategy = solution.strategies[node.index()];
  return choice;
}

}  // namespace cleave::solve
