#include "libtorch/rank/training/replicas.h"

#include "graph/arguments.h"
#include "graph/gradients.h"
#include "graph/operators.h"

#include <ATen/ops/zeros_like.h>

namespace cleave::torch_rank {
namespace {

using graph::ParallelOp;
using graph::ValueId;

/// The source of a value, before operators that copy it.
ValueId withoutCopies(const graph::Graph& graph, ValueId value) {
  while (true) {
    const graph::Node& node = graph.node(graph.value(value).producer);
    const auto own = graph::parallelOp(graph.opName(node));
    const bool isCopy =
        own == ParallelOp::Same || own == ParallelOp::GradAllReduce || graph.opName(node) == "aten::_to_copy";
    if (!isCopy || !graph::operandAt(node, 0).isValid()) return value;
    value = graph::operandAt(node, 0);
  }
}

/// The cross-entropy with mean reduction that computes the loss.
Result<const graph::Node*> meanOverLabels(const graph::Graph& graph, ValueId loss) {
  const graph::Node& node = graph.node(graph.value(withoutCopies(graph, loss)).producer);
  const std::string& name = graph.opName(node);
  const auto& layer = graph::operatorOf(name).layer;
  const bool isCrossEntropy =
      name == graph::kVocabCrossEntropy || (layer && layer->kind == graph::LayerKind::CrossEntropy);
  const bool isMean = graph::integerAt(node, 3) == static_cast<std::int64_t>(LossReduction::Mean);
  if (isCrossEntropy && isMean && !graph::operandAt(node, 2).isValid() && graph::operandAt(node, 1).isValid())
    return &node;
  return fail(ErrorCode::BadInput,
              "The loss {} is not a mean over labels, so the weight of each replica is unknown. Run one replica "
              "(dp=1).",
              graph.value(loss).name);
}

/// Number of labels that count in the program's current inputs.
Result<std::int64_t> countedLabels(const Program& program, const graph::Node& loss) {
  constexpr std::int64_t kIgnored = -100;  // PyTorch's default
  CLEAVE_TRY(const at::Tensor labels, program.evaluate(graph::operandAt(loss, 1)));
  if (at::isFloatingType(labels.scalar_type())) return labels.size(0);
  return labels.ne(graph::integerAt(loss, 4).value_or(kIgnored)).sum().item<std::int64_t>();
}

}  // namespace

double Replicas::lossShare(std::int64_t microBatch) const {
  if (lossShares.empty()) return 1;
  return lossShares[static_cast<std::size_t>(microBatch % std::ssize(lossShares))];
}

Result<std::vector<double>> lossShares(Program& program, const Batches& batches, int replica) {
  std::vector<double> shares;
  const ValueId loss = graph::findGradients(program.graph()).loss;
  if (batches.replicas() == 1 || !loss.isValid()) return shares;
  CLEAVE_TRY(const graph::Node* const mean, meanOverLabels(program.graph(), loss));
  for (std::int64_t microBatch = 0; microBatch < batches.count(); ++microBatch) {
    std::int64_t all = 0, own = 0;
    for (int each = 0; each < batches.replicas(); ++each) {
      CLEAVE_TRY_VOID(batches.give(program, microBatch, each));
      CLEAVE_TRY(const std::int64_t counted, countedLabels(program, *mean));
      all += counted;
      if (each == replica) own = counted;
    }
    // The mean over zero labels is NaN on every replica.
    shares.push_back(all == 0 ? 1.0 / batches.replicas() : static_cast<double>(own) / static_cast<double>(all));
  }
  return shares;
}

Result<NamedTensors> wholeOutputs(NamedTensors outputs, const Replicas& replicas) {
  if (!replicas.counterparts) return outputs;
  for (auto& [name, tensor] : outputs) {
    if (tensor.dim() > 0) {
      CLEAVE_TRY(tensor, replicas.counterparts->allGather(tensor, 0));
      continue;
    }
    const double share = replicas.lossShare(0);
    // The loss of rows without counted labels is NaN.
    at::Tensor part = share > 0 ? tensor.to(at::kDouble).mul(share) : at::zeros_like(tensor, at::kDouble);
    CLEAVE_TRY(part, replicas.counterparts->allReduce(std::move(part), Reduction::Sum));
    tensor = part.to(tensor.scalar_type());
  }
  CLEAVE_TRY_VOID(replicas.counterparts->finish());
  return outputs;
}

}  // namespace cleave::torch_rank
