#include "plan/build/gather.h"

#include "graph/operators.h"
#include "plan/plan.h"

#include <algorithm>

namespace cleave::plan {
namespace {

using graph::Argument;
using graph::Shape;
using graph::TensorType;
using graph::ValueId;

/// Elements [offset, offset + length) of the gathered dimension.
struct Section {
  std::int64_t start = 0;  ///< where they lie in the whole
  std::int64_t length = 0;
  std::int64_t offset = 0;  ///< where they lie after the all-gather
};

/// Sections in the order of the whole, as few as possible; elements held by several ranks are taken from the first.
std::vector<Section> sectionsInOrder(const rules::Placement& placement, const Shape& whole, int ranks,
                                     std::int64_t lengthOfPart) {
  std::vector<Section> sections;
  for (int rank = 0; rank < ranks; ++rank) {
    std::int64_t offset = rank * lengthOfPart;
    for (const rules::Range& range : placement.ranges(whole, ranks, rank)) {
      if (range.length > 0) sections.push_back({range.start, range.length, offset});
      offset += range.length;
    }
  }
  std::stable_sort(sections.begin(), sections.end(),
                   [](const Section& a, const Section& b) { return a.start < b.start; });
  std::vector<Section> ordered;
  std::int64_t covered = 0;
  for (const Section& section : sections) {
    if (section.start < covered) continue;
    CLEAVE_CHECK(section.start == covered, "{} leaves a gap at {}", placement.text(), covered);
    covered += section.length;
    const bool continues = !ordered.empty() && ordered.back().offset + ordered.back().length == section.offset;
    if (continues) {
      ordered.back().length += section.length;
    } else {
      ordered.push_back(section);
    }
  }
  return ordered;
}

/// The shape with dimensions first..last merged into one.
Shape merged(const Shape& shape, std::size_t first, std::size_t last) {
  Shape result(shape.begin(), shape.begin() + static_cast<std::ptrdiff_t>(first));
  std::int64_t product = 1;
  for (std::size_t d = first; d <= last; ++d) product *= shape[d];
  result.push_back(product);
  result.insert(result.end(), shape.begin() + static_cast<std::ptrdiff_t>(last) + 1, shape.end());
  return result;
}

}  // namespace

ValueId addGather(const graph::Graph& program, const AppendCall& append, ValueId part,
                  const rules::Placement& placement, const TensorType& whole, int ranks) {
  const auto dim = static_cast<std::size_t>(placement.firstDim());
  const auto lastDim = static_cast<std::size_t>(placement.lastDim());
  const bool isJoint = lastDim > dim;
  TensorType type = program.value(part).type;
  ValueId value = part;
  if (isJoint) {
    type.shape = merged(type.shape, dim, lastDim);
    value = append("aten::reshape", {value, type.shape}, type);
  }
  const std::int64_t lengthOfPart = type.shape[dim];
  type.shape[dim] *= ranks;
  const std::int64_t gatheredLength = type.shape[dim];
  value = append(graph::kAllGather, {value, static_cast<std::int64_t>(dim)}, type);

  const auto sections = sectionsInOrder(placement, whole.shape, ranks, lengthOfPart);
  const auto cut = [&](const Section& section) {
    TensorType piece = type;
    piece.shape[dim] = section.length;
    return append(
        "aten::slice.Tensor",
        {value, static_cast<std::int64_t>(dim), section.offset, section.offset + section.length, std::int64_t{1}},
        piece);
  };
  if (sections.size() == 1 && sections[0].length != gatheredLength) {
    value = cut(sections[0]);
  } else if (sections.size() > 1) {
    graph::ValueList pieces;
    for (const Section& section : sections) pieces.push_back(cut(section));
    type.shape[dim] = merged(whole.shape, dim, lastDim)[dim];
    value = append("aten::cat", {pieces, static_cast<std::int64_t>(dim)}, type);
  }
  if (isJoint) value = append("aten::reshape", {value, whole.shape}, whole);
  return value;
}

}  // namespace cleave::plan
