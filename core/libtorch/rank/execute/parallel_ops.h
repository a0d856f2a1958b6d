#pragma once
/// Cleave's own operators of a rank program (graph/operators.h), on ATen and `Collectives`. This header uses LibTorch.
#include "graph/operators.h"
#include "libtorch/rank/collectives/collectives.h"
#include "libtorch/rank/execute/dropout.h"

#include <ATen/core/ivalue.h>

#include <vector>

namespace cleave::torch_rank {

using graph::ParallelOp;

/// Checks that the node has the operator's arguments, with values that a rank supports. The error names the argument.
Result<void> checkCall(ParallelOp op, const graph::Node& node);

/// Runs the operator. `arguments` are complete and in order; a tensor that is moved in may be overwritten. `draws` is
/// the pass's source of randomness.
Result<at::Tensor> runParallelOp(ParallelOp op, std::vector<c10::IValue>& arguments, Collectives& collectives,
                                 const PassDraws& draws);

/// Rows of this rank's part of the table ([vocabulary/n, hidden]); zeros for ids of other ranks' parts. The row
/// `padding` has no gradient; -1 means that there is no such row. On the CPU, returns BadInput for an id outside
/// [0, vocabulary).
Result<at::Tensor> vocabEmbedding(const at::Tensor& weight, const at::Tensor& ids, std::int64_t vocabulary,
                                  std::int64_t padding, int rank);

/// How `aten::cross_entropy_loss` numbers its reductions.
enum class LossReduction : std::int64_t { None = 0, Mean = 1, Sum = 2 };

/// Cross-entropy, and the tensors that its gradient needs.
struct VocabLoss {
  at::Tensor loss;
  at::Tensor exponentials, sum;      ///< of logits minus the maximum of their row; the sum is over all ranks' columns
  at::Tensor target, isMine;         ///< this rank's column of each label; 0 if ignored or on another rank
  at::Tensor counts;                 ///< mask of labels that are not ignored
  at::ScalarType type = at::kFloat;  ///< type of the logits
  std::int64_t classDim = 1;
  LossReduction reduction = LossReduction::Mean;
};

/// Cross-entropy from logits whose class dimension (1, or 0 of a vector) is split evenly over the ranks. The last
/// columns of a padded vocabulary do not count. Equals `aten::cross_entropy_loss` on the full logits, including NaN for
/// the mean over zero labels. Uses three all-reduces: maximum, sum of exponentials, target's logit (Megatron-LM,
/// arXiv:1909.08053, section 3). On the CPU, returns BadInput for a label that is neither ignored nor in [0,
/// vocabulary). `arguments` are those of kVocabCrossEntropy.
Result<VocabLoss> vocabLoss(const std::vector<c10::IValue>& arguments, Collectives& collectives);
/// The gradient of the rank's logits: (softmax - label) times the gradient of each label. Consumes `loss`.
at::Tensor vocabLossGradient(VocabLoss loss, const at::Tensor& gradient);

}  // namespace cleave::torch_rank
