#include "libtorch/rank/parallel_ops.h"

#include "base/quantities.h"
#include "graph/arguments.h"
#include "libtorch/bridge/experts.h"
#include "libtorch/bridge/grouped_product.h"
#include "libtorch/bridge/types.h"

namespace cleave::torch_rank {
namespace {

/// The first element of `values` outside [low, high) where `counts` is true. On a device nothing is asked, because the
/// answer would make the host wait: inputs are checked before they get there (index_range.h).
std::optional<std::int64_t> firstOutside(const at::Tensor& values, std::int64_t low, std::int64_t high,
                                         const at::Tensor& counts) {
  if (!values.is_cpu()) return std::nullopt;
  const at::Tensor bad = ((values < low) | (values >= high)) & counts;
  if (!bad.any().item<bool>()) return std::nullopt;
  return values.masked_select(bad)[0].item<std::int64_t>();
}

/// `experts` and the first of this rank's; all of them where the operator does not say.
Result<at::Tensor> experts(std::vector<c10::IValue>& arguments, bool isLocal, int rank) {
  const at::Tensor gateUp = arguments[3].toTensor();
  bridge::ExpertsCall call{.hidden = arguments[0].toTensor(),
                           .ids = arguments[1].toTensor(),
                           .shares = arguments[2].toTensor(),
                           .gateUp = gateUp,
                           .down = arguments[4].toTensor(),
                           .activation = arguments[5].toStringView(),
                           .gateUpBias = arguments[6].toOptional<at::Tensor>(),
                           .alpha = arguments[7].toDouble(),
                           .limit = arguments[8].toDouble(),
                           .experts = gateUp.size(0)};
  if (isLocal) {
    call.experts = arguments[9].toInt();
    call.first = rank * gateUp.size(0);
  }
  return bridge::runExperts(call);
}

/// This rank's part of a tensor that every rank holds in full.
Result<at::Tensor> shard(const at::Tensor& x, std::int64_t dim, Collectives& collectives) {
  if (dim < 0 || dim >= x.dim() || x.size(dim) % collectives.worldSize() != 0) {
    return fail(ErrorCode::BadInput, "cleave::shard cannot cut dimension {} of this tensor for {} ranks.", dim,
                collectives.worldSize());
  }
  const std::int64_t length = x.size(dim) / collectives.worldSize();
  return x.narrow(dim, collectives.rank() * length, length).contiguous();
}

}  // namespace

Result<void> checkCall(ParallelOp op, const graph::Node& node) {
  CLEAVE_TRY_VOID(graph::checkArguments(op, node));
  if (op != ParallelOp::VocabCrossEntropy) return {};
  const auto reduction = std::get<std::int64_t>(node.args[3]);
  if (reduction < 0 || reduction > 2) {
    return fail(ErrorCode::BadInput, "{}: reduction must be 0, 1 or 2, not {}.", graph::kVocabCrossEntropy, reduction);
  }
  if (graph::numberAt(node, 5) != 0.0) {
    return fail(ErrorCode::BadInput, "{}: label smoothing needs the entire vocabulary on every rank.",
                graph::kVocabCrossEntropy);
  }
  return {};
}

Result<at::Tensor> vocabEmbedding(const at::Tensor& weight, const at::Tensor& ids, std::int64_t vocabulary, int rank) {
  if (const auto bad = firstOutside(ids, 0, vocabulary, at::ones_like(ids, at::kBool))) {
    return fail(ErrorCode::BadInput, "token id {} is outside the vocabulary of {}.", *bad, vocabulary);
  }
  const std::int64_t rows = weight.size(0);
  const at::Tensor local = ids - rank * rows;
  const at::Tensor isOther = (local < 0) | (local >= rows);
  return at::embedding(weight, local.masked_fill(isOther, 0)).masked_fill_(isOther.unsqueeze(-1), 0);
}

Result<at::Tensor> vocabCrossEntropy(const at::Tensor& logits, const at::Tensor& target, LossReduction reduction,
                                     std::int64_t ignoreIndex, std::int64_t vocabulary, Collectives& collectives) {
  if (at::isFloatingType(target.scalar_type())) {
    return fail(ErrorCode::BadInput, "labels must be class indices, not {}.", bridge::describe(target));
  }
  const std::int64_t classDim = logits.dim() > 1 ? 1 : 0;
  std::vector<std::int64_t> positions = logits.sizes().vec();
  positions.erase(positions.begin() + classDim);
  if (target.sizes() != at::IntArrayRef(positions)) {
    return fail(ErrorCode::BadInput, "labels {} do not fit logits {}.", bridge::describe(target),
                bridge::describe(logits));
  }
  const at::Tensor counts = target != ignoreIndex;
  if (const auto bad = firstOutside(target, 0, vocabulary, counts)) {
    return fail(ErrorCode::BadInput, "label {} is outside the {} and is not ignored ({}).", *bad,
                counted(vocabulary, "class", "classes"), ignoreIndex);
  }

  // Half-precision logits are summed in float32, as ATen's log_softmax does inside.
  const bool isHalf = logits.scalar_type() == at::kHalf || logits.scalar_type() == at::kBFloat16;
  at::Tensor x = isHalf ? logits.to(at::kFloat) : logits;
  const std::int64_t columns = x.size(classDim);
  const std::int64_t first = collectives.rank() * columns;
  if (first + columns > vocabulary) {
    const std::int64_t real = std::max<std::int64_t>(0, vocabulary - first);
    x = x.clone();
    x.narrow(classDim, real, columns - real).fill_(-std::numeric_limits<double>::infinity());
  }

  CLEAVE_TRY(const at::Tensor maximum, collectives.allReduce(x.amax({classDim}, /*keepdim=*/true), Reduction::Max));
  CLEAVE_TRY(const at::Tensor sum, collectives.allReduce((x - maximum).exp_().sum({classDim}), Reduction::Sum));
  const at::Tensor local = target - first;
  const at::Tensor isMine = (local >= 0) & (local < columns) & counts;
  at::Tensor own = x.gather(classDim, local.masked_fill(~isMine, 0).unsqueeze(classDim)).squeeze(classDim);
  own = at::where(isMine, own, at::zeros_like(own));
  CLEAVE_TRY(const at::Tensor targetLogit, collectives.allReduce(std::move(own), Reduction::Sum));

  at::Tensor loss = sum.log() + maximum.squeeze(classDim) - targetLogit;
  loss = at::where(counts, loss, at::zeros_like(loss));
  if (reduction != LossReduction::None) loss = loss.sum();
  if (reduction == LossReduction::Mean) loss = loss / counts.sum();
  return loss.to(logits.scalar_type());
}

Result<at::Tensor> runParallelOp(ParallelOp op, std::vector<c10::IValue>& arguments, Collectives& collectives) {
  switch (op) {
    case ParallelOp::AllReduce: return collectives.allReduce(std::move(arguments[0]).toTensor(), Reduction::Sum);
    case ParallelOp::AllGather: return collectives.allGather(arguments[0].toTensor(), arguments[1].toInt());
    case ParallelOp::ReduceScatter: return collectives.reduceScatter(arguments[0].toTensor(), arguments[1].toInt());
    case ParallelOp::VocabEmbedding:
      return vocabEmbedding(arguments[0].toTensor(), arguments[1].toTensor(), arguments[2].toInt(), collectives.rank());
    case ParallelOp::VocabCrossEntropy:
      return vocabCrossEntropy(arguments[0].toTensor(), arguments[1].toTensor(),
                               static_cast<LossReduction>(arguments[3].toInt()), arguments[4].toInt(),
                               arguments[6].toInt(), collectives);
    case ParallelOp::GradAllReduce: return arguments[0].toTensor();
    case ParallelOp::MoeExperts: return experts(arguments, /*isLocal=*/false, collectives.rank());
    case ParallelOp::Shard: return shard(arguments[0].toTensor(), arguments[1].toInt(), collectives);
    case ParallelOp::GroupedProduct:
      return bridge::groupedProduct(arguments[0].toTensor(), arguments[1].toTensor(), arguments[2].toTensor());
    case ParallelOp::LocalExperts: return experts(arguments, /*isLocal=*/true, collectives.rank());
  }
  return fail(ErrorCode::BadInput, "An operator of no kind.");
}

}  // namespace cleave::torch_rank
