/// Repeated dimensions: size 1 expanded, tiles, repeated elements.
///
/// `S(d,xk)` is the placement of KV heads that are fewer than ranks: k neighbouring ranks share one head. If the next
/// dimension is expanded by a multiple of k, each of them keeps its share of the copies: `S(d:d+1)`.
#include "rules/axes.h"

#include <algorithm>

namespace cleave::rules {

namespace {

/// Number of ranks that share one element, for a placement whose parts have one element each.
int replicasOfOne(const Call& call) {
  const Placement& p = call.at(0);
  if (p.isReplicated() || p.firstDim() != p.lastDim() || !p.blocks().empty() || p.padding() != 0) return 0;
  if (p.replicas() == 1 || sizeAt(call.shape(0), p.firstDim()) * p.replicas() != call.worldSize()) return 0;
  return p.replicas();
}

/// The dimensions of the operand are the last ones of the result. `repeats(d)` is how often result dimension d repeats.
template <class Repeats>
Verdict repeatDims(Call& call, const Repeats& repeats) {
  const int offset = call.resultRank(0) - call.rank(0);
  if (offset < 0) {
    call.complain("the result has fewer dimensions than the input");
    return claimOf({}, {});
  }
  std::vector<Claim> claims;
  const Placement& p = call.at(0);
  if (const int replicas = replicasOfOne(call); replicas > 0) {
    const int dim = p.firstDim() + offset;
    if (sizeAt(call.shape(0), p.firstDim()) == 1 && repeats(dim) > 1 && repeats(dim) % replicas == 0) {
      claims.push_back({{Placement::split(dim)}, "each rank keeps its share of the copies of the element"});
    }
    if (repeats(dim) == 1 && dim + 1 < call.resultRank(0) && repeats(dim + 1) > 1 && repeats(dim + 1) % replicas == 0 &&
        sizeAt(call.shape(0), p.firstDim() + 1) == 1) {
      claims.push_back({{Placement::joint(dim, dim + 1)}, "the ranks that share an element divide its copies"});
    }
  }
  if (p.firstDim() == p.lastDim() && p.padding() == 0 && sizeAt(call.shape(0), p.firstDim()) > 1 &&
      repeats(p.firstDim() + offset) > 1) {
    std::vector<Block> blocks;
    const auto once = p.blocksOf(sizeAt(call.shape(0), p.firstDim()));
    for (std::int64_t i = 0; i < repeats(p.firstDim() + offset) && blocks.size() <= 64; ++i) {
      blocks.insert(blocks.end(), once.begin(), once.end());
    }
    if (blocks.size() <= 64) {
      return claimOf({Placement::split(p.firstDim() + offset).withBlocks(std::move(blocks))},
                     "each rank repeats its part");
    }
  }
  Axes axes(call);
  for (int d = 0; d < call.rank(0); ++d) {
    const bool isRepeated = repeats(d + offset) != 1;
    const int axis = isRepeated ? axes.whole("repeats") : axes.kept();
    axes.operand(0, d, axis);
    if (!isRepeated) axes.result(0, d + offset, axis);
  }
  Verdict plain = axes.allowPadding().follow();
  if (auto* more = std::get_if<std::vector<Claim>>(&plain)) {
    claims.insert(claims.end(), more->begin(), more->end());
  } else if (claims.empty()) {
    return plain;
  }
  return claims;
}

/// Expand, repeat and tile. The sizes determine how often a dimension repeats.
Verdict expand(Call& call) {
  return repeatDims(call, [&](int dim) -> std::int64_t {
    const int offset = call.resultRank(0) - call.rank(0);
    if (dim < offset) return sizeAt(call.resultShape(0), dim);
    const std::int64_t size = sizeAt(call.shape(0), dim - offset);
    return size == 0 ? 1 : sizeAt(call.resultShape(0), dim) / size;
  });
}

/// If one head is replicated, each rank may keep its share of the copies (the rotary part of latent attention). Only
/// for the dimension after the batch: masks are expanded too, and would add this choice to every layer. KV heads that
/// ranks share already come with replicas.
void shareCopies(Call& call, std::vector<Claim>& claims) {
  if (call.resultRank(0) != call.rank(0)) return;
  int expanded = -1;
  for (int d = 0; d < call.rank(0); ++d) {
    if (sizeAt(call.shape(0), d) == sizeAt(call.resultShape(0), d)) continue;
    if (expanded >= 0) return;
    expanded = d;
  }
  if (expanded != kHeads || call.rank(0) < kRankOfHeads) return;
  const std::int64_t copies = sizeAt(call.resultShape(0), expanded);
  if (sizeAt(call.shape(0), expanded) != 1 || copies < call.worldSize() || copies % call.worldSize() != 0) return;
  claims.push_back({{Placement::split(expanded)}, "each rank keeps its share of the copies of the element"});
}

void localiseExpand(Call& call, std::span<const Placement> results, std::vector<graph::Argument>& args) {
  if (results.front().isSplit()) setLocalSizes(call, results, args, 1);
}

void localiseRepeat(Call& call, std::span<const Placement> results, std::vector<graph::Argument>& args) {
  const int offset = call.resultRank(0) - call.rank(0);
  std::vector<std::int64_t> repeats;
  for (int d = 0; d < call.resultRank(0); ++d) {
    const std::int64_t local = localSize(call, results, 0, d);
    const std::int64_t once = d < offset ? 1 : localOperandSize(call, 0, d - offset);
    repeats.push_back(once == 0 ? 1 : local / once);
  }
  if (results.front().isSplit()) setArgument(args, 1, std::move(repeats));
}

/// Arguments: self, repeats, dim, output_size. Element i of the dimension becomes `repeats` neighbours.
Verdict repeatInterleave(Call& call) {
  const std::int64_t repeats = call.integer(1, 1);
  const int rank = call.rank(0);
  Axes axes(call);
  if (!call.has(2)) {
    // Without a dimension the input is flattened. The outermost dimension with more than one element still leads.
    int lead = 0;
    while (lead + 1 < rank && sizeAt(call.shape(0), lead) == 1) ++lead;
    for (int d = 0; d < rank; ++d) {
      const int axis = d == lead ? axes.keptInProportion() : axes.whole("flattens");
      axes.operand(0, d, axis);
      if (d == lead) axes.result(0, 0, axis);
    }
    return axes.follow();
  }
  std::vector<Claim> claims;
  const int dim = call.dim(2, rank, 0);
  const int replicas = replicasOfOne(call);
  if (replicas > 0 && call.at(0).firstDim() == dim && repeats % replicas == 0) {
    claims.push_back({{Placement::split(dim)}, "the ranks that share an element divide its copies"});
  }
  for (int d = 0; d < rank; ++d) {
    const int axis = d == dim ? axes.keptInProportion() : axes.kept();
    axes.operand(0, d, axis).result(0, d, axis);
  }
  Verdict plain = axes.follow();
  if (auto* more = std::get_if<std::vector<Claim>>(&plain)) {
    claims.insert(claims.end(), more->begin(), more->end());
  } else if (claims.empty()) {
    return plain;
  }
  return claims;
}

void localiseInterleave(Call& call, std::span<const Placement> results, std::vector<graph::Argument>& args) {
  const bool isFlat = !call.has(2);
  const int dim = isFlat ? 0 : call.dim(2, call.rank(0), 0);
  const std::int64_t local = localSize(call, results, 0, dim);
  if (call.has(3)) setArgument(args, 3, local);
  if (isFlat) return;
  const std::int64_t once = localOperandSize(call, 0, dim);
  if (once > 0) setArgument(args, 1, local / once);
}

constexpr Entry kExpandEntries[] = {
    {"aten::broadcast_to", expand, localiseExpand},
    {"aten::expand", expand, localiseExpand, shareCopies},
    {"aten::expand_as", pointwise},  // the second input provides only its sizes, which are split with it
    {"aten::repeat", expand, localiseRepeat},
    {"aten::repeat_interleave.self_int", repeatInterleave, localiseInterleave},
    {"aten::tile", expand, localiseRepeat},
};

}  // namespace

FamilyTable expandFamily() {
  return {"expand", "a split dimension stays split; ranks that share a head divide its copies", kExpandEntries};
}

}  // namespace cleave::rules
