#include "libtorch/rank/execute/parallel_ops.h"

#include "base/quantities.h"
#include "graph/arguments.h"
#include "libtorch/bridge/experts.h"
#include "libtorch/bridge/grouped_product.h"
#include "libtorch/bridge/types.h"

namespace cleave::torch_rank {
namespace {

/// The first element of `values` outside [low, high) where `counts` is true. Not checked on a device, because the host
/// would have to wait for it. Inputs are checked before they are copied there (index_range.h).
std::optional<std::int64_t> firstOutside(const at::Tensor& values, std::int64_t low, std::int64_t high,
                                         const at::Tensor& counts) {
  if (!values.is_cpu()) return std::nullopt;
  const at::Tensor bad = ((values < low) | (values >= high)) & counts;
  if (!bad.any().item<bool>()) return std::nullopt;
  return values.masked_select(bad)[0].item<std::int64_t>();
}

/// Runs the experts of this rank (`isLocal`), or all experts.
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

/// This rank's part of a replicated tensor.
Result<at::Tensor> shard(const at::Tensor& x, std::int64_t dim, Collectives& collectives) {
  if (dim < 0 || dim >= x.dim() || x.size(dim) % collectives.worldSize() != 0) {
    return fail(ErrorCode::BadInput, "cleave::shard cannot split dimension {} of this tensor over {} ranks.", dim,
                collectives.worldSize());
  }
  const std::int64_t length = x.size(dim) / collectives.worldSize();
  return x.narrow(dim, collectives.rank() * length, length).contiguous();
}

Result<at::Tensor> dropout(const std::vector<c10::IValue>& arguments, const Collectives& collectives,
                           const PassDraws& draws) {
  const auto placement = rules::Placement::parse(arguments[4].toStringView());
  if (!placement)
    return fail(ErrorCode::BadInput, "{}: {} is not a placement.", graph::kDropout, arguments[4].toStringRef());
  return drop(arguments[0].toTensor(),
              {.chance = arguments[1].toScalar().toDouble(),
               .stream = arguments[2].toInt(),
               .shape = arguments[3].toIntVector(),
               .placement = *placement,
               .rank = collectives.rank(),
               .ranks = collectives.worldSize()},
              draws);
}

std::int64_t classDimOf(const at::Tensor& logits) { return logits.dim() > 1 ? 1 : 0; }

Result<at::Tensor> labelsThatCount(const at::Tensor& logits, const at::Tensor& target, std::int64_t ignoreIndex,
                                   std::int64_t vocabulary) {
  if (at::isFloatingType(target.scalar_type())) {
    return fail(ErrorCode::BadInput, "labels is {}, but must contain class indices.", bridge::describe(target));
  }
  std::vector<std::int64_t> positions = logits.sizes().vec();
  positions.erase(positions.begin() + classDimOf(logits));
  if (target.sizes() != at::IntArrayRef(positions)) {
    return fail(ErrorCode::BadInput, "labels {} do not fit logits {}.", bridge::describe(target),
                bridge::describe(logits));
  }
  at::Tensor counts = target != ignoreIndex;
  if (const auto bad = firstOutside(target, 0, vocabulary, counts)) {
    return fail(ErrorCode::BadInput, "label {} is outside the {} and is not ignored ({}).", *bad,
                counted(vocabulary, "class", "classes"), ignoreIndex);
  }
  return counts;
}

/// Converts half-precision logits to float32, as ATen's log_softmax does internally. Sets a padded vocabulary's columns
/// to minus infinity.
at::Tensor reals(const at::Tensor& logits, int rank, std::int64_t vocabulary) {
  const bool isHalf = logits.scalar_type() == at::kHalf || logits.scalar_type() == at::kBFloat16;
  at::Tensor x = isHalf ? logits.to(at::kFloat) : logits;
  const std::int64_t dim = classDimOf(logits), columns = x.size(dim), first = rank * columns;
  if (first + columns <= vocabulary) return x;
  const std::int64_t real = std::max<std::int64_t>(0, vocabulary - first);
  x = x.clone();
  x.narrow(dim, real, columns - real).fill_(-std::numeric_limits<double>::infinity());
  return x;
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

Result<at::Tensor> vocabEmbedding(const at::Tensor& weight, const at::Tensor& ids, std::int64_t vocabulary,
                                  std::int64_t padding, int rank) {
  if (const auto bad = firstOutside(ids, 0, vocabulary, at::ones_like(ids, at::kBool))) {
    return fail(ErrorCode::BadInput, "token id {} is outside the vocabulary of {}.", *bad, vocabulary);
  }
  const std::int64_t rows = weight.size(0);
  const at::Tensor local = ids - rank * rows;
  const at::Tensor isOther = (local < 0) | (local >= rows);
  const std::int64_t localPadding = padding - rank * rows;
  const bool isPaddingHere = padding >= 0 && localPadding >= 0 && localPadding < rows;
  // Ids of other ranks look up row 0. The fill removes it from the result and from the gradient.
  const at::Tensor found = isPaddingHere ? at::embedding(weight, local.masked_fill(isOther, localPadding), localPadding)
                                         : at::embedding(weight, local.masked_fill(isOther, 0));
  return found.masked_fill_(isOther.unsqueeze(-1), 0);
}

Result<VocabLoss> vocabLoss(const std::vector<c10::IValue>& arguments, Collectives& collectives) {
  const at::Tensor& logits = arguments[0].toTensor();
  const at::Tensor& target = arguments[1].toTensor();
  const std::int64_t ignoreIndex = arguments[4].toInt(), vocabulary = arguments[6].toInt();
  CLEAVE_TRY(const at::Tensor counts, labelsThatCount(logits, target, ignoreIndex, vocabulary));
  VocabLoss loss{.type = logits.scalar_type(),
                 .classDim = classDimOf(logits),
                 .reduction = static_cast<LossReduction>(arguments[3].toInt())};

  const at::Tensor x = reals(logits, collectives.rank(), vocabulary);
  const std::int64_t columns = x.size(loss.classDim);
  CLEAVE_TRY(const at::Tensor maximum,
             collectives.allReduce(x.amax({loss.classDim}, /*keepdim=*/true), Reduction::Max));
  loss.exponentials = (x - maximum).exp_();
  CLEAVE_TRY(loss.sum, collectives.allReduce(loss.exponentials.sum({loss.classDim}), Reduction::Sum));
  const at::Tensor local = target - collectives.rank() * columns;
  loss.isMine = (local >= 0) & (local < columns) & counts;
  loss.target = local.masked_fill(~loss.isMine, 0);
  at::Tensor own = x.gather(loss.classDim, loss.target.unsqueeze(loss.classDim)).squeeze(loss.classDim);
  own = at::where(loss.isMine, own, at::zeros_like(own));
  CLEAVE_TRY(const at::Tensor targetLogit, collectives.allReduce(std::move(own), Reduction::Sum));

  at::Tensor each = loss.sum.log() + maximum.squeeze(loss.classDim) - targetLogit;
  each = at::where(counts, each, at::zeros_like(each));
  if (loss.reduction != LossReduction::None) each = each.sum();
  if (loss.reduction == LossReduction::Mean) each = each / counts.sum();
  loss.loss = each.to(loss.type);
  loss.counts = counts;
  return loss;
}

at::Tensor vocabLossGradient(VocabLoss loss, const at::Tensor& gradient) {
  at::Tensor each = gradient.to(loss.sum.scalar_type());
  if (loss.reduction == LossReduction::Mean) each = each / loss.counts.sum();
  each = at::where(loss.counts, each, at::zeros_like(each)).expand_as(loss.sum);
  at::Tensor result = std::move(loss.exponentials);
  result.mul_((each / loss.sum).unsqueeze(loss.classDim));
  result.scatter_add_(loss.classDim, loss.target.unsqueeze(loss.classDim),
                      at::where(loss.isMine, -each, at::zeros_like(each)).unsqueeze(loss.classDim));
  return result.to(loss.type);
}

Result<at::Tensor> runParallelOp(ParallelOp op, std::vector<c10::IValue>& arguments, Collectives& collectives,
                                 const PassDraws& draws) {
  switch (op) {
    case ParallelOp::AllReduce: return collectives.allReduce(std::move(arguments[0]).toTensor(), Reduction::Sum);
    case ParallelOp::GatherInput:
    case ParallelOp::AllGather: return collectives.allGather(arguments[0].toTensor(), arguments[1].toInt());
    case ParallelOp::ReduceScatter: return collectives.reduceScatter(arguments[0].toTensor(), arguments[1].toInt());
    case ParallelOp::VocabEmbedding:
      return vocabEmbedding(arguments[0].toTensor(), arguments[1].toTensor(), arguments[2].toInt(),
                            arguments[3].toInt(), collectives.rank());
    case ParallelOp::VocabCrossEntropy:
      return vocabLoss(arguments, collectives).map([](VocabLoss&& loss) { return std::move(loss.loss); });
    case ParallelOp::Same:
    case ParallelOp::GradAllReduce: return arguments[0].toTensor();
    case ParallelOp::MoeExperts: return experts(arguments, /*isLocal=*/false, collectives.rank());
    case ParallelOp::Shard: return shard(arguments[0].toTensor(), arguments[1].toInt(), collectives);
    case ParallelOp::GroupedProduct:
      return bridge::groupedProduct(arguments[0].toTensor(), arguments[1].toTensor(), arguments[2].toTensor());
    case ParallelOp::LocalExperts: return experts(arguments, /*isLocal=*/true, collectives.rank());
    case ParallelOp::Dropout: return dropout(arguments, collectives, draws);
  }
  return fail(ErrorCode::BadInput, "Unknown operator.");
}

}  // namespace cleave::torch_rank
