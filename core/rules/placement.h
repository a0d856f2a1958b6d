#pragma once
// clang-format off
/// How one tensor is placed on the ranks of a tensor-parallel group.
///
/// | text                    | meaning                                                                           |
/// |-------------------------|-----------------------------------------------------------------------------------|
/// | `R`                     | replicated                                                                        |
/// | `S(d)`                  | dimension d split evenly, rank r holds part r                                     |
/// | `S(d,xk)`               | d split into n/k parts, rank r holds part r div k                                 |
/// | `S(d,b[4,1/x2])`        | d is a concatenation of blocks, each split evenly (or with replicas)              |
/// | `S(d,b3)`, `S(d,b3/x2)` | the same of three equal blocks (with replicas)                                    |
/// | `S(d:e)`, `S(d:e,xk)`   | adjacent dimensions d..e split jointly, row-major                                 |
/// | `S(d,pad p)`            | d padded by p at its end to divide, then split evenly                             |
///
/// A small value type; equality is equality of the text form. Dimensions are non-negative. Independent of any shape:
/// `localShape` and `ranges` say what a placement makes of one.
///
///     auto p = *Placement::parse("S(1)");
///     p.localShape({2, 8}, 4) == Shape{2, 2};   p.ranges({2, 8}, 4, /*rank=*/1) == {{2, 2}};
// clang-format on
#include "graph/types.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace cleave::rules {

using graph::Shape;

inline std::int64_t sizeAt(const Shape& shape, int dim) { return shape[static_cast<std::size_t>(dim)]; }
/// The product of the sizes before that dimension; saturated.
std::int64_t sizeBefore(const Shape& shape, int dim);

/// Elements [start, start + length) of the split dimension (of the joint, row-major index for `S(d:e)`).
struct Range {
  std::int64_t start = 0;
  std::int64_t length = 0;
  bool operator==(const Range&) const = default;
};

/// One part of a fused dimension: `size` elements in parts held by `replicas` neighbouring ranks each. Blocks that are
/// all equal carry size 0, an equal share of whatever the dimension has (`b3`); see Placement::blocksOf.
struct Block {
  std::int64_t size = 0;
  int replicas = 1;
  bool operator==(const Block&) const = default;
};

class Placement {
 public:
  Placement() = default;  ///< R
  static Placement replicated() { return {}; }
  static Placement split(int dim) { return joint(dim, dim); }
  static Placement joint(int firstDim, int lastDim);
  static std::optional<Placement> parse(std::string_view text);

  Placement withReplicas(int replicas) const;
  Placement withPadding(std::int64_t padding) const;
  /// Canonical: one block becomes plain (or replicas), equal blocks become `b<count>`.
  Placement withBlocks(std::vector<Block> blocks) const;
  /// The same placement after the split dimensions moved by `offset` (unsqueeze in front, reduction of a leading one).
  Placement shifted(int offset) const;

  bool isReplicated() const { return m_firstDim < 0; }
  bool isSplit() const { return m_firstDim >= 0; }
  /// Exactly `S(d)`: no replicas, blocks, joint dimensions or padding.
  bool isPlainSplit() const;
  bool isPlainSplit(int dim) const { return isPlainSplit() && m_firstDim == dim; }
  int firstDim() const { return m_firstDim; }  ///< -1 for R
  int lastDim() const { return m_lastDim; }
  bool touches(int dim) const { return isSplit() && m_firstDim <= dim && dim <= m_lastDim; }
  int replicas() const { return m_replicas; }
  std::int64_t padding() const { return m_padding; }
  const std::vector<Block>& blocks() const { return m_blocks; }  ///< empty: not a concatenation
  /// The blocks of a dimension of `size` elements, sizes filled in; one block for every other split.
  std::vector<Block> blocksOf(std::int64_t size) const;
  /// True when every rank holds everything although the text says "split" (as many replicas as ranks), and for R.
  bool isReplicatedOn(int worldSize) const;

  /// Shape that every rank holds; nullopt when the sizes do not divide or a dimension does not exist.
  /// For a joint split the outermost dimension is divided, and the inner ones as far as needed.
  std::optional<Shape> localShape(const Shape& shape, int worldSize) const;
  /// Elements of `localShape`, without making the shape: for loops that only count. Only valid where localShape is.
  std::int64_t localCount(const Shape& shape, int worldSize) const;
  /// What `rank` holds along the split dimension(s), in local order; empty for R. Only valid where localShape is.
  /// One range per block; padding is left out, so that the last ranks' ranges may be shorter than the local shape.
  std::vector<Range> ranges(const Shape& shape, int worldSize, int rank) const;
  /// Why localShape is nullopt, in words with the numbers ("12 does not divide by 8 ranks"); empty when it is not.
  std::string whyNotDivisible(const Shape& shape, int worldSize) const;

  std::string text() const;
  bool operator==(const Placement&) const = default;
  std::size_t hash() const;

 private:
  std::int16_t m_firstDim = -1;
  std::int16_t m_lastDim = -1;
  int m_replicas = 1;
  std::int64_t m_padding = 0;
  std::vector<Block> m_blocks;
};

}  // namespace cleave::rules

template <>
struct std::hash<cleave::rules::Placement> {
  std::size_t operator()(const cleave::rules::Placement& p) const noexcept { return p.hash(); }
};
