/// Normalisations. The dimensions of the mean and variance must not be split; the others may be split.
#include "base/quantities.h"
#include "rules/axes.h"

#include <fmt/format.h>

#include <algorithm>

namespace cleave::rules {

namespace {

constexpr const char* kNormalises = "normalises over";

/// Normalises the last `count` dimensions; `weights` run along them. Further results keep the leading dimensions.
Verdict overLast(Call& call, int count, const std::vector<int>& weights) {
  const int input = call.operand(0);
  const int rank = call.rank(input);
  if (count < 1 || count > rank) return call.complain("the normalised shape does not fit the input"), claimOf({}, {});
  Axes axes(call);
  axes.name(input, "the input");
  std::vector<int> normalised;
  for (int d = 0; d < rank; ++d) {
    const bool isLeading = d < rank - count;
    const int axis = isLeading ? axes.kept() : axes.whole(kNormalises);
    axes.operand(input, d, axis);
    if (!isLeading) normalised.push_back(axis);
    for (int r = 0; isLeading && r < call.resultCount(); ++r) axes.result(r, d, axis);
  }
  for (const int weight : weights) {
    if (weight < 0) continue;
    axes.name(weight, "the weight");
    for (int d = 0; d < call.rank(weight) && d < count; ++d)
      axes.operand(weight, d, normalised[static_cast<std::size_t>(d)]);
  }
  return axes.follow();
}

/// Arguments: input, normalized_shape, weight, bias, ...
Verdict layerNorm(Call& call) {
  return overLast(call, static_cast<int>(call.integers(1).size()), {call.operand(2), call.operand(3)});
}

Verdict rmsNorm(Call& call) { return overLast(call, static_cast<int>(call.integers(1).size()), {call.operand(2)}); }

/// Channels in groups. A split must keep each group on one rank, with its weights.
Verdict groups(Call& call, int weight, int bias) {
  const int rank = call.rank(0);
  if (rank < 2) return call.complain("the input has no channel dimension"), claimOf({}, {});
  Axes axes(call);
  axes.name(0, "the input").name(weight, "the weight").name(bias, "the bias");
  const int batch = axes.kept(), channels = axes.keptInProportion();
  axes.operand(0, 0, batch).operand(0, 1, channels);
  for (int r = 0; r < call.resultCount(); ++r) axes.result(r, 0, batch).result(r, 1, channels);
  for (int d = 2; d < rank; ++d) axes.operand(0, d, axes.whole(kNormalises));
  for (const int parameter : {weight, bias}) {
    if (parameter >= 0) axes.operand(parameter, 0, channels);
  }
  return axes.follow();
}

/// The number of groups must divide too. The results' sizes do not always show it.
std::optional<Conflict> refuseGroups(const Call& call, std::int64_t count) {
  const Placement& p = call.at(0);
  if (count < 1) call.complain(fmt::format("the number of groups is {}", count));
  if (!p.touches(1) || p.isReplicatedOn(call.worldSize())) return std::nullopt;
  const std::int64_t parts = call.worldSize() / p.replicas();
  if (p.firstDim() == p.lastDim() && count % parts == 0) return std::nullopt;
  return Conflict{fmt::format("`{}` has {} not divide by {} ranks.", call.shortName(),
                              counted(count, "group of channels, which does", "groups of channels, which do"), parts),
                  {0},
                  {}};
}

/// Arguments: input, weight, bias, N, C, HxW, group, eps.
Verdict nativeGroupNorm(Call& call) {
  if (auto conflict = refuseGroups(call, call.integer(6, 1))) return *std::move(conflict);
  return groups(call, call.operand(1), call.operand(2));
}

void localiseNativeGroupNorm(Call& call, std::span<const Placement> results, std::vector<graph::Argument>& args) {
  setArgument(args, 3, localSize(call, results, 0, 0));
  const std::int64_t whole = call.resultShape(0)[1], local = localSize(call, results, 0, 1);
  setArgument(args, 4, local);
  if (whole > 0) setArgument(args, 6, call.integer(6, 1) * local / whole);
}

/// Arguments: input, num_groups, weight, bias, eps.
Verdict groupNorm(Call& call) {
  if (auto conflict = refuseGroups(call, call.integer(1, 1))) return *std::move(conflict);
  return groups(call, call.operand(2), call.operand(3));
}

void localiseGroupNorm(Call& call, std::span<const Placement> results, std::vector<graph::Argument>& args) {
  const std::int64_t whole = call.resultShape(0)[1], local = localSize(call, results, 0, 1);
  if (whole > 0) setArgument(args, 1, call.integer(1, 1) * local / whole);
}

/// Batch norm: one mean and variance per channel. With running statistics each element is independent.
Verdict batchNorm(Call& call, bool isTraining) {
  const int input = call.operand(0);
  const int rank = call.rank(input);
  if (rank < 2) return call.complain("the input has no channel dimension"), claimOf({}, {});
  Axes axes(call);
  axes.name(input, "the input");
  const int channels = axes.kept();
  for (int d = 0; d < rank; ++d) {
    const int axis = d == 1 ? channels : isTraining ? axes.whole(kNormalises) : axes.kept();
    axes.operand(input, d, axis).result(0, d, axis);
  }
  for (int i = 0; i < call.operandCount(); ++i) {
    if (i != input) axes.operand(i, 0, channels);
  }
  for (int r = 1; r < call.resultCount(); ++r) {
    const bool isEmpty = call.resultRank(r) == 1 && call.resultShape(r)[0] == 0;
    isEmpty ? axes.independentResult(r) : axes.result(r, 0, channels);
  }
  return axes.follow();
}

/// Arguments: v, g, dim. For each index of `dim`, v is divided by its norm and multiplied by its g. The other sizes of
/// g are 1.
Verdict weightNorm(Call& call) {
  const int v = call.operand(0), g = call.operand(1);
  const int rank = call.rank(v);
  if (g < 0 || call.rank(g) != rank)
    return call.complain("the scale and the weight have different numbers of dimensions"), claimOf({}, {});
  const int kept = call.dim(2, rank, 0);
  Axes axes(call);
  axes.name(v, "the weight").name(g, "its scale");
  const int features = axes.kept();
  for (int d = 0; d < rank; ++d) {
    const int axis = d == kept ? features : axes.whole(kNormalises);
    axes.operand(v, d, axis).result(0, d, axis);
    if (d == kept) axes.operand(g, d, axis);
  }
  if (call.resultCount() > 1) axes.result(1, kept, features);
  return axes.follow();
}

constexpr Entry kNormalisationEntries[] = {
    {"aten::_fused_rms_norm", rmsNorm},
    {"aten::_native_batch_norm_legit_no_training", [](Call& c) { return batchNorm(c, false); }},
    {"aten::_weight_norm", weightNorm},
    {"aten::_weight_norm_interface", weightNorm},
    {"aten::batch_norm", [](Call& c) { return batchNorm(c, c.flag(5, false)); }},
    {"aten::group_norm", groupNorm, localiseGroupNorm},
    {"aten::layer_norm", layerNorm},
    {"aten::native_batch_norm", [](Call& c) { return batchNorm(c, c.flag(5, false)); }},
    {"aten::native_group_norm", nativeGroupNorm, localiseNativeGroupNorm},
    {"aten::native_layer_norm", layerNorm},
    {"aten::rms_norm", rmsNorm},
};

}  // namespace

FamilyTable normalisationFamily() {
  return {"normalisation",
          "the normalised dimensions must not be split; batch, sequence and entire groups of channels may be split",
          kNormalisationEntries};
}

}  // namespace cleave::rules
