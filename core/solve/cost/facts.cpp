#include "solve/cost/facts.h"

#include "graph/arguments.h"
#include "graph/attention.h"
#include "graph/saves.h"
#include "graph/states.h"
#include "solve/cost/flops.h"

#include <algorithm>
#include <array>
#include <span>
#include <utility>

namespace cleave::solve {
namespace {

using graph::CostClass;
using graph::DType;
using graph::Node;
using graph::NodeKind;
using graph::operandAt;
using graph::Saves;

double flopsPerSecond(const DeviceProfile& profile, DType dtype) {
  if (dtype == DType::Float64) return profile.doubleFlopsPerSecond;
  return graph::isFloatingPoint(dtype) && graph::itemSize(dtype) <= 2 ? profile.halfFlopsPerSecond
                                                                      : profile.floatFlopsPerSecond;
}

/// True if generation reads keys and values again: causal attention, attention masked over its own positions, or a
/// single position, which needs no mask. An encoder's attention has no cache.
bool isCausal(const Graph& graph, const Node& node) {
  constexpr std::size_t kMask = 3, kIsCausal = 5;
  if (graph::flagAt(node, kIsCausal).value_or(false)) return true;
  const ValueId query = operandAt(node, 0), key = operandAt(node, 1);
  const auto positions = [&](ValueId value) {
    const graph::Shape& shape = graph.shapeOf(value);
    return shape.size() < 2 ? 0 : shape[shape.size() - 2];
  };
  if (!query.isValid() || !key.isValid() || positions(query) != positions(key)) return false;
  return positions(query) == 1 || (operandAt(node, kMask).isValid() && positions(operandAt(node, kMask)) > 1);
}

/// Fills in the facts of values and nodes, one pass per kind of fact.
class FactFinder {
 public:
  FactFinder(const Problem& problem, const Variables& variables, CostFacts& facts)
      : m_problem(problem),
        m_graph(*problem.graph),
        m_variables(variables),
        m_lifetimes(facts.lifetimes),
        m_values(facts.values),
        m_nodes(facts.nodes),
        m_backward(facts.backward),
        m_checkpoints(facts.checkpoints) {
    for (const std::string& op : m_graph.ops) m_rows.push_back(&graph::operatorOf(op));
  }

  void find() {
    for (NodeId id : idRange<NodeId>(m_graph.nodes.size())) findWork(id);
    // State that is carried to the next step stays split, so it is not gathered like an output.
    for (const graph::Output& output : m_graph.outputs)
      fact(output.value).isOutput = fact(output.value).isOutput || !graph::isPresent(output.name);
    if (m_problem.cost.isTraining) {
      const graph::Gradients gradients = graph::findGradients(m_graph);
      applyGradients(gradients);
      if (m_problem.cost.checkpointsActivations) applyCheckpoints(gradients);
      findSaved(gradients);
      findGradients();
    }
    for (NodeId id : idRange<NodeId>(m_graph.nodes.size())) findPasses(id);
    if (!m_problem.cost.isTraining) findCached();
    if (m_problem.context.sequenceParallel != rules::SequenceParallel::Off) findGathered();
    for (NodeId id : idRange<NodeId>(m_graph.nodes.size())) findHolders(id);
    addOutputs();
    for (NodeId id : idRange<NodeId>(m_graph.nodes.size())) classify(id);
  }

 private:
  ValueFacts& fact(ValueId value) { return m_values[value.index()]; }
  DType dtype(ValueId value) const { return m_graph.value(value).type.dtype; }
  bool isReal(ValueId value) const { return m_values[value.index()].isReal; }

  /// Operands in argument order. Valid until the next call.
  std::span<const ValueId> operandsOf(NodeId id) {
    m_operands.clear();
    if (m_variables.layer(id)) {
      graph::forEachOperand(m_graph.node(id), [&](ValueId operand) { m_operands.push_back(operand); });
    } else {
      for (const Read& read : m_variables.reads(id)) m_operands.push_back(read.value);
    }
    return m_operands;
  }

  void findType(ValueId value) {
    const graph::TensorType& type = m_graph.value(value).type;
    fact(value).count = graph::elementCount(type.shape);
    fact(value).itemSize = graph::itemSize(type.dtype);
    fact(value).isReal = graph::isFloatingPoint(type.dtype);
  }

  void findWork(NodeId id) {
    const Node& node = m_graph.node(id);
    NodeFacts& facts = m_nodes[id.index()];
    for (ValueId result : node.results) findType(result);
    if (node.kind != NodeKind::Call) {
      for (ValueId result : node.results) {
        fact(result).isParameter = node.kind == NodeKind::Parameter;
        fact(result).isPacked = m_graph.packedBytes.contains(m_graph.value(result).name);
      }
      return;
    }
    facts.op = m_rows[node.op.index()];
    facts.depth = workDepth(m_graph, node, *facts.op);
    const auto operands = operandsOf(id);
    const auto real = std::find_if(operands.begin(), operands.end(), [&](ValueId v) { return isReal(v); });
    const ValueId measured = real != operands.end() ? *real : node.results.empty() ? ValueId() : node.results[0];
    if (measured.isValid()) facts.flopsPerSecond = flopsPerSecond(m_problem.cost.profile, dtype(measured));
  }

  void applyGradients(const graph::Gradients& gradients) {
    for (ValueId value : idRange<ValueId>(m_values.size())) {
      fact(value).needsGradient = gradients.of(value);
      fact(value).isOutput = gradients.isOutput[value.index()];
    }
    for (NodeId id : idRange<NodeId>(m_nodes.size()))
      m_nodes[id.index()].needsGradient = m_graph.node(id).kind == NodeKind::Call && gradients.of(id);
  }

  void findPasses(NodeId id) {
    if (m_nodes[id.index()].needsGradient)
      m_nodes[id.index()].passes = static_cast<std::int8_t>(1 + backwardPasses(id, operandsOf(id)));
    if (m_nodes[id.index()].isAgain) ++m_nodes[id.index()].passes;
  }

  /// Finds the owners of gradients, their first contributors, and the nodes after which no memory is saved.
  void findGradients() {
    m_backward.gradientOwner.resize(m_values.size());
    m_backward.lastReader.resize(m_values.size());
    for (NodeId id : idRange<NodeId>(m_graph.nodes.size())) {
      const Node& node = m_graph.node(id);
      for (ValueId result : node.results) {
        const bool isView = node.kind == NodeKind::Call && !m_lifetimes.ownsMemory(result);
        const ValueId base = isView ? m_backward.gradientOwner[operandAt(node, 0).index()] : result;
        m_backward.gradientOwner[result.index()] = fact(result).count > fact(base).count ? result : base;
      }
      if (!m_nodes[id.index()].needsGradient) continue;
      for (ValueId operand : operandsOf(id))
        m_backward.lastReader[m_backward.gradientOwner[operand.index()].index()] = id;
    }
    for (std::size_t n = m_graph.nodes.size(); n-- > 0 && m_isSaver.size() > n;) {
      m_nodes[n].isLastToSave = true;
      if (m_isSaver[n]) break;
    }
  }

  int backwardPasses(NodeId id, std::span<const ValueId> operands) {
    switch (m_nodes[id.index()].op->cost) {
      case CostClass::Attention: return 2;
      case CostClass::Product:
      case CostClass::Convolution: break;
      default: return 1;
    }
    // Added vectors have fewer dimensions than the factors, and their cost is negligible.
    const auto& layer = m_variables.layer(id);
    if (layer) return int{fact(layer->input).needsGradient} + int{fact(layer->weight).needsGradient};
    int passes = 0;
    for (int i = 0; i < std::ssize(operands); ++i)
      passes += i != m_nodes[id.index()].op->added && fact(operands[static_cast<std::size_t>(i)]).needsGradient;
    return std::min(passes, 2);
  }

  void applyCheckpoints(const graph::Gradients& gradients) {
    m_checkpoints = graph::findCheckpoints(m_graph, gradients, graph::checkpointableBlocks(m_graph, gradients));
    for (NodeId id : idRange<NodeId>(m_nodes.size())) m_nodes[id.index()].isAgain = m_checkpoints.isAgain(id);
    for (ValueId value : idRange<ValueId>(m_values.size())) fact(value).isNeededAgain = m_checkpoints.isNeeded(value);
  }

  /// `saver`: the last node in the backward pass that needs the memory; `node`: the node that saves it.
  void save(ValueId value, NodeId saver, NodeId node) {
    const ValueId owner = m_lifetimes.ownerOf(value);
    if (!m_lifetimes.ownsMemory(owner)) return;
    m_isSaver[node.index()] = true;
    NodeId& first = m_backward.firstSaver[owner.index()];
    if (!std::exchange(fact(owner).isSaved, true) || saver < first) first = saver;
  }
  void saveAgain(ValueId value, NodeId node) {
    const ValueId owner = m_lifetimes.ownerOf(value);
    if (!m_lifetimes.ownsMemory(owner) || !m_checkpoints.isAgain(m_graph.value(owner).producer)) return;
    if (!std::exchange(fact(owner).isSavedAgain, true)) m_backward.firstSaverAgain[owner.index()] = node;
  }

  void findSaved(const graph::Gradients& gradients) {
    m_isSaver.resize(m_graph.nodes.size(), false);
    m_backward.firstSaver.resize(m_values.size());
    m_backward.firstSaverAgain.resize(m_values.size());
    m_backward.lastAgain.resize(m_values.size());
    for (NodeId id : idRange<NodeId>(m_graph.nodes.size())) {
      const bool keepsAgain = m_checkpoints.keeps(id);
      const bool isInside = graph::forEachSaved(
          m_graph, gradients, id, [&](ValueId value) { keepsAgain ? saveAgain(value, id) : save(value, id, id); });
      if (isInside && !keepsAgain) m_isSaver[id.index()] = true;
      if (!m_checkpoints.isAgain(id)) continue;
      for (ValueId operand : operandsOf(id)) m_backward.lastAgain[m_lifetimes.ownerOf(operand).index()] = id;
    }
    // The inputs of a block stay until its backward pass has finished.
    for (const graph::CheckpointedBlock& block : m_checkpoints.blocks) {
      for (const ValueId kept : block.kept) save(kept, block.again.front(), block.last);
    }
  }

  /// Finds cached values: the graph's own states if it declares them, else keys and values of causal attention.
  void findCached() {
    const std::vector<graph::State> states = graph::statesOf(m_graph);
    for (const graph::State& state : states) fact(state.present).isCached = true;
    if (!states.empty() || !m_problem.cost.holdsKvCache) return;
    for (NodeId id : idRange<NodeId>(m_graph.nodes.size())) findCached(id);
  }

  void findCached(NodeId id) {
    const Node& node = m_graph.node(id);
    if (m_nodes[id.index()].op->cost != CostClass::Attention || !isCausal(m_graph, node)) return;
    for (std::size_t position : {std::size_t{1}, std::size_t{2}}) {
      const ValueId value = operandAt(node, position);
      if (value.isValid()) fact(graph::beforeRepetition(m_graph, value)).isCached = true;
    }
  }

  void findGathered() {
    for (NodeId id : idRange<NodeId>(m_graph.nodes.size())) {
      const auto& layer = m_variables.layer(id);
      if (layer && layer->kind == graph::LayerKind::Linear) fact(layer->input).isGathered = true;
    }
  }

  /// ValueFacts::cutAlong of a view. A view that keeps all elements may change the dimensions, so a view of a piece is
  /// kPieces.
  int cutAlong(ValueId view, ValueId base) const {
    const ValueFacts& held = m_values[base.index()];
    if (!held.isPart || held.cutAlong != ValueFacts::kAll) return ValueFacts::kPieces;
    if (m_values[view.index()].count == held.count) return ValueFacts::kAll;
    const graph::Shape &piece = m_graph.shapeOf(view), &whole = m_graph.shapeOf(base);
    if (piece.size() != whole.size()) return ValueFacts::kPieces;
    int along = ValueFacts::kPieces, differing = 0;
    for (std::size_t dim = 0; dim < whole.size(); ++dim) {
      if (piece[dim] == whole[dim]) continue;
      along = static_cast<int>(dim);
      ++differing;
    }
    return differing == 1 && piece[static_cast<std::size_t>(along)] < whole[static_cast<std::size_t>(along)]
               ? along
               : ValueFacts::kPieces;
  }

  /// Follows views to their base, but not through a redistribution, which allocates new memory.
  void findHolders(NodeId id) {
    const Node& node = m_graph.node(id);
    if (node.kind != NodeKind::Call) return;
    for (ValueId result : node.results) {
      ValueFacts& facts = fact(result);
      const bool isOwner = m_lifetimes.ownsMemory(result);
      const ValueId base = isOwner ? result : operandAt(node, 0);
      if (!isOwner &&
          (m_variables.isRedistributable(result) || m_lifetimes.ownerOf(base) != m_lifetimes.ownerOf(result)))
        continue;
      const ValueFacts& held = fact(base);
      facts.isPart = isOwner || (held.isPart && facts.count <= held.count);
      facts.cutAlong = isOwner ? ValueFacts::kAll : cutAlong(result, base);
      facts.heldBy = !isOwner ? held.heldBy : facts.isSaved || facts.isCached ? ValueId() : result;
      if (!facts.needsGradient) continue;
      const ValueId gradient = m_backward.gradientOwner[result.index()];
      const bool isGiven = fact(gradient).isOutput || m_backward.lastReader[gradient.index()].isValid();
      if (gradient == result || gradient == held.gradientIn) facts.gradientIn = isGiven ? gradient : ValueId();
    }
  }

  /// Adds up the memory of the outputs, each once. A value with fewer elements than ranks is replicated.
  void addOutputs() {
    const auto leastOf = [&](ValueId owner) {
      const ValueFacts& facts = fact(owner);
      const int parts = facts.count < m_problem.context.worldSize ? 1 : m_problem.context.worldSize;
      return facts.count * facts.itemSize / parts;
    };
    std::vector<ValueId> owners;
    std::int64_t all = 0;
    for (const graph::Output& output : m_graph.outputs) {
      const ValueId owner = fact(output.value).isOutput ? fact(output.value).heldBy : ValueId();
      if (!owner.isValid() || std::find(owners.begin(), owners.end(), owner) != owners.end()) continue;
      owners.push_back(owner);
      all = saturatingAdd(all, leastOf(owner));
    }
    for (const graph::Output& output : m_graph.outputs) {
      ValueFacts& facts = fact(output.value);
      if (facts.isOutput && facts.heldBy.isValid()) facts.otherOutputs = all - leastOf(facts.heldBy);
    }
  }

  /// Adds the facts of an owner that leastTransient uses. The first read with the same owner represents all of them.
  template <class OwnerOf>
  void addOwner(std::span<const Read> reads, std::size_t index, OwnerOf ownerOf) {
    const ValueId owner = ownerOf(fact(reads[index].value));
    const auto first =
        std::find_if(reads.begin(), reads.end(), [&](const Read& read) { return ownerOf(fact(read.value)) == owner; });
    m_key += static_cast<char>(owner.isValid() | (owner == reads[index].value) << 1);
    addNumber(first - reads.begin());
    addNumber(owner.isValid() ? fact(owner).count * fact(owner).itemSize : 0);
  }

  /// Sets the class of all facts that `step`, `needsShared`, `shared` and `leastTransient` use and sameStructure does
  /// not compare.
  void classify(NodeId id) {
    const Node& node = m_graph.node(id);
    const NodeFacts& facts = m_nodes[id.index()];
    m_key.assign({static_cast<char>(node.kind), static_cast<char>(facts.isLastToSave | facts.isAgain << 1)});
    const auto add = [&](ValueId value) {
      const ValueFacts& f = fact(value);
      m_key +=
          static_cast<char>(f.needsGradient | f.isGathered << 1 | f.isSaved << 2 | f.isCached << 3 | f.isOutput << 4 |
                            (f.gradientIn == value) << 5 | (f.heldBy == value) << 6 | f.isNeededAgain << 7);
      if (f.isPacked) addNumber(m_graph.heldBytes(value));
      if (!f.isOutput) return;
      addNumber(f.otherOutputs);
      m_key += static_cast<char>(f.heldBy.isValid() | f.isPart << 1);
      m_key += static_cast<char>(f.cutAlong);
      addNumber(f.heldBy.isValid() ? fact(f.heldBy).count * fact(f.heldBy).itemSize : 0);
    };
    for (ValueId written : m_variables.writes(id)) written.isValid() ? add(written) : m_key.push_back('-');
    const auto reads = m_variables.reads(id);
    for (std::size_t i = 0; i < reads.size(); ++i) {
      const ValueFacts& f = fact(reads[i].value);
      m_key += static_cast<char>(f.needsGradient | f.isGathered << 1 | f.isParameter << 2 | f.isPart << 3);
      m_key += static_cast<char>(f.cutAlong);
      if (f.isPacked) addNumber(m_graph.heldBytes(reads[i].value));
      addOwner(reads, i, [](const ValueFacts& facts) { return facts.heldBy; });
      addOwner(reads, i, [](const ValueFacts& facts) { return facts.gradientIn; });
    }
    if (node.kind != NodeKind::Call) {
      if (!m_variables.isStep(id)) add(node.results[0]);
      addType(m_graph.value(node.results[0]).type);
    }
    m_nodes[id.index()].costClass =
        m_classes.try_emplace(m_key, static_cast<std::uint32_t>(m_classes.size())).first->second;
  }

  void addType(const graph::TensorType& type) {
    m_key += static_cast<char>(type.dtype);
    for (const std::int64_t size : type.shape) addNumber(size);
  }
  void addNumber(std::int64_t number) { m_key.append(reinterpret_cast<const char*>(&number), sizeof number); }

  const Problem& m_problem;
  const Graph& m_graph;
  const Variables& m_variables;
  const graph::Lifetimes& m_lifetimes;
  std::vector<ValueFacts>& m_values;
  std::vector<NodeFacts>& m_nodes;
  BackwardFacts& m_backward;
  graph::Checkpoints& m_checkpoints;
  std::vector<bool> m_isSaver;                 ///< by node
  std::vector<const graph::Operator*> m_rows;  ///< by OpId
  std::unordered_map<std::string, std::uint32_t> m_classes;
  std::vector<ValueId> m_operands;  ///< operands of the current node
  std::string m_key;                ///< key of the current node
};

}  // namespace

CostFacts::CostFacts(const Problem& problem, const Variables& variables)
    : lifetimes(*problem.graph), values(problem.graph->values.size()), nodes(problem.graph->nodes.size()) {
  FactFinder(problem, variables, *this).find();
  for (const Node& node : problem.graph->nodes) {
    if (node.kind != NodeKind::Input && node.kind != NodeKind::Constant) continue;
    // The memory of a cache is counted at the node that writes it.
    if (node.kind == NodeKind::Input && graph::isPast(problem.graph->value(node.results.front()).name)) continue;
    for (ValueId result : node.results)
      fixedBytes = saturatingAdd(fixedBytes, values[result.index()].count * values[result.index()].itemSize);
  }
}

}  // namespace cleave::solve
