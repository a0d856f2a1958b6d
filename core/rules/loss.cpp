/// Losses that are not layers. They normalise over the classes, and a mean or sum runs over all elements.
#include "rules/axes.h"

namespace cleave::rules {

namespace {

constexpr int kNoReduction = 0, kMean = 1;

/// Arguments: input [N,C] or [N,C,d1..], target [N] or [N,d1..] (or probabilities, shaped like the input), class
/// weights [C].
Verdict perClass(Call& call, std::size_t reductionIndex) {
  const int input = call.operand(0), target = call.operand(1), weights = call.operand(2);
  if (input < 0 || target < 0) return call.complain("input or target is missing"), claimOf({}, {});
  const bool reduces = call.integer(reductionIndex, kMean) != kNoReduction;
  const int rank = call.rank(input);
  const int classDim = rank == 1 ? 0 : 1;
  const bool hasProbabilities = call.rank(target) == rank;
  Axes axes(call);
  axes.name(input, "the input").name(target, "the target").name(weights, "the class weights");
  int next = 0;
  for (int d = 0; d < rank; ++d) {
    const int axis = d == classDim ? axes.whole("normalises over the classes along")
                     : reduces     ? axes.whole("adds up the losses along")
                                   : axes.kept();
    axes.operand(input, d, axis);
    if (d == classDim && weights >= 0) axes.operand(weights, 0, axis);
    if (hasProbabilities) axes.operand(target, d, axis);
    if (d == classDim) continue;
    if (!hasProbabilities) axes.operand(target, next, axis);
    if (!reduces) axes.result(0, next, axis);
    ++next;
  }
  for (int r = 1; r < call.resultCount(); ++r) axes.independentResult(r);
  return axes.follow();
}

/// Arguments: input and target of the same shape.
Verdict perElement(Call& call, std::size_t reductionIndex) {
  if (call.integer(reductionIndex, kMean) == kNoReduction) return pointwise(call);
  Axes axes(call);
  for (int i = 0; i < call.operandCount(); ++i) {
    for (int d = 0; d < call.rank(i); ++d) axes.operand(i, d, axes.whole("adds up the losses along"));
  }
  return axes.follow();
}

constexpr Entry kLossEntries[] = {
    {"aten::binary_cross_entropy", [](Call& c) { return perElement(c, 3); }},
    {"aten::binary_cross_entropy_with_logits", [](Call& c) { return perElement(c, 4); }},
    {"aten::cross_entropy_loss", [](Call& c) { return perClass(c, 3); }},
    {"aten::huber_loss", [](Call& c) { return perElement(c, 2); }},
    {"aten::l1_loss", [](Call& c) { return perElement(c, 2); }},
    {"aten::mse_loss", [](Call& c) { return perElement(c, 2); }},
    {"aten::nll_loss", [](Call& c) { return perClass(c, 3); }},
    {"aten::nll_loss2d_forward", [](Call& c) { return perClass(c, 3); }},
    {"aten::nll_loss_forward", [](Call& c) { return perClass(c, 3); }},
    {"aten::nll_loss_nd", [](Call& c) { return perClass(c, 3); }},
    {"aten::smooth_l1_loss", [](Call& c) { return perElement(c, 2); }},
};

}  // namespace

FamilyTable lossFamily() {
  return {
      "loss",
      "classes and, for a mean or sum, all elements must be on every rank; only a loss layer supports split classes",
      kLossEntries};
}

}  // namespace cleave::rules
