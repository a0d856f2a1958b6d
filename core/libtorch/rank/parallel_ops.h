#pragma once
/// Cleave's own operators of a rank program (graph/operators.h), on ATen and `Collectives`. LibTorch inside.
#include "graph/operators.h"
#include "libtorch/rank/collectives.h"
#include "libtorch/rank/dropout.h"

#include <ATen/core/ivalue.h>

#include <vector>

namespace cleave::torch_rank {

using graph::ParallelOp;

/// Whether the node has the operator's arguments, and such as a rank can run; the error names the argument.
Result<void> checkCall(ParallelOp op, const graph::Node& node);

/// Runs the operator. `arguments` are complete and in order; a tensor that is moved in may be overwritten. `draws`
/// decides what is random in the pass.
Result<at::Tensor> runParallelOp(ParallelOp op, std::vector<c10::IValue>& arguments, Collectives& collectives,
                                 const PassDraws& draws);

/// Rows of this rank's part of the table ([vocabulary/n, hidden]); zeros for ids of other ranks' parts. The row
/// `padding` (-1: none) gets no gradient. BadInput for an id outside [0, vocabulary), on the CPU.
Result<at::Tensor> vocabEmbedding(const at::Tensor& weight, const at::Tensor& ids, std::int64_t vocabulary,
                                  std::int64_t padding, int rank);

/// How `aten::cross_entropy_loss` numbers its reductions.
enum class LossReduction : std::int64_t { None = 0, Mean = 1, Sum = 2 };

/// Cross-entropy, and what its gradient is made of.
struct VocabLoss {
  at::Tensor loss;
  at::Tensor exponentials, sum;      ///< of logits less the largest of their row; the sum over all ranks' columns
  at::Tensor target, isMine;         ///< this rank's column of each label, 0 where it is another rank's or is ignored
  at::Tensor counts;                 ///< labels that are not ignored
  at::ScalarType type = at::kFloat;  ///< of the logits
  std::int64_t classDim = 1;
  LossReduction reduction = LossReduction::Mean;
};

/// Cross-entropy from logits whose class dimension (1, or 0 of a vector) is split evenly over the ranks; a padded
/// vocabulary's last columns do not count. Equals `aten::cross_entropy_loss` on the whole logits, also NaN for the mean
/// over no label at all. Three all-reduces: maximum, sum of exponentials, target's logit (Megatron-LM,
/// arXiv:1909.08053, section 3). BadInput for a label that is neither ignored nor in [0, vocabulary), on the CPU.
/// `arguments` as kVocabCrossEntropy has them.
Result<VocabLoss> vocabLoss(const std::vector<c10::IValue>& arguments, Collectives& collectives);
/// Of the rank's logits, from that of the loss: softmax - label, times what each label counts. Uses `loss` up.
at::Tensor vocabLossGradient(VocabLoss loss, const at::Tensor& gradient);

}  // namespace cleave::torch_rank
