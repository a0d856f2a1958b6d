/// Parts of a dimension: slices, splits, selections. The dimension must not be split, unless the part is all of it,
/// every n-th element of it, or ends at the boundaries of its blocks.
#include "base/quantities.h"
#include "rules/axes.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

namespace cleave::rules {

namespace {

struct Piece {
  std::int64_t start = 0, end = 0, step = 1;
};

std::int64_t sizeOrZero(const Shape& shape, int dim) {
  return dim < static_cast<int>(shape.size()) ? shape[static_cast<std::size_t>(dim)] : 0;
}

/// The blocks of the operand's split that a slice covers exactly. Empty if a boundary falls inside a block.
std::vector<Block> blocksBetween(const Placement& p, std::int64_t size, std::int64_t start, std::int64_t end) {
  std::vector<Block> out;
  std::int64_t offset = 0;
  for (const Block& block : p.blocksOf(size)) {
    const std::int64_t next = offset + block.size;
    if (start <= offset && next <= end) {
      out.push_back(block);
    } else if (offset < end && start < next) {
      return {};
    }
    offset = next;
  }
  return out;
}

/// The local index of element `start` of the full dimension. `start` is at a boundary of blocks.
std::int64_t localOffset(const Call& call, int dim, std::int64_t start) {
  std::int64_t offset = 0, local = 0;
  for (const Block& block : call.at(0).blocksOf(sizeOrZero(call.shape(0), dim))) {
    if (offset >= start) break;
    offset += block.size;
    local += block.size / std::max(1, call.worldSize() / block.replicas);
  }
  return local;
}

bool isCutAcross(const Call& call, int dim) {
  return call.at(0).touches(dim) && !call.at(0).isReplicatedOn(call.worldSize());
}

/// Keeps all dimensions except `dim`.
Verdict keepOthers(Call& call, int dim, int dimAxisKind, const std::string& why, bool dropsDim = false) {
  Axes axes(call);
  for (int d = 0; d < call.rank(0); ++d) {
    if (d == dim && dimAxisKind == 0) {
      axes.operand(0, d, axes.whole(why));
      continue;
    }
    const int axis = d == dim && dimAxisKind == 2 ? axes.keptInProportion() : axes.kept();
    axes.operand(0, d, axis);
    for (int r = 0; r < call.resultCount(); ++r) axes.result(r, dropsDim && d > dim ? d - 1 : d, axis);
  }
  axes.allowPadding();
  return axes.follow();
}
constexpr int kCut = 0, kAll = 1, kEveryNth = 2;

/// Slices at the boundaries of blocks: each result gets its own blocks.
std::optional<Verdict> piecesOfBlocks(Call& call, int dim, const std::vector<Piece>& pieces) {
  const Placement& p = call.at(0);
  if (p.blocks().empty() || p.firstDim() != dim) return std::nullopt;
  std::vector<Placement> results;
  for (const Piece& piece : pieces) {
    auto blocks = blocksBetween(p, sizeOrZero(call.shape(0), dim), piece.start, piece.end);
    if (blocks.empty() || piece.step != 1) return std::nullopt;
    results.push_back(Placement::split(dim).withBlocks(std::move(blocks)));
  }
  return claimOf(std::move(results), "each piece begins and ends at a block boundary");
}

std::string cutText(const Piece& piece, std::int64_t size) {
  return piece.step == 1
             ? fmt::format("takes {}:{} of the {} of", piece.start, piece.end, counted(size, "element"))
             : fmt::format("takes {}:{}:{} of the {} of", piece.start, piece.end, piece.step, counted(size, "element"));
}

bool isAll(const Piece& piece, std::int64_t size) { return piece.start == 0 && piece.end >= size && piece.step == 1; }

Verdict cutPiece(Call& call, int dim, const Piece& piece) {
  const std::int64_t size = sizeOrZero(call.shape(0), dim);
  if (isAll(piece, size)) return keepOthers(call, dim, kAll, {});
  if (auto verdict = piecesOfBlocks(call, dim, {piece})) return *std::move(verdict);
  const Placement& p = call.at(0);
  // Every n-th element works if each rank's part begins at the same place of the pattern.
  const bool isPattern = piece.step > 1 && piece.start < piece.step && p.blocks().empty() &&
                         size - piece.end < piece.step && p.firstDim() == p.lastDim() &&
                         (p.touches(dim) ? localOperandSize(call, 0, dim) % piece.step == 0 : size % piece.step == 0) &&
                         (piece.end - piece.start + piece.step - 1) / piece.step == size / piece.step;
  return keepOthers(call, dim, isPattern ? kEveryNth : kCut, cutText(piece, size));
}

/// Reads start, end, step from this argument on.
Piece sliceFrom(const Call& call, int dim, std::size_t first) {
  const std::int64_t size = sizeOrZero(call.shape(0), dim);
  const auto clampTo = [size](std::int64_t i) { return std::clamp<std::int64_t>(i < 0 ? i + size : i, 0, size); };
  Piece piece;
  piece.start = clampTo(call.integer(first, 0));
  piece.end = std::max(piece.start, clampTo(call.integer(first + 1, std::numeric_limits<std::int64_t>::max())));
  piece.step = call.integer(first + 2, 1);
  if (piece.step < 1) call.complain(fmt::format("the step is {}", piece.step));
  return piece;
}

/// Arguments: self, dim, start, end, step.
Piece sliceOf(const Call& call, int dim) { return sliceFrom(call, dim, 2); }

Verdict slice(Call& call) {
  const int dim = call.dim(1, call.rank(0), 0);
  return cutPiece(call, dim, sliceOf(call, dim));
}

void localiseSlice(Call& call, std::span<const Placement>, std::vector<graph::Argument>& args) {
  const int dim = call.dim(1, call.rank(0), 0);
  if (!isCutAcross(call, dim)) return;
  const Piece piece = sliceOf(call, dim);
  const bool isToTheEnd = piece.step > 1 || piece.end >= sizeOrZero(call.shape(0), dim);
  setArgument(args, 2, piece.step > 1 ? piece.start : localOffset(call, dim, piece.start));
  setArgument(args, 3, isToTheEnd ? std::numeric_limits<std::int64_t>::max() : localOffset(call, dim, piece.end));
}

/// Arguments: self, dim, start, length.
Piece narrowOf(const Call& call, int dim) {
  const std::int64_t size = sizeOrZero(call.shape(0), dim);
  const std::int64_t start = call.integer(2, 0);
  Piece piece;
  piece.start = start < 0 ? start + size : start;
  piece.end = piece.start + call.integer(3, size);
  return piece;
}

Verdict narrow(Call& call) {
  const int dim = call.dim(1, call.rank(0), 0);
  return cutPiece(call, dim, narrowOf(call, dim));
}

void localiseNarrow(Call& call, std::span<const Placement> results, std::vector<graph::Argument>& args) {
  const int dim = call.dim(1, call.rank(0), 0);
  if (!isCutAcross(call, dim)) return;
  setArgument(args, 2, localOffset(call, dim, narrowOf(call, dim).start));
  setArgument(args, 3, localSize(call, results, 0, dim));
}

Verdict select(Call& call) {
  const int dim = call.dim(1, call.rank(0), 0);
  return keepOthers(call, dim, kCut, fmt::format("takes element {} of", call.integer(2, 0)), true);
}

Verdict unbind(Call& call) {
  const int dim = call.dim(1, call.rank(0), 0);
  return keepOthers(call, dim, kCut, "takes single elements of", true);
}

/// split, split_with_sizes and chunk: consecutive pieces with the sizes of the results.
Verdict splitAlong(Call& call, int dim) {
  if (call.resultCount() == 1 && call.resultShape(0) == call.shape(0)) return keepOthers(call, dim, kAll, {});
  std::vector<Piece> pieces;
  std::int64_t offset = 0;
  for (int r = 0; r < call.resultCount(); ++r) {
    const std::int64_t size = sizeOrZero(call.resultShape(r), dim);
    pieces.push_back({offset, offset + size, 1});
    offset += size;
  }
  if (auto verdict = piecesOfBlocks(call, dim, pieces)) return *std::move(verdict);
  return keepOthers(call, dim, kCut, fmt::format("cuts {} pieces from", call.resultCount()));
}

/// The argument is a list of sizes.
Verdict splitBySizes(Call& call) { return splitAlong(call, call.dim(2, call.rank(0), 0)); }

/// The argument is one size or a count. The pieces on a rank must be equal too, except a shorter last one.
Verdict splitBy(Call& call) {
  const int dim = call.dim(2, call.rank(0), 0);
  Verdict verdict = splitAlong(call, dim);
  const auto* claims = std::get_if<std::vector<Claim>>(&verdict);
  if (claims == nullptr || claims->empty() || !isCutAcross(call, dim)) return verdict;
  const auto& results = claims->front().results;
  const std::int64_t first = localSize(call, results, 0, dim);
  for (int r = 1; r < call.resultCount(); ++r) {
    const std::int64_t size = localSize(call, results, r, dim);
    const bool isLast = r + 1 == call.resultCount();
    if (size == first || (isLast && size < first && call.shortName().find("chunk") == std::string_view::npos)) continue;
    return conflictOf(
        fmt::format("`{}` splits into equal pieces, but with {} the pieces on a rank have {} and {} elements.",
                    call.shortName(), call.at(0).text(), first, size),
        {0});
  }
  return verdict;
}

void localiseSplitSize(Call& call, std::span<const Placement> results, std::vector<graph::Argument>& args) {
  const int dim = call.dim(2, call.rank(0), 0);
  if (isCutAcross(call, dim) && !results.empty()) setArgument(args, 1, localSize(call, results, 0, dim));
}

void localiseSplitSizes(Call& call, std::span<const Placement> results, std::vector<graph::Argument>& args) {
  const int dim = call.dim(2, call.rank(0), 0);
  if (!isCutAcross(call, dim)) return;
  std::vector<std::int64_t> sizes;
  for (int r = 0; r < call.resultCount(); ++r) sizes.push_back(localSize(call, results, r, dim));
  setArgument(args, 1, std::move(sizes));
}

/// True for all of a dimension, or every n-th element if the pattern starts anew in each even part.
bool reachesEveryPart(const Call& call, int dim, const Piece& piece) {
  const std::int64_t size = sizeOrZero(call.shape(0), dim);
  const bool isEven = piece.start < piece.step && size - piece.end < piece.step;
  return isAll(piece, size) || (piece.step > 1 && isEven && size % (piece.step * call.worldSize()) == 0);
}

/// Arguments: self, src, dim, start, end, step. Self with src in place of the slice, as functionalisation writes to a
/// view.
Verdict sliceScatter(Call& call) {
  const int dim = call.dim(2, call.rank(0), 0);
  const Piece piece = sliceFrom(call, dim, 3);
  const bool passes = reachesEveryPart(call, dim, piece);
  Axes axes(call);
  for (int d = 0; d < call.rank(0); ++d) {
    const int axis = d != dim ? axes.kept() : !passes ? axes.whole("writes to a part of") : axes.keptInProportion();
    axes.operand(0, d, axis).operand(1, d, axis).result(0, d, axis);
  }
  return axes.follow();
}

/// A write to all of a split dimension covers all of each rank's part.
void localiseSliceScatter(Call& call, std::span<const Placement>, std::vector<graph::Argument>& args) {
  const int dim = call.dim(2, call.rank(0), 0);
  const Piece piece = sliceFrom(call, dim, 3);
  if (reachesEveryPart(call, dim, piece)) setArgument(args, 4, std::numeric_limits<std::int64_t>::max());
}

/// Arguments: self, src, dim, index. src lacks the dimension.
Verdict selectScatter(Call& call) {
  const int dim = call.dim(2, call.rank(0), 0);
  Axes axes(call);
  for (int d = 0; d < call.rank(0); ++d) {
    const int axis = d == dim ? axes.whole("writes to a part of") : axes.kept();
    axes.operand(0, d, axis).result(0, d, axis);
    if (d != dim) axes.operand(1, d < dim ? d : d - 1, axis);
  }
  return axes.follow();
}

Verdict flip(Call& call) {
  const std::vector<int> dims = call.dims(1, call.rank(0));
  Axes axes(call);
  for (int d = 0; d < call.rank(0); ++d) {
    const bool isFlipped = std::find(dims.begin(), dims.end(), d) != dims.end();
    const int axis = isFlipped ? axes.whole("reverses") : axes.kept();
    axes.operand(0, d, axis);
    if (!isFlipped) axes.result(0, d, axis);
  }
  return axes.follow();
}

/// Arguments: self, shifts, dims. Without dims the flattened tensor is rolled.
Verdict roll(Call& call) {
  const std::vector<std::int64_t> shifts = call.integers(1);
  std::vector<std::int64_t> dims = call.integers(2);
  Axes axes(call);
  for (int d = 0; d < call.rank(0); ++d) {
    bool isRolled = dims.empty(), isTurned = false;
    for (std::size_t i = 0; i < dims.size() && i < shifts.size(); ++i) {
      const bool isSame = (dims[i] < 0 ? dims[i] + call.rank(0) : dims[i]) == d;
      const std::int64_t size = sizeOrZero(call.shape(0), d);
      isRolled = isRolled || (isSame && size != 0 && shifts[i] % size != 0);
      isTurned = isTurned || (isSame && shifts[i] != 0);
    }
    // A full turn of the dimension is a full turn of every even part.
    const int axis = isRolled ? axes.whole("rolls") : isTurned ? axes.keptInProportion() : axes.kept();
    axes.operand(0, d, axis);
    if (!isRolled) axes.result(0, d, axis);
  }
  return axes.follow();
}

/// Arguments: self, pad (pairs from the last dimension on), ...
Verdict pad(Call& call) {
  const std::vector<std::int64_t> amounts = call.integers(1);
  const int rank = call.rank(0);
  Axes axes(call);
  for (int d = 0; d < rank; ++d) {
    const auto pair = static_cast<std::size_t>(2 * (rank - 1 - d));
    const bool isPadded = pair + 1 < amounts.size() && (amounts[pair] != 0 || amounts[pair + 1] != 0);
    const int axis = isPadded ? axes.whole("pads") : axes.kept();
    axes.operand(0, d, axis);
    if (!isPadded) axes.result(0, d, axis);
  }
  return axes.follow();
}

/// tril, triu: the row and column numbers decide which elements are kept.
Verdict triangle(Call& call) {
  const int rank = call.rank(0);
  Axes axes(call);
  for (int d = 0; d < rank; ++d) {
    const int axis = d >= rank - 2 ? axes.whole("counts along") : axes.kept();
    axes.operand(0, d, axis);
    if (d < rank - 2) axes.result(0, d, axis);
  }
  return axes.follow();
}

constexpr Entry kSliceEntries[] = {
    {"aten::chunk", splitBy},
    {"aten::constant_pad_nd", pad},
    {"aten::flip", flip},
    {"aten::narrow", narrow, localiseNarrow},
    {"aten::pad", pad},
    {"aten::roll", roll},
    {"aten::select.int", select},
    {"aten::select_scatter", selectScatter},
    {"aten::slice.Tensor", slice, localiseSlice},
    {"aten::slice_scatter", sliceScatter, localiseSliceScatter},
    {"aten::split.Tensor", splitBy, localiseSplitSize},
    {"aten::split.sizes", splitBySizes, localiseSplitSizes},
    {"aten::split_with_sizes", splitBySizes, localiseSplitSizes},
    {"aten::tril", triangle},
    {"aten::triu", triangle},
    {"aten::unbind.int", unbind},
    {"aten::unsafe_chunk", splitBy},
    {"aten::unsafe_split.Tensor", splitBy, localiseSplitSize},
    {"aten::unsafe_split_with_sizes", splitBySizes, localiseSplitSizes},
};

}  // namespace

FamilyTable sliceFamily() {
  return {"slice",
          "a dimension that is sliced, partly written, padded, rolled or reversed must not be split; slices at block "
          "boundaries are possible",
          kSliceEntries};
}

}  // namespace cleave::rules
