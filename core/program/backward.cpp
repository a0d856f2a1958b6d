#include "program/backward.h"

#include "graph/arguments.h"
#include "graph/operators.h"
#include "graph/weights.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

namespace cleave::program {
namespace {

using graph::Graph;
using graph::Node;
using graph::NodeId;
using graph::NodeKind;
using graph::ParallelOp;
using graph::ValueId;
using rules::CollectiveKind;

std::string nameOf(const Graph& program, const Node& node) {
  return fmt::format("{} ({})", node.results.empty() ? program.name : program.value(node.results[0]).name,
                     program.opName(node));
}

std::optional<ParallelOp> ownOp(const Graph& program, const Node& node) {
  return node.kind == NodeKind::Call ? graph::parallelOp(program.opName(node)) : std::nullopt;
}

/// Parts of a rank's parameter that other ranks have as well.
std::vector<GradientSum> sharedParts(const ParameterShards& parameter, int ranks) {
  std::vector<GradientSum> parts;
  const rules::Placement& placement = parameter.placement;
  if (placement.isReplicatedOn(ranks)) return parts;
  const std::int64_t all = graph::elementCount(parameter.localShape);
  const int dim = placement.firstDim();
  const auto at = static_cast<std::size_t>(dim);
  if (placement.blocks().empty()) {
    if (placement.replicas() > 1) parts.push_back({.ranks = placement.replicas(), .elements = all});
    return parts;
  }
  const std::int64_t others = parameter.localShape[at] == 0 ? 0 : all / parameter.localShape[at];
  std::int64_t start = 0;
  for (const rules::Block& block : placement.blocksOf(parameter.type.shape[at])) {
    const std::int64_t length = block.size / (ranks / block.replicas);
    if (block.replicas > 1) parts.push_back({{}, block.replicas, dim, start, length, others * length});
    start += length;
  }
  return parts;
}

using ByName = std::unordered_map<std::string_view, const ParameterShards*>;

ByName byName(const ShardMap& parameters) {
  ByName found;
  for (const ParameterShards& parameter : parameters) found.emplace(parameter.name, &parameter);
  return found;
}

/// Types of all values, in the program's order.
class Typing {
 public:
  Typing(const Graph& program, const ByName& parameters, int ranks, Backward& found)
      : m_program(program), m_parameters(parameters), m_ranks(ranks), m_found(found) {
    m_found.types.resize(program.values.size(), SpmdType::Invariant);
  }

  Result<void> run() {
    for (auto id : idRange<NodeId>(m_program.nodes.size())) {
      const Node& node = m_program.node(id);
      if (node.kind == NodeKind::Parameter) type(node.results[0]) = ofParameter(node.results[0]);
      if (node.kind == NodeKind::Call) CLEAVE_TRY_VOID(typeCall(id));
    }
    const SpmdType loss = type(m_found.gradients.loss);
    if (loss == SpmdType::Invariant) return {};
    return fail(ErrorCode::BadInput,
                "The loss {} is {} over the ranks, but training needs the same loss on all of them.",
                m_program.value(m_found.gradients.loss).name, toText(loss));
  }

 private:
  SpmdType& type(ValueId value) { return m_found.types[value.index()]; }
  bool hasGradient(ValueId value) const { return m_found.gradients.of(value); }

  SpmdType ofParameter(ValueId value) const {
    const auto at = m_parameters.find(m_program.value(value).name);
    const bool isSplit = m_ranks > 1 && at != m_parameters.end() && !at->second->placement.isReplicatedOn(m_ranks);
    return isSplit ? SpmdType::Varying : SpmdType::Invariant;
  }

  bool isShared(ValueId value) const {
    if (!hasGradient(value) || !graph::isParameter(m_program, value)) return false;
    const auto at = m_parameters.find(m_program.value(value).name);
    return at != m_parameters.end() && !sharedParts(*at->second, m_ranks).empty();
  }

  Result<void> typeCall(NodeId id) {
    const Node& node = m_program.node(id);
    const auto op = graph::parallelOp(m_program.opName(node));
    if (!op || m_ranks == 1) return typeOperator(id, false);
    switch (*op) {
      case ParallelOp::AllReduce: return reduce(node, SpmdType::Invariant);
      case ParallelOp::ReduceScatter: return reduce(node, SpmdType::Varying);
      case ParallelOp::AllGather:
      case ParallelOp::GatherInput: return step(node, SpmdType::Varying, SpmdType::Invariant);
      case ParallelOp::Shard: return step(node, SpmdType::Invariant, SpmdType::Varying);
      case ParallelOp::Same: return step(node, SpmdType::Varying, SpmdType::Invariant);
      case ParallelOp::GradAllReduce: return sumGradient(node);
      case ParallelOp::VocabCrossEntropy: return step(node, SpmdType::Varying, SpmdType::Invariant);
      case ParallelOp::VocabEmbedding:
      case ParallelOp::LocalExperts: return typeOperator(id, true);
      case ParallelOp::Dropout:
      case ParallelOp::MoeExperts:
      case ParallelOp::GroupedProduct: return typeOperator(id, false);
    }
    return {};
  }

  Result<void> step(const Node& node, SpmdType from, SpmdType to) {
    const ValueId operand = graph::operandAt(node, 0);
    type(node.results[0]) = to;
    if (type(operand) == from) return {};
    return fail(ErrorCode::BadInput, "{} reads {}, which is {} over the ranks, but must be {}.",
                nameOf(m_program, node), m_program.value(operand).name, toText(type(operand)), toText(from));
  }

  Result<void> reduce(const Node& node, SpmdType to) {
    const ValueId operand = graph::operandAt(node, 0);
    CLEAVE_TRY_VOID(step(node, SpmdType::Varying, to));
    type(operand) = SpmdType::Partial;
    if (m_program.value(operand).users.size() == 1) return {};
    return fail(ErrorCode::BadInput, "{} sums {}, but {} also reads a rank's part of that sum.",
                nameOf(m_program, node), m_program.value(operand).name,
                nameOf(m_program, m_program.node(m_program.value(operand).users[0])));
  }

  Result<void> sumGradient(const Node& node) {
    const ValueId operand = graph::operandAt(node, 0);
    if (type(operand) == SpmdType::Varying && graph::isParameter(m_program, operand)) {
      type(node.results[0]) = SpmdType::Varying;
      return {};
    }
    return step(node, SpmdType::Invariant, SpmdType::Replicated);
  }

  Result<void> typeOperator(NodeId id, bool dependsOnRank) {
    const Node& node = m_program.node(id);
    const auto operands = graph::operandsOf(node);
    const auto anyIs = [&](SpmdType wanted) {
      return std::find_if(operands.begin(), operands.end(), [&](ValueId operand) {
        return type(operand) == wanted && (wanted == SpmdType::Varying || hasGradient(operand));
      });
    };
    const bool differs = dependsOnRank || anyIs(SpmdType::Varying) != operands.end();
    const auto invariant = anyIs(SpmdType::Invariant), replicated = anyIs(SpmdType::Replicated);
    const SpmdType result = differs                        ? SpmdType::Varying
                            : replicated != operands.end() ? SpmdType::Replicated
                                                           : SpmdType::Invariant;
    for (ValueId value : node.results) type(value) = result;
    if (!m_found.gradients.of(id)) return {};
    for (ValueId operand : operands) {
      if (!isShared(operand)) continue;
      return fail(
          ErrorCode::BadInput,
          "{} reads {}, whose parts several ranks share, but no grad_all_reduce sums their gradients. Plan it for "
          "training.",
          nameOf(m_program, node), m_program.value(operand).name);
    }
    if (result == SpmdType::Invariant || invariant == operands.end()) return {};
    return fail(
        ErrorCode::BadInput,
        "{} does different work on each rank and reads {}, which is the same on all. Each rank has a part of its "
        "gradient, but no grad_all_reduce sums them. Plan it for training.",
        nameOf(m_program, node), m_program.value(*invariant).name);
  }

  const Graph& m_program;
  const ByName& m_parameters;
  const int m_ranks;
  Backward& m_found;
};

/// Collectives in the order of the backward pass over the nodes.
class Listing {
 public:
  Listing(const Graph& program, const ByName& parameters, int ranks, Backward& found)
      : m_program(program), m_parameters(parameters), m_ranks(ranks), m_found(found) {}

  void run() {
    for (std::size_t n = m_program.nodes.size(); n-- > 0;) {
      const Node& node = m_program.nodes[n];
      if (node.kind != NodeKind::Call || !m_found.gradients.ofNode[n]) continue;
      runAgain(NodeId(n));
      if (const auto op = graph::parallelOp(m_program.opName(node))) {
        addOf(*op, NodeId(n));
      } else {
        gatherAgain(NodeId(n));
      }
    }
    addBucket();
  }

 private:
  void add(CollectiveKind kind, std::int64_t bytes, NodeId node) {
    m_found.collectives.push_back({{kind, bytes}, node, m_ranks});
  }

  void addOf(ParallelOp op, NodeId id) {
    const Node& node = m_program.node(id);
    const ValueId operand = graph::operandAt(node, 0);
    if (!m_found.gradients.of(operand)) return;
    if (op == ParallelOp::ReduceScatter || op == ParallelOp::Shard)
      add(CollectiveKind::AllGather, m_program.bytesOf(operand), id);
    if (op != ParallelOp::GradAllReduce || graph::isParameter(m_program, operand)) return;
    const Node& producer = m_program.node(m_program.value(operand).producer);
    add(ownOp(m_program, producer) == ParallelOp::GatherInput ? CollectiveKind::ReduceScatter
                                                              : CollectiveKind::AllReduce,
        m_program.bytesOf(operand), id);
  }

  /// A layer needs its whole input for the gradient of its weight, but the rank has kept only its part.
  void gatherAgain(NodeId id) { gatherAgain(gatheredAgain(m_program, m_found.gradients, id), id); }
  void gatherAgain(ValueId gathered, NodeId id) {
    if (!gathered.isValid() || m_found.checkpoints.isAgain(m_program.value(gathered).producer)) return;
    if (m_again.insert(gathered).second) add(CollectiveKind::AllGather, m_program.bytesOf(gathered), id);
  }

  /// The block whose backward pass begins with this node.
  void runAgain(NodeId last) {
    for (const graph::CheckpointedBlock& block : m_found.checkpoints.blocks) {
      if (block.last != last) continue;
      for (const NodeId id : block.again) {
        for (const ValueId operand : graph::operandsOf(m_program.node(id))) {
          const ValueId value = withoutGradientSum(m_program, operand);
          if (isGatheredAgain(m_program, m_found.gradients, value)) gatherAgain(value, id);
        }
        for (const Collective& collective : collectivesOf(m_program, id)) add(collective.kind, collective.bytes, id);
      }
    }
  }

  void addBucket() {
    findSums();
    for (std::size_t i = 0; i < m_found.sums.size();) {
      const GradientSum& first = m_found.sums[i];
      const graph::DType dtype = m_program.value(first.parameter).type.dtype;
      std::int64_t elements = 0;
      for (; i < m_found.sums.size() && isOneSum(first, m_found.sums[i]); ++i) elements += m_found.sums[i].elements;
      m_found.collectives.push_back(
          {{CollectiveKind::AllReduce, elements * graph::itemSize(dtype)}, NodeId(), first.ranks});
    }
  }

  void findSums() {
    for (const Node& node : m_program.nodes) {
      if (ownOp(m_program, node) != ParallelOp::GradAllReduce || m_ranks == 1) continue;
      const ValueId value = graph::operandAt(node, 0);
      if (!graph::isParameter(m_program, value) || !m_found.gradients.of(value)) continue;
      if (m_found.types[value.index()] == SpmdType::Invariant) {
        m_found.sums.push_back(
            {.parameter = value, .ranks = m_ranks, .elements = graph::elementCount(m_program.shapeOf(value))});
        continue;
      }
      const auto at = m_parameters.find(m_program.value(value).name);
      if (at == m_parameters.end()) continue;
      for (GradientSum part : sharedParts(*at->second, m_ranks)) {
        part.parameter = value;
        m_found.sums.push_back(part);
      }
    }
    std::stable_sort(m_found.sums.begin(), m_found.sums.end(),
                     [this](const auto& a, const auto& b) { return keyOf(a) < keyOf(b); });
  }

  std::pair<int, graph::DType> keyOf(const GradientSum& sum) const {
    return {sum.ranks, m_program.value(sum.parameter).type.dtype};
  }
  bool isOneSum(const GradientSum& a, const GradientSum& b) const { return keyOf(a) == keyOf(b); }

  const Graph& m_program;
  const ByName& m_parameters;
  const int m_ranks;
  Backward& m_found;
  std::unordered_set<ValueId> m_again;
};

}  // namespace

std::string_view toText(SpmdType type) {
  switch (type) {
    case SpmdType::Invariant: return "invariant";
    case SpmdType::Replicated: return "replicated";
    case SpmdType::Varying: return "varying";
    case SpmdType::Partial: return "partial";
  }
  return "";
}

ValueId withoutGradientSum(const Graph& program, ValueId value) {
  const Node& node = program.node(program.value(value).producer);
  return ownOp(program, node) == ParallelOp::GradAllReduce ? graph::operandAt(node, 0) : value;
}

namespace {

/// True if a linear layer reads the value only as its input.
const graph::LayerArguments* layerOf(const Graph& program, const Node& node, ValueId input) {
  const auto& layer = graph::operatorOf(program.opName(node)).layer;
  if (node.kind != NodeKind::Call || !layer || layer->kind != graph::LayerKind::Linear) return nullptr;
  const auto operands = graph::operandsOf(node);
  const bool isInput = graph::operandAt(node, static_cast<std::size_t>(layer->input)) == input &&
                       std::count(operands.begin(), operands.end(), input) == 1;
  return isInput ? &*layer : nullptr;
}

bool needsInput(const Graph& program, const graph::Gradients& gradients, NodeId id,
                const graph::LayerArguments& layer) {
  const ValueId weight = graph::operandAt(program.node(id), static_cast<std::size_t>(layer.weight));
  return gradients.of(id) && weight.isValid() && gradients.of(weight);
}

}  // namespace

bool isGatheredAgain(const Graph& program, const graph::Gradients& gradients, ValueId gathered) {
  if (ownOp(program, program.node(program.value(gathered).producer)) != ParallelOp::GatherInput) return false;
  std::vector<ValueId> seen{gathered};
  bool isNeeded = false;
  for (std::size_t i = 0; i < seen.size(); ++i) {
    for (const NodeId user : program.value(seen[i]).users) {
      const Node& node = program.node(user);
      if (ownOp(program, node) == ParallelOp::GradAllReduce) {
        seen.push_back(node.results[0]);
        continue;
      }
      const auto* layer = layerOf(program, node, seen[i]);
      if (!layer) return false;
      isNeeded = isNeeded || needsInput(program, gradients, user, *layer);
    }
  }
  return isNeeded;
}

ValueId gatheredAgain(const Graph& program, const graph::Gradients& gradients, NodeId id) {
  const Node& node = program.node(id);
  const auto& layer = graph::operatorOf(program.opName(node)).layer;
  if (node.kind != NodeKind::Call || !layer || layer->kind != graph::LayerKind::Linear) return {};
  const ValueId input = graph::operandAt(node, static_cast<std::size_t>(layer->input));
  if (!input.isValid() || !needsInput(program, gradients, id, *layer)) return {};
  const ValueId gathered = withoutGradientSum(program, input);
  return isGatheredAgain(program, gradients, gathered) ? gathered : ValueId();
}

Result<Backward> backwardOf(const Graph& program, const ShardMap& parameters, int ranks,
                            const std::vector<std::string>& checkpointed) {
  Backward found;
  found.gradients = graph::findGradients(program);
  if (!found.gradients.loss.isValid()) {
    const std::string frozen =
        program.frozen.empty() ? "" : fmt::format(" ({} are frozen or buffers)", program.frozen.size());
    return fail(ErrorCode::BadInput,
                "The program has no loss for training: no output is a single real number that depends on a trained "
                "parameter{}. Plan with labels and --loss on, or export a program that returns its loss.",
                frozen);
  }
  found.checkpoints = graph::findCheckpoints(program, found.gradients, checkpointed);
  const ByName named = byName(parameters);
  CLEAVE_TRY_VOID(Typing(program, named, ranks, found).run());
  if (ranks > 1) Listing(program, named, ranks, found).run();
  return found;
}

}  // namespace cleave::program
