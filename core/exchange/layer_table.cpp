#include "exchange/layer_table.h"

#include "base/characters.h"
#include "base/json.h"
#include "exchange/wildcard_name.h"
#include "graph/attention.h"
#include "graph/op_names.h"
#include "graph/operators.h"
#include "graph/weights.h"
#include "solve/problem/strategy_text.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

namespace cleave::exchange {
namespace {

using graph::Graph;
using graph::LayerKind;
using graph::LayerShape;
using graph::Node;
using graph::NodeId;
using graph::NodeKind;
using graph::ValueId;
using rules::Placement;
using rules::Strategy;

Cut cutOf(const Placement& placement, int ranks) {
  if (placement.isReplicatedOn(ranks)) return Cut::Whole;
  if (!placement.blocks().empty()) return Cut::Blocks;
  if (placement.replicas() > 1) return Cut::Copied;
  return placement.padding() > 0 ? Cut::Uneven : Cut::Even;
}

bool readsSequence(Strategy strategy) {
  return strategy == Strategy::GatherColumn || strategy == Strategy::GatherReplicated ||
         strategy == Strategy::ReplicatedOnSequence;
}

bool writesSequence(Strategy strategy) {
  return strategy == Strategy::RowScatter || strategy == Strategy::VocabScatter ||
         strategy == Strategy::ReplicatedOnSequence;
}

class TableMaker {
 public:
  explicit TableMaker(const plan::Plan& plan) : m_plan(plan), m_graph(*plan.graph), m_parents(m_graph.values.size()) {
    std::iota(m_parents.begin(), m_parents.end(), std::size_t{0});
    findWeights();
  }

  LayerTable make() && {
    m_table.ranks = m_plan.spec.ranks;
    m_table.modelType = m_plan.model.modelType;
    for (NodeId node : idRange<NodeId>(m_graph.nodes.size())) joinAt(node);
    markSequence();
    for (NodeId node : idRange<NodeId>(m_graph.nodes.size())) {
      if (m_plan.solution->strategies[node.index()]) {
        addLayer(node);
      } else {
        visitOther(node);
      }
    }
    for (const graph::Output& output : m_graph.outputs) {
      if (const auto region = regionOf(output.value)) m_table.regions[*region].reachesOutput = true;
    }
    for (Region& region : m_table.regions) tidy(region);
    tidy(m_sequence);
    m_table.sequenceModules = m_sequence.replicatedModules;
    markHead();
    for (const Layer& experts : m_table.layers) {
      if (experts.kind == LayerKind::Experts) markRouter(experts.name.substr(0, experts.name.rfind('.')));
    }
    return std::move(m_table);
  }

 private:
  bool isSplit(ValueId value) const { return !m_plan.solution->of(value).isReplicatedOn(m_plan.spec.ranks); }
  /// True for an activation of which each rank has a part.
  bool isPart(ValueId value) const {
    return m_graph.node(m_graph.value(value).producer).kind == NodeKind::Call && !m_isOfSources[value.index()] &&
           isSplit(value);
  }

  /// Values computed only from sources: weights before they are multiplied.
  void findWeights() {
    m_isOfSources.resize(m_graph.values.size());
    for (NodeId id : idRange<NodeId>(m_graph.nodes.size())) {
      const Node& node = m_graph.node(id);
      bool isOfSources = node.kind != NodeKind::Input && !m_plan.solution->strategies[id.index()];
      graph::forEachOperand(node, [&](ValueId v) { isOfSources = isOfSources && m_isOfSources[v.index()]; });
      for (const ValueId result : node.results) m_isOfSources[result.index()] = isOfSources;
    }
  }

  std::size_t rootOf(std::size_t value) {
    while (m_parents[value] != value) value = m_parents[value] = m_parents[m_parents[value]];
    return value;
  }

  /// Values that a node reads and computes in parts belong to one region. Layers are the borders of regions, so they
  /// join nothing.
  void joinAt(NodeId id) {
    if (m_plan.solution->strategies[id.index()]) return;
    const Node& node = m_graph.node(id);
    std::optional<std::size_t> first;
    const auto join = [&](ValueId value) {
      if (!isPart(value)) return;
      const std::size_t root = rootOf(value.index());
      first ? m_parents[root] = *first : *(first = root);
    };
    graph::forEachOperand(node, join);
    for (ValueId result : node.results) join(result);
  }

  /// The residual stream between layers that split the sequence is not a region: each of its layers records it.
  void markSequence() {
    for (NodeId id : idRange<NodeId>(m_graph.nodes.size())) {
      const auto& option = m_plan.solution->strategies[id.index()];
      if (!option) continue;
      const auto shape = graph::layerShape(m_graph, id);
      if (readsSequence(option->strategy) && isPart(shape->input)) m_onSequence.insert(rootOf(shape->input.index()));
      if (writesSequence(option->strategy)) m_onSequence.insert(rootOf(m_graph.node(id).results[0].index()));
    }
  }

  std::optional<std::size_t> regionOf(ValueId value) {
    if (!isPart(value)) return std::nullopt;
    const std::size_t root = rootOf(value.index());
    if (m_onSequence.contains(root)) {
      m_table.usesSequence = true;
      return std::nullopt;
    }
    const auto [found, isNew] = m_regionOf.try_emplace(root, m_table.regions.size());
    if (isNew) m_table.regions.emplace_back();
    return found->second;
  }

  bool isOnSequence(const Node& node) {
    bool is = false;
    graph::forEachOperand(
        node, [&](ValueId value) { is = is || (isPart(value) && m_onSequence.contains(rootOf(value.index()))); });
    return is;
  }

  void addLayer(NodeId id) {
    const LayerShape shape = *graph::layerShape(m_graph, id);
    const rules::LayerStrategy option = *m_plan.solution->strategies[id.index()];
    if (shape.kind == LayerKind::CrossEntropy) return addLoss(shape, option);
    Layer layer;
    layer.name = graph::layerName(m_graph, id);
    layer.node = id;
    layer.kind = shape.kind;
    layer.strategy = solve::effectiveStrategy(option, m_plan.spec.ranks);
    const ValueId parameter = graph::mainParameter(m_graph, shape.weight);
    layer.weight = m_graph.value(parameter).name;
    layer.shape = m_graph.shapeOf(parameter);
    layer.placement = m_plan.solution->of(parameter);
    layer.localShape = layer.placement.localShape(layer.shape, m_plan.spec.ranks).value_or(layer.shape);
    layer.cut = cutOf(layer.placement, m_plan.spec.ranks);
    layer.isPrepared = !graph::isCastParameter(m_graph, shape.weight);
    layer.hasBias = shape.bias.isValid();
    layer.isTransposed = shape.kind == LayerKind::Linear && shape.outAxis > shape.inAxis;
    layer.isInTurn = shape.kind == LayerKind::Experts && graph::areInTurn(shape);
    layer.readsSequence = readsSequence(option.strategy);
    layer.writesSequence = writesSequence(option.strategy);
    const std::size_t index = indexOf(layer.name);
    if (index == m_table.layers.size()) m_table.layers.push_back(layer);
    Layer& kept = m_table.layers[index];
    if (const auto region = regionOf(shape.input)) {
      kept.input = region;
      m_table.regions[*region].consumers.push_back(index);
    }
    if (const auto region = regionOf(m_graph.node(id).results[0])) {
      kept.output = region;
      m_table.regions[*region].producers.push_back(index);
    }
  }

  std::size_t indexOf(const std::string& name) {
    return m_indexOf.try_emplace(name, m_table.layers.size()).first->second;
  }

  void addLoss(const LayerShape& shape, const rules::LayerStrategy& option) {
    m_table.hasLoss = true;
    if (option.strategy == Strategy::Vocab) m_table.splitsLoss = true;
    if (const auto region = regionOf(shape.input)) m_table.regions[*region].reachesLoss = true;
  }

  void visitOther(NodeId id) {
    const Node& node = m_graph.node(id);
    if (node.kind != NodeKind::Call) return;
    std::optional<std::size_t> region;
    bool hasPart = false;
    if (isOnSequence(node)) {
      graph::forEachOperand(node, [&](ValueId value) { addSource(m_sequence, value); });
    }
    graph::forEachOperand(node, [&](ValueId value) {
      if (!isPart(value)) return;
      hasPart = true;
      if (const auto found = regionOf(value)) region = found;
    });
    for (ValueId result : node.results) {
      const auto found = regionOf(result);
      if (!found) continue;
      region = found;
      if (!hasPart) addCut(m_table.regions[*found], node, result);
      if (m_plan.solution->computedAs.contains(result))
        m_table.regions[*found].obstacles.push_back(
            fmt::format("`{}` is redistributed between layers", m_graph.value(result).name));
    }
    if (!region) return;
    Region& found = m_table.regions[*region];
    if (isAttention(node)) addAttention(found, id);
    graph::forEachOperand(node, [&](ValueId value) { addSource(found, value); });
  }

  /// Parts that come from a replicated value: a KV head that is repeated for a rank's queries, or a value that no
  /// library splits.
  void addCut(Region& region, const Node& node, ValueId result) {
    const std::string_view op = graph::shortName(m_graph.opName(node));
    if (op == "expand" || op == "repeat" || op == "repeat_interleave") {
      if (region.sharedHeads.empty()) region.sharedHeads = "ranks share KV heads";
    } else {
      region.obstacles.push_back(
          fmt::format("`{}` is computed in parts from a replicated value", m_graph.value(result).name));
    }
  }

  /// Walks back from the outputs and the loss, across nodes that are not layers.
  void markHead() {
    std::vector<bool> isSeen(m_graph.nodes.size());
    std::vector<NodeId> queue;
    std::set<std::string> found;
    const auto visit = [&](ValueId value) {
      const NodeId node = m_graph.value(value).producer;
      if (isSeen[node.index()]) return;
      isSeen[node.index()] = true;
      const auto shape = graph::layerShape(m_graph, node);
      if (shape && shape->kind != LayerKind::CrossEntropy) {
        found.insert(graph::layerName(m_graph, node));
      } else {
        queue.push_back(node);
      }
    };
    for (const graph::Output& output : m_graph.outputs) visit(output.value);
    while (!queue.empty()) {
      const NodeId node = queue.back();
      queue.pop_back();
      graph::forEachOperand(m_graph.node(node), visit);
    }
    if (found.size() != 1) return;
    const auto head = m_indexOf.find(*found.begin());
    if (head != m_indexOf.end())
      m_table.layers[head->second].isHead = m_table.layers[head->second].kind == LayerKind::Linear;
  }

  /// A product of two computed values. In Transformers that is attention, as one operator or decomposed.
  bool isAttention(const Node& node) const {
    const graph::CostClass cost = graph::operatorOf(m_graph.opName(node)).cost;
    if (cost == graph::CostClass::Attention) return true;
    const std::vector<ValueId> operands = graph::operandsOf(node);
    return cost == graph::CostClass::Product && std::all_of(operands.begin(), operands.end(), [&](ValueId value) {
             return m_graph.node(m_graph.value(value).producer).kind == NodeKind::Call;
           });
  }

  /// Modules repeat each KV head for its queries by the numbers of the whole model, so each rank must have its share of
  /// both.
  void addAttention(Region& region, NodeId id) {
    region.hasAttention = true;
    const std::vector<ValueId> operands = graph::operandsOf(m_graph.node(id));
    const auto heads = graph::headsOf(m_graph, id);
    const auto areShared = [&](ValueId value) { return !isSplit(value) || m_plan.solution->of(value).replicas() > 1; };
    const bool isShared =
        std::any_of(operands.begin(), operands.begin() + std::min<std::ptrdiff_t>(3, std::ssize(operands)),
                    areShared) ||
        (heads && heads->keyValue % m_plan.spec.ranks != 0);
    if (heads) region.heads = *heads;
    if (isShared) {
      region.sharedHeads = heads && heads->keyValue % m_plan.spec.ranks != 0
                               ? rules::doesNotDivide(heads->keyValue, "KV head", m_plan.spec.ranks)
                               : std::string("ranks share KV heads");
    }
  }

  void addSource(Region& region, ValueId value, int depth = 0) {
    const Node& source = m_graph.node(m_graph.value(value).producer);
    const std::string& name = m_graph.value(value).name;
    if (source.kind == NodeKind::Call) {
      // A norm may transform its weight: 1 + weight, in float32.
      constexpr int kMostSteps = 3;
      if (depth < kMostSteps && !isSplit(value) && !m_plan.solution->strategies[m_graph.value(value).producer.index()])
        graph::forEachOperand(source, [&](ValueId operand) { addSource(region, operand, depth + 1); });
    } else if (isSplit(value)) {
      region.obstacles.push_back(fmt::format("`{}` is split, but belongs to no layer", wildcardName(name)));
    } else if (source.kind == NodeKind::Parameter && name.find('.') != std::string::npos) {
      region.replicatedModules.push_back(name.substr(0, name.rfind('.')));
    }
  }

  /// Modules of their own class, not Linear: "mlp.gate", "mlp.router".
  void markRouter(const std::string& block) {
    for (const std::string_view name : {".gate", ".router"}) {
      if (const auto found = m_indexOf.find(block + std::string(name)); found != m_indexOf.end())
        m_table.layers[found->second].isRouter = true;
    }
  }

  static void tidy(Region& region) {
    const auto once = [](auto& items) {
      std::sort(items.begin(), items.end());
      items.erase(std::unique(items.begin(), items.end()), items.end());
    };
    once(region.producers);
    once(region.consumers);
    once(region.replicatedModules);
    once(region.obstacles);
  }

  const plan::Plan& m_plan;
  const Graph& m_graph;
  LayerTable m_table;
  std::vector<bool> m_isOfSources;                ///< by ValueId
  std::vector<std::size_t> m_parents;             ///< by ValueId: union-find
  Region m_sequence;                              ///< index of the region it collects
  std::set<std::size_t> m_onSequence;             ///< roots
  std::map<std::size_t, std::size_t> m_regionOf;  ///< by root
  std::map<std::string, std::size_t> m_indexOf;   ///< layers by name
};

}  // namespace

LayerTable layerTable(const plan::Plan& plan) { return TableMaker(plan).make(); }

Result<void> checkNames(const LayerTable& table) {
  const auto isPlain = [](std::string_view name) { return !name.empty() && hasOnlyLettersDigitsAnd("_.", name); };
  const auto refuse = [](const std::string& name) {
    return fail(ErrorCode::BadInput, "The module {} cannot be named in Python. Use only letters, digits, _ and dots.",
                quotedText(name));
  };
  for (const Layer& layer : table.layers) {
    if (!isPlain(layer.name)) return refuse(layer.name);
  }
  for (const Region& region : table.regions) {
    for (const std::string& module : region.replicatedModules) {
      if (!isPlain(module)) return refuse(module);
    }
  }
  return {};
}

}  // namespace cleave::exchange
