#include "graph/arguments.h"
#include "graph/gradients.h"
#include "graph/graph_builder.h"
#include "graph/layers.h"
#include "graph/operators.h"
#include "graph/states.h"
#include "plan/build/gather.h"
#include "plan/build/plan_request.h"
#include "plan/build/steps.h"

#include <unordered_map>
#include <unordered_set>

/// Strategies of the layers: Megatron-LM, arXiv:1909.08053 section 3 (column, row, vocabulary) and arXiv:2205.05198
/// section 4.2.2 (sequence parallelism: all-gather before column, reduce-scatter after row).
///
/// A value of the program has the name of the ATen value it holds; what comes before a collective is called "X.partial"
/// (a sum not yet complete), "X.reduced" (before the bias) or "X.part", and the whole of a split value "X.gathered".
///
/// A program for training ends at the loss, and each value that ranks hold alike and do different work with goes there
/// through one grad_all_reduce, called "X.summed" (program/backward.h).

namespace cleave::plan {
namespace {

using graph::Argument;
using graph::GraphBuilder;
using graph::LayerKind;
using graph::LayerShape;
using graph::Node;
using graph::NodeKind;
using graph::ScopeId;
using graph::TensorType;
using graph::ValueList;
using rules::CollectiveKind;
using rules::LayerStrategy;

class ProgramBuilder {
 public:
  explicit ProgramBuilder(const PlanRequest& request)
      : m_request(request),
        m_graph(*request.problem->graph),
        m_solution(*request.solution),
        m_ranks(request.problem->context.worldSize),
        m_builder(m_graph.name),
        m_valueOf(m_graph.values.size()) {
    if (request.problem->cost.isTraining) m_gradients = graph::findGradients(m_graph);
  }

  Result<Replaced> build() && {
    for (const graph::Value& value : m_graph.values) m_taken.insert(value.name);
    for (const graph::Scope& scope : m_graph.scopes) m_scopes.push_back(m_builder.scope(scope.path, scope.className));
    for (NodeId id : idRange<NodeId>(m_graph.nodes.size())) {
      CLEAVE_TRY_VOID(addNode(id));
      CLEAVE_TRY_VOID(redistribute(id));
      for (const ValueId result : m_graph.node(id).results) markSame(result, id);
      for (const ValueId result : m_graph.node(id).results) noteAlike(local(result), result);
    }
    for (const graph::Output& output : m_graph.outputs) {
      if (m_gradients && !m_gradients->isOutput[output.value.index()]) continue;
      const bool isGathered = m_request.gatherOutputs && !graph::isPresent(output.name);
      m_builder.addOutput(output.name, isGathered ? whole(output.value) : local(output.value));
    }
    for (const auto& value : m_graph.values) {
      const auto tied = m_graph.tiedNames.find(value.name);
      if (tied == m_graph.tiedNames.end()) continue;
      for (const std::string& other : tied->second) m_builder.addTiedName(value.name, other);
    }
    for (const std::string& name : m_graph.frozen) m_builder.freeze(name);
    CLEAVE_TRY(Graph program, std::move(m_builder).finish());
    Replaced replaced;
    replaced.program = std::make_shared<const Graph>(std::move(program));
    replaced.valueOf = std::move(m_valueOf);
    replaced.collectives = listCollectives(*replaced.program);
    return replaced;
  }

 private:
  std::vector<CollectivePlan> listCollectives(const Graph& program) const {
    std::vector<CollectivePlan> list;
    for (NodeId id : idRange<NodeId>(program.nodes.size())) {
      for (const program::Collective& collective : program::collectivesOf(program, id)) {
        const auto completes = m_completes.find(id.raw());
        const std::string& own = program.value(program.node(id).results[0]).name;
        list.push_back(
            {completes != m_completes.end() ? completes->second : own, collective.kind, collective.bytes, id});
      }
    }
    return list;
  }

  Result<TensorType> localType(ValueId id) const {
    const graph::Value& value = m_graph.value(id);
    const Placement& placement = m_solution.computed(id);
    if (placement.isReplicated()) return value.type;
    auto shape = placement.localShape(value.type.shape, m_ranks);
    if (!shape) {
      return fail(ErrorCode::BadInput, "{} cannot be {} on {} ranks: {}.", value.name, placement.text(), m_ranks,
                  placement.whyNotDivisible(value.type.shape, m_ranks));
    }
    return TensorType{value.type.dtype, std::move(*shape)};
  }

  ValueId local(ValueId value) const { return m_valueOf[value.index()]; }

  /// The whole of a value on every rank; one all-gather serves all who ask (q, k and v; gate and up).
  ValueId whole(ValueId value) {
    const Placement& placement = m_solution.of(value);
    if (placement.isReplicated() || m_ranks == 1) return local(value);
    ValueId& gathered = m_gathered[value];
    if (!gathered.isValid()) {
      const graph::Value& info = m_graph.value(value);
      const ScopeId scope = m_graph.node(info.producer).scope;
      gathered = m_gradients && placement.isPlainSplit()
                     ? call(graph::kGatherInput, {local(value), std::int64_t{placement.firstDim()}}, info.type,
                            info.name + ".gathered", scope, info.producer, value)
                     : gather(local(value), placement, info.type, value, info.name + ".gathered", scope);
      if (hasGradient(value)) m_alike.emplace(gathered, value);
    }
    return gathered;
  }

  // ---- gradients

  bool isInParts(const Placement& placement) const { return !placement.isReplicatedOn(m_ranks); }
  bool hasGradient(ValueId value) const { return m_gradients && m_ranks > 1 && m_gradients->of(value); }

  /// A value that has a gradient and is the same on all ranks, or a parameter of which several hold the same part.
  void noteAlike(ValueId held, ValueId value) {
    if (!held.isValid() || !hasGradient(value)) return;
    const Placement& placement = m_solution.of(value);
    const bool isParameter = m_graph.node(m_graph.value(value).producer).kind == NodeKind::Parameter;
    const auto blocks = placement.blocks();
    const bool isShared = placement.isSplit() && isParameter &&
                          (placement.replicas() > 1 || std::any_of(blocks.begin(), blocks.end(), [](const auto& block) {
                             return block.replicas > 1;
                           }));
    if (placement.isReplicatedOn(m_ranks) || isShared) m_alike.emplace(held, value);
  }

  /// What a rank has from its own part of something (one head for keys, of a fused layer whose queries are split) and
  /// all have alike: whoever reads it is to see one value with one gradient.
  void markSame(ValueId result, NodeId id) {
    ValueId& held = m_valueOf[result.index()];
    if (!hasGradient(result) || isInParts(m_solution.of(result)) || !m_varying.contains(held)) return;
    const graph::Value& info = m_graph.value(result);
    m_builder.renameValue(held, unique(info.name + ".own", result));
    m_named.erase(result);
    const TensorType type = m_builder.current().value(held).type;
    held = call(graph::kSame, {held}, type, info.name, m_graph.node(id).scope, id, result);
  }

  /// What different work reads of values that the ranks hold alike: their gradients are parts of a sum.
  void sumGradients(std::vector<Argument>& args) {
    const auto summed = [this](ValueId& value) {
      const auto alike = m_alike.find(value);
      if (alike == m_alike.end()) return;
      const auto [at, isNew] = m_summed.try_emplace(value);
      if (isNew) {
        const graph::Value info = m_builder.current().value(value);
        const ScopeId scope = m_graph.node(m_graph.value(alike->second).producer).scope;
        at->second = call(graph::kGradAllReduce, {value}, info.type, info.name + ".summed", scope,
                          m_graph.value(alike->second).producer, alike->second);
      }
      value = at->second;
    };
    for (Argument& argument : args) {
      if (auto* value = std::get_if<ValueId>(&argument)) summed(*value);
      if (auto* list = std::get_if<ValueList>(&argument)) std::for_each(list->begin(), list->end(), summed);
    }
  }

  bool anyVaries(const std::vector<Argument>& args) const {
    const auto varies = [this](ValueId value) { return m_varying.contains(value); };
    return std::any_of(args.begin(), args.end(), [&](const Argument& argument) {
      if (const auto* value = std::get_if<ValueId>(&argument)) return varies(*value);
      const auto* list = std::get_if<ValueList>(&argument);
      return list && std::any_of(list->begin(), list->end(), varies);
    });
  }

  /// Returns true if results differ between ranks. If the work differs, gradients of its operands are summed.
  bool prepareWork(std::string_view op, std::vector<Argument>& args, bool isTrained) {
    using graph::ParallelOp;
    const auto own = graph::parallelOp(op);
    if (own == ParallelOp::ReduceScatter || own == ParallelOp::Shard) return true;
    if (own == ParallelOp::AllReduce || own == ParallelOp::AllGather || own == ParallelOp::GatherInput ||
        own == ParallelOp::VocabCrossEntropy || own == ParallelOp::Same)
      return false;
    const bool differs = anyVaries(args) || own == ParallelOp::VocabEmbedding || own == ParallelOp::LocalExperts;
    if (differs && isTrained && own != ParallelOp::GradAllReduce) sumGradients(args);
    return differs;
  }

  ValueId gather(ValueId part, const Placement& placement, const TensorType& wholeType, ValueId of,
                 const std::string& name, ScopeId scope) {
    const NodeId origin = m_graph.value(of).producer;
    const auto append = [&](std::string_view op, std::vector<Argument> args, TensorType type) {
      return call(op, std::move(args), std::move(type), name, scope, origin, of);
    };
    return addGather(m_builder.current(), append, part, placement, wholeType, m_ranks);
  }

  /// Appends a call with one result of the given name; `of` is the ATen value that its collectives complete or feed.
  ValueId call(std::string_view op, std::vector<Argument> args, TensorType type, const std::string& name, ScopeId scope,
               NodeId origin, ValueId of) {
    const bool varies = prepareWork(op, args, hasGradient(of));
    const ValueId result =
        m_builder.addCall(op, std::move(args), {std::move(type)}, m_scopes[scope.index()], origin)[0];
    if (varies) m_varying.insert(result);
    m_builder.renameValue(result, unique(name, of));
    m_completes[m_builder.current().value(result).producer.raw()] = m_graph.value(of).name;
    return result;
  }

  /// A name that neither the ATen graph nor the program has yet; an ATen value's own name is kept for it.
  std::string unique(const std::string& name, ValueId of) {
    if (name == m_graph.value(of).name && m_named.insert(of).second) return name;
    std::string candidate = name;
    for (int n = 2; !m_taken.insert(candidate).second; ++n) candidate = fmt::format("{}{}", name, n);
    return candidate;
  }

  Result<void> addNode(NodeId id) {
    const Node& node = m_graph.node(id);
    if (node.kind != NodeKind::Call) return addSource(id);
    if (graph::isDropout(m_graph, node)) return addDropout(id);
    const auto& option = m_solution.strategies[id.index()];
    if (!option || m_ranks == 1) return copy(id);
    const auto layer = graph::layerShape(m_graph, id);
    CLEAVE_CHECK(layer.has_value(), "node {} has a strategy, but is not a layer", id.index());
    switch (layer->kind) {
      case LayerKind::Linear: return addLinear(id, *layer, *option);
      case LayerKind::Embedding: return addEmbedding(id, *layer, *option);
      case LayerKind::CrossEntropy: return addCrossEntropy(id, *layer, *option);
      case LayerKind::Experts: return addExperts(id, *layer, *option);
    }
    return {};
  }

  /// Values that the user lets change their placement right after they are computed: gathered, or cut on each rank.
  Result<void> redistribute(NodeId id) {
    const Node& node = m_graph.node(id);
    for (const ValueId result : node.results) {
      const auto changed = m_solution.computedAs.find(result);
      if (changed == m_solution.computedAs.end() || m_ranks == 1) continue;
      const graph::Value& info = m_graph.value(result);
      const Placement& from = changed->second;
      const Placement& to = m_solution.of(result);
      const auto shape = to.localShape(info.type.shape, m_ranks);
      if (!(from.isPlainSplit() && to.isReplicated()) && !(from.isReplicated() && to.isPlainSplit() && shape)) {
        return fail(ErrorCode::BadInput, "{} cannot go from {} to {} on {} ranks.", info.name, from.text(), to.text(),
                    m_ranks);
      }
      ValueId& held = m_valueOf[result.index()];
      m_builder.renameValue(held, unique(info.name + (to.isReplicated() ? ".part" : ".whole"), result));
      m_named.erase(result);
      held = to.isReplicated() ? gather(held, from, info.type, result, info.name, node.scope)
                               : call(graph::kShard, {held, std::int64_t{to.firstDim()}}, {info.type.dtype, *shape},
                                      info.name, node.scope, id, result);
    }
    return {};
  }

  Result<void> addSource(NodeId id) {
    const Node& node = m_graph.node(id);
    const graph::Value& value = m_graph.value(node.results[0]);
    CLEAVE_TRY(TensorType type, localType(node.results[0]));
    const ScopeId scope = m_scopes[node.scope.index()];
    ValueId& held = m_valueOf[node.results[0].index()];
    switch (node.kind) {
      case NodeKind::Input: held = m_builder.addInput(value.name, std::move(type)); break;
      case NodeKind::Parameter: held = m_builder.addParameter(value.name, std::move(type), scope); break;
      case NodeKind::Constant: {
        const auto data = m_graph.constants.find(id.raw());
        CLEAVE_CHECK(data != m_graph.constants.end(), "constant {} has no data", value.name);
        held = m_builder.addConstant(value.name, value.type, data->second, scope);
        const Placement& placement = m_solution.of(node.results[0]);
        if (placement.isReplicatedOn(m_ranks)) break;
        // All ranks run one program, so that each cuts its part out of the whole.
        held = call(graph::kShard, {held, std::int64_t{placement.firstDim()}}, std::move(type), value.name + ".part",
                    node.scope, id, node.results[0]);
        break;
      }
      case NodeKind::Call: break;
    }
    if (isInParts(m_solution.of(node.results[0]))) m_varying.insert(held);
    return {};
  }

  /// Arguments with values of the program in place of the ATen graph's; `from` becomes `to` where given.
  std::vector<Argument> mapped(std::vector<Argument> args, ValueId from = {}, ValueId to = {}) const {
    const auto map = [&](ValueId value) { return !value.isValid() ? value : value == from ? to : local(value); };
    for (Argument& argument : args) {
      if (auto* value = std::get_if<ValueId>(&argument)) *value = map(*value);
      if (auto* list = std::get_if<ValueList>(&argument)) {
        for (ValueId& value : *list) value = map(value);
      }
    }
    return args;
  }

  std::vector<Argument> localArguments(NodeId id) const {
    const Node& node = m_graph.node(id);
    std::vector<Placement> operands, results;
    bool anySplit = false;
    for (ValueId operand : graph::operandsOf(node)) operands.push_back(m_solution.of(operand));
    for (ValueId result : node.results) results.push_back(m_solution.computed(result));
    for (const auto* list : {&operands, &results}) {
      for (const Placement& placement : *list) anySplit = anySplit || placement.isSplit();
    }
    if (!anySplit || m_ranks == 1) return node.args;
    return rules::localArguments({m_graph, id, operands, m_ranks}, results);
  }

  /// The same operator on local shapes; `from` (its whole input) is read as `to` where given.
  Result<void> copy(NodeId id, ValueId from = {}, ValueId to = {}) {
    const Node& node = m_graph.node(id);
    std::vector<TensorType> types;
    for (ValueId result : node.results) {
      CLEAVE_TRY(types.emplace_back(), localType(result));
    }
    std::vector<Argument> args = mapped(localArguments(id), from, to);
    const bool anySplit = std::any_of(node.results.begin(), node.results.end(),
                                      [this](ValueId result) { return isInParts(m_solution.computed(result)); });
    const bool varies = anyVaries(args) || anySplit;
    if (varies && m_gradients && m_gradients->of(id)) sumGradients(args);
    const auto results =
        m_builder.addCall(m_graph.opName(node), std::move(args), std::move(types), m_scopes[node.scope.index()], id);
    for (std::size_t i = 0; i < results.size(); ++i) {
      if (varies) m_varying.insert(results[i]);
      m_named.insert(node.results[i]);
      m_builder.renameValue(results[i], m_graph.value(node.results[i]).name);
      m_valueOf[node.results[i].index()] = results[i];
    }
    return {};
  }

  ValueId layerInput(const LayerShape& layer, const LayerStrategy& option) {
    return option.before == CollectiveKind::AllGather ? whole(layer.input) : local(layer.input);
  }

  Result<void> addLinear(NodeId id, const LayerShape& layer, const LayerStrategy& option) {
    const ValueId input = layerInput(layer, option);
    if (!option.after) return copy(id, layer.input, input);
    const Node& node = m_graph.node(id);
    const ValueId result = node.results[0];
    const graph::Value& info = m_graph.value(result);
    std::vector<Argument> args = mapped(node.args, layer.input, input);
    if (*option.after == CollectiveKind::AllGather) {
      const int last = static_cast<int>(info.type.shape.size()) - 1;
      const Placement split = option.weight.shifted(last - layer.outAxis);
      const auto shape = split.localShape(info.type.shape, m_ranks);
      if (!shape)
        return fail(ErrorCode::BadInput, "{} cannot be computed as {} on {} ranks.", info.name, split.text(), m_ranks);
      const ValueId part = call(m_graph.opName(node), std::move(args), {info.type.dtype, *shape}, info.name + ".part",
                                node.scope, id, result);
      m_valueOf[result.index()] = gather(part, split, info.type, result, info.name, node.scope);
      return {};
    }
    // A bias added before the reduction would be added once a rank.
    std::string_view op = m_graph.opName(node);
    if (layer.bias.isValid()) {
      const graph::LayerArguments& row = *graph::operatorOf(op).layer;
      if (row.withoutBias.empty()) {
        args[static_cast<std::size_t>(row.bias)] = std::monostate();
      } else {
        op = row.withoutBias;
        args = {args[static_cast<std::size_t>(row.input)], args[static_cast<std::size_t>(row.weight)]};
      }
    }
    const ValueId partial = call(op, std::move(args), info.type, info.name + ".partial", node.scope, id, result);
    return addReduction(id, *option.after, partial, layer.bias);
  }

  /// partial sum → all-reduce or reduce-scatter → bias.
  Result<void> addReduction(NodeId id, CollectiveKind kind, ValueId partial, ValueId bias) {
    const Node& node = m_graph.node(id);
    const ValueId result = node.results[0];
    const std::string& name = m_graph.value(result).name;
    CLEAVE_TRY(const TensorType type, localType(result));
    std::vector<Argument> args{partial};
    if (kind == CollectiveKind::ReduceScatter) args.push_back(std::int64_t{m_solution.computed(result).firstDim()});
    const std::string_view op = kind == CollectiveKind::ReduceScatter ? graph::kReduceScatter : graph::kAllReduce;
    ValueId reduced =
        call(op, std::move(args), type, bias.isValid() ? name + ".reduced" : name, node.scope, id, result);
    if (bias.isValid()) {
      reduced = call("aten::add.Tensor", {reduced, local(bias), std::int64_t{1}}, type, name, node.scope, id, result);
    }
    m_valueOf[result.index()] = reduced;
    return {};
  }

  Result<void> addEmbedding(NodeId id, const LayerShape& layer, const LayerStrategy& option) {
    if (rules::axisOf(option.strategy) != "vocab") return copy(id);
    const Node& node = m_graph.node(id);
    const ValueId result = node.results[0];
    const graph::Value& info = m_graph.value(result);
    const std::int64_t vocab = m_graph.shapeOf(layer.weight)[static_cast<std::size_t>(layer.outAxis)];
    const Argument padding = node.args.size() > 2 ? node.args[2] : Argument(std::int64_t{-1});
    const ValueId partial = call(graph::kVocabEmbedding, {local(layer.weight), local(layer.input), vocab, padding},
                                 info.type, info.name + ".partial", node.scope, id, result);
    return addReduction(id, option.after.value_or(CollectiveKind::AllReduce), partial, {});
  }

  Result<void> addExperts(NodeId id, const LayerShape& layer, const LayerStrategy& option) {
    if (!option.after) return copy(id);
    const Node& node = m_graph.node(id);
    const ValueId result = node.results[0];
    const graph::Value& info = m_graph.value(result);
    std::vector<Argument> args = mapped(node.args);
    const bool isByExpert = option.strategy == rules::Strategy::ByExpert;
    if (isByExpert) args.push_back(m_graph.shapeOf(layer.weight)[0]);
    const ValueId partial = call(isByExpert ? graph::kLocalExperts : graph::kMoeExperts, std::move(args), info.type,
                                 info.name + ".partial", node.scope, id, result);
    return addReduction(id, *option.after, partial, {});
  }

  /// What is dropped is the same however the value is split, and where it is not.
  Result<void> addDropout(NodeId id) {
    const Node& node = m_graph.node(id);
    const ValueId result = node.results[0];
    const graph::Value& info = m_graph.value(result);
    CLEAVE_TRY(TensorType type, localType(result));
    std::vector<Argument> args{local(graph::operandAt(node, 0)), graph::numberAt(node, 1).value_or(0),
                               static_cast<std::int64_t>(id.index()), info.type.shape,
                               m_solution.computed(result).text()};
    m_valueOf[result.index()] =
        call(graph::kDropout, std::move(args), std::move(type), info.name, node.scope, id, result);
    return {};
  }

  Result<void> addCrossEntropy(NodeId id, const LayerShape& layer, const LayerStrategy& option) {
    if (rules::axisOf(option.strategy) != "vocab") return copy(id);
    const Node& node = m_graph.node(id);
    const ValueId result = node.results[0];
    const graph::Value& info = m_graph.value(result);
    std::vector<Argument> args = mapped(node.args);
    const std::vector<Argument> defaults{{}, {}, {}, std::int64_t{1}, std::int64_t{-100}, 0.0};
    while (args.size() < defaults.size()) args.push_back(defaults[args.size()]);
    args.push_back(m_graph.shapeOf(layer.input).back());
    m_valueOf[result.index()] =
        call(graph::kVocabCrossEntropy, std::move(args), info.type, info.name, node.scope, id, result);
    return {};
  }

  const PlanRequest& m_request;
  const Graph& m_graph;
  const solve::Solution& m_solution;
  const int m_ranks;
  GraphBuilder m_builder;
  std::vector<ScopeId> m_scopes;                               ///< by ScopeId of the ATen graph
  std::vector<ValueId> m_valueOf;                              ///< by ValueId of the ATen graph
  std::unordered_map<ValueId, ValueId> m_gathered;             ///< ATen value → its whole
  std::optional<graph::Gradients> m_gradients;                 ///< of the ATen graph, for training
  std::unordered_set<ValueId> m_varying;                       ///< program values that ranks have each their own of
  std::unordered_map<ValueId, ValueId> m_alike;                ///< program value that ranks hold alike → ATen value
  std::unordered_map<ValueId, ValueId> m_summed;               ///< of these → what different work reads
  std::unordered_map<std::uint32_t, std::string> m_completes;  ///< program node → ATen value
  std::unordered_set<std::string> m_taken;
  std::unordered_set<ValueId> m_named;  ///< ATen values whose name the program has given out
};

}  // namespace

Result<Replaced> replace(const PlanRequest& request) { return ProgramBuilder(request).build(); }

}  // namespace cleave::plan
