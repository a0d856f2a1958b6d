/// Tensors made from sizes and numbers: equal on every rank. A tensor made "like" another one may have its placement.
#include "rules/axes.h"

#include <algorithm>

namespace cleave::rules {

namespace {

/// Arguments: self, sizes. The input provides only its dtype. If the sizes are the input's own, the result may have its
/// placement.
Verdict newOfSizes(Call& call) {
  std::vector<Claim> claims;
  if (call.shape(0) == call.resultShape(0)) {
    claims.push_back({{call.at(0)}, "same sizes as the input, so it can have the same placement"});
  }
  claims.push_back({allReplicated(call), "made from numbers only, equal on every rank"});
  return claims;
}

/// Operators without tensor operands, or with a single number: always replicated.
Verdict whole(Call& call) {
  const std::vector<int> split = splitOperands(call);
  if (split.empty()) return claimOf(allReplicated(call), "created replicated");
  return conflictOfAny("It is created replicated and does not support split inputs.", split);
}

/// One number fills the tensor, so a rank may create only its part. Offered for heads only, as a mask or a bias of
/// attention scores: elsewhere the choice would only slow the search.
void fillHeads(Call& call, std::vector<Claim>& claims) {
  if (call.resultRank(0) != kRankOfHeads) return;
  const std::int64_t heads = sizeAt(call.resultShape(0), kHeads);
  if (heads < call.worldSize() || heads % call.worldSize() != 0) return;
  claims.push_back({{Placement::split(kHeads)}, "one number everywhere: each rank creates the part of its heads"});
}

template <std::size_t Sizes>
void localiseSizes(Call& call, std::span<const Placement> results, std::vector<graph::Argument>& args) {
  setLocalSizes(call, results, args, Sizes);
}

constexpr Entry kCreationEntries[] = {
    {"aten::arange", whole},
    {"aten::arange.start", whole},
    {"aten::arange.start_step", whole},
    {"aten::empty.memory_format", whole, localiseSizes<0>},
    {"aten::empty_like", pointwise},
    {"aten::empty_strided", whole},
    {"aten::eye", whole},
    {"aten::eye.m", whole},
    {"aten::full", whole, localiseSizes<0>, fillHeads},
    {"aten::full_like", pointwise},
    {"aten::linspace", whole},
    {"aten::new_empty", newOfSizes, localiseSizes<1>},
    {"aten::new_full", newOfSizes, localiseSizes<1>},
    {"aten::new_ones", newOfSizes, localiseSizes<1>},
    {"aten::new_zeros", newOfSizes, localiseSizes<1>},
    {"aten::ones", whole, localiseSizes<0>},
    {"aten::ones_like", pointwise},
    {"aten::rand", whole, localiseSizes<0>},
    {"aten::rand_like", pointwise},
    {"aten::randint", whole},
    {"aten::randint.low", whole},
    {"aten::randn", whole, localiseSizes<0>},
    {"aten::randn_like", pointwise},
    {"aten::randperm", whole},
    {"aten::scalar_tensor", whole},
    {"aten::tril_indices", whole},
    {"aten::triu_indices", whole},
    {"aten::zeros", whole, localiseSizes<0>},
    {"aten::zeros_like", pointwise},
};

}  // namespace

FamilyTable creationFamily() {
  return {"creation",
          "created from numbers: replicated, or split by heads if one number fills them; created like a tensor: the "
          "placement of that tensor",
          kCreationEntries};
}

}  // namespace cleave::rules
