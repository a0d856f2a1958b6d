/// Views: the same elements in row-major order with other sizes.
///
/// A split is described on the flattened tensor: it repeats `outer` times over periods of `period` elements, and each
/// period is a concatenation of blocks that are split evenly. The split survives if the result has a dimension that
/// begins at the same period and is split in the same way. These numbers decide everything:
///
///   [2,8,12] S(2) at 4 ranks  = outer 16, period 12, one block of 12
///   -> [2,8,4,3]: dimension 2 begins at period 12, 4 divides by 4: S(2)
///   -> [2,96]: period 12 is inside dimension 1: eight blocks of 12, S(1,b8)
#include "rules/call.h"

#include "base/checked.h"

#include <fmt/format.h>

#include <algorithm>

namespace cleave::rules {

namespace {

/// A dimension with more blocks than this is not useful, and would only slow the search.
constexpr std::int64_t kMostBlocks = 64;

struct FlatCut {
  std::int64_t outer = 1;
  std::int64_t period = 1;
  std::vector<Block> blocks;  ///< sizes in flat elements
  bool isJoint = false;
};

std::int64_t product(const Shape& shape, std::size_t begin, std::size_t end) {
  std::int64_t out = 1;
  for (std::size_t i = begin; i < end; ++i) out *= shape[i];
  return out;
}

FlatCut flatten(const Placement& p, const Shape& shape) {
  const auto first = static_cast<std::size_t>(p.firstDim());
  const auto last = static_cast<std::size_t>(p.lastDim());
  const std::int64_t inner = product(shape, last + 1, shape.size());
  FlatCut cut{product(shape, 0, first), product(shape, first, shape.size()), {}, first != last};
  cut.blocks = p.blocksOf(product(shape, first, last + 1));
  for (Block& block : cut.blocks) block.size *= inner;
  return cut;
}

/// The split as blocks of dimension `dim`, whose elements have `inner` flat elements each. nullopt if a boundary falls
/// inside an element.
std::optional<Placement> asBlocks(const FlatCut& cut, int dim, std::int64_t inner, std::int64_t repeats,
                                  int worldSize) {
  if (static_cast<std::int64_t>(cut.blocks.size()) > kMostBlocks / repeats) return std::nullopt;
  std::vector<Block> blocks;
  for (std::int64_t i = 0; i < repeats; ++i) {
    for (const Block& block : cut.blocks) {
      if (block.size % inner != 0 || (block.size / inner) % (worldSize / block.replicas) != 0) return std::nullopt;
      blocks.push_back({block.size / inner, block.replicas});
    }
  }
  return Placement::split(dim).withBlocks(std::move(blocks));
}

/// Equal blocks in their innermost form: `[3*n] S(0,b3)` is `[3,n] S(1)`.
FlatCut innermost(const FlatCut& cut) {
  const bool areEqual =
      std::all_of(cut.blocks.begin(), cut.blocks.end(), [&](const Block& b) { return b == cut.blocks.front(); });
  if (!areEqual || cut.blocks.size() == 1) return cut;
  const auto count = static_cast<std::int64_t>(cut.blocks.size());
  return {cut.outer * count, cut.period / count, {cut.blocks.front()}, false};
}

/// The smallest joint split from `first` on that covers the period in `worldSize / replicas` rectangles.
std::optional<Placement> asJoint(const FlatCut& cut, const Shape& shape, int first, int worldSize) {
  for (int last = first + 1; last < static_cast<int>(shape.size()); ++last) {
    const Placement p = Placement::joint(first, last).withReplicas(cut.blocks.front().replicas);
    if (p.localShape(shape, worldSize)) return p;
  }
  return std::nullopt;
}

struct Finder {
  const Shape& shape;
  int worldSize;
  std::vector<Placement> found;

  void add(Placement p) {
    if (std::find(found.begin(), found.end(), p) == found.end()) found.push_back(std::move(p));
  }

  /// Visits the dimensions of the result, last first, that can have the split.
  void search(const FlatCut& cut) {
    for (int d = static_cast<int>(shape.size()) - 1; d >= 0; --d) {
      const auto at = static_cast<std::size_t>(d);
      const std::int64_t outer = product(shape, 0, at);
      const std::int64_t inner = product(shape, at + 1, shape.size());
      if (shape[at] == 1 && cut.period != inner) continue;
      if (outer == cut.outer) {
        if (auto p = asBlocks(cut, d, inner, 1, worldSize)) {
          add(*std::move(p));
        } else if (cut.isJoint && shape[at] != 1) {
          if (auto joint = asJoint(cut, shape, d, worldSize)) add(*std::move(joint));
        }
      } else if (outer < cut.outer && cut.outer % outer == 0 && outer * shape[at] > cut.outer) {
        // The split repeats inside this dimension.
        if (auto p = asBlocks(cut, d, inner, cut.outer / outer, worldSize)) add(*std::move(p));
      }
    }
  }
};

/// Padding survives only on a dimension that the view keeps.
std::optional<Placement> keepPadded(const Placement& p, const Shape& from, const Shape& to) {
  const auto dim = static_cast<std::size_t>(p.firstDim());
  const std::int64_t outer = product(from, 0, dim);
  for (std::size_t d = 0; d < to.size(); ++d) {
    if (product(to, 0, d) == outer && to[d] == from[dim] && to[d] != 1) {
      return p.shifted(static_cast<int>(d) - p.firstDim());
    }
  }
  return std::nullopt;
}

std::string whyNot(const Call& call, const FlatCut& cut, const Shape& to) {
  const Placement& p = call.at(0);
  const std::string intro = fmt::format("`{}` changes {} with {} to {}", call.shortName(), graph::toText(call.shape(0)),
                                        p.text(), graph::toText(to));
  for (std::size_t d = 0; d < to.size(); ++d) {
    if (to[d] == 1 || product(to, 0, d) != cut.outer) continue;
    const int parts = call.worldSize() / cut.blocks.front().replicas;
    if (to[d] % parts == 0) continue;
    const bool isHead = p.lastDim() == call.rank(0) - 1 && d + 2 == to.size();
    return isHead ? fmt::format("{}: {} heads do not divide by {} {}.", intro, to[d], parts,
                                parts == call.worldSize() ? "ranks" : "parts")
                  : fmt::format("{}: the {} elements of dimension {} do not divide by {} {}.", intro, to[d], d, parts,
                                parts == call.worldSize() ? "ranks" : "parts");
  }
  return fmt::format("{}: the part of a rank is not an even part of any single dimension.", intro);
}

Verdict reshapeTo(Call& call) {
  const Shape& from = call.shape(0);
  const Shape& to = call.resultShape(0);
  const Placement& p = call.at(0);
  const auto sizes = checkedProduct(from);
  if (!sizes || sizes != checkedProduct(to)) call.complain("the number of elements changes");
  if (from == to) return pointwise(call);
  if (!sizes || *sizes == 0)
    return declined(call, fmt::format("`{}` of an empty tensor supports replicated inputs only.", call.shortName()));
  if (p.padding() != 0) {
    auto kept = keepPadded(p, from, to);
    if (!kept)
      return conflictOf(fmt::format("`{}` regroups a padded dimension ({}).", call.shortName(), p.text()), {0});
    return claimOf({*kept}, "the padded dimension does not change");
  }
  const FlatCut cut = flatten(p, from);
  Finder finder{to, call.worldSize(), {}};
  finder.search(cut);
  if (cut.blocks.size() > 1) finder.search(innermost(cut));
  if (p.isReplicatedOn(call.worldSize())) finder.add(Placement());
  if (finder.found.empty()) return conflictOf(whyNot(call, cut, to), {0});
  std::vector<Claim> claims;
  for (Placement& placement : finder.found) {
    std::string reason = placement.isReplicated()
                             ? "every rank has all of it"
                             : fmt::format("each rank's part is {} of the new shape", placement.text());
    claims.push_back({{std::move(placement)}, std::move(reason)});
  }
  return claims;
}

void localiseView(Call& call, std::span<const Placement> results, std::vector<graph::Argument>& args) {
  setLocalSizes(call, results, args, 1);
}

/// unflatten takes the dimension and the sizes of the new dimensions.
void localiseUnflatten(Call& call, std::span<const Placement> results, std::vector<graph::Argument>& args) {
  const int first = call.dim(1, call.rank(0), 0);
  const int count = call.resultRank(0) - call.rank(0) + 1;
  std::vector<std::int64_t> sizes;
  for (int d = first; d < first + count && d < call.resultRank(0); ++d) sizes.push_back(localSize(call, results, 0, d));
  if (results.front().isSplit()) setArgument(args, 2, std::move(sizes));
}

constexpr Entry kViewEntries[] = {
    {"aten::_reshape_alias", reshapeTo, localiseView}, {"aten::_unsafe_view", reshapeTo, localiseView},
    {"aten::flatten.using_ints", reshapeTo},           {"aten::ravel", reshapeTo},
    {"aten::reshape", reshapeTo, localiseView},        {"aten::unflatten.int", reshapeTo, localiseUnflatten},
    {"aten::view", reshapeTo, localiseView},
};

}  // namespace

FamilyTable viewFamily() {
  return {"view", "a split survives where the new sizes have a dimension that begins at the same element and divides",
          kViewEntries};
}

}  // namespace cleave::rules
