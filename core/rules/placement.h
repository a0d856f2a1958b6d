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
/// A small value type. Two placements are equal if their texts are equal. Dimensions are not negative. A placement is
/// independent of any shape: `localShape` and `ranges` apply it to one.
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
/// The product of the sizes before `dim`; saturates.
std::int64_t sizeBefore(const Shape& shape, int dim);

/// Elements [start, start + length) of the split dimension (of the joint, row-major index for `S(d:e)`).
struct Range {
  std::int64_t start = 0;
  std::int64_t length = 0;
  bool operator==(const Range&) const = default;
};

/// One part of a fused dimension: `size` elements, split into parts that `replicas` neighbouring ranks share. Equal
/// blocks have size 0, an equal share of the dimension (`b3`); see Placement::blocksOf.
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
  /// Makes the form canonical: one block becomes plain (or replicas), equal blocks become `b<count>`.
  Placement withBlocks(std::vector<Block> blocks) const;
  /// The same placement with its dimensions moved by `offset` (after an unsqueeze in front, or a reduction of a leading
  /// one).
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
  /// The blocks of a dimension of `size` elements, with their sizes. Every other split has one block.
  std::vector<Block> blocksOf(std::int64_t size) const;
  /// True if every rank has all elements: R, or a split with as many replicas as ranks.
  bool isReplicatedOn(int worldSize) const;

  /// Shape per rank; nullopt if the sizes do not divide or a dimension does not exist. A joint split divides the
  /// outermost dimension first, then inner ones as far as needed.
  std::optional<Shape> localShape(const Shape& shape, int worldSize) const;
  /// Number of elements in `localShape`, computed without the shape for loops that only count. Requires a valid
  /// localShape.
  std::int64_t localCount(const Shape& shape, int worldSize) const;
  /// The elements of `rank` along the split dimensions, in local order; empty for R. Requires a valid localShape. Each
  /// block has one range. Padding is excluded, so the last ranks' ranges may be shorter than the local shape.
  std::vector<Range> ranges(const Shape& shape, int worldSize, int rank) const;
  /// Why localShape is nullopt, with the numbers ("12 does not divide by 8 ranks"); empty if it has a value.
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
