#include "pipeline/compare/held_value.h"

#include "formats/element.h"
#include "formats/safetensors.h"
#include "pipeline/compare/element_index.h"

#include <algorithm>
#include <cmath>

namespace cleave::pipeline {
namespace {

/// Visits the elements of a rank's part: `visit(index in the part, index in the full value)`, both row-major.
template <class Visit>
void forEachElement(const HeldValue& value, int rank, Visit&& visit) {
  const std::int64_t total = graph::elementCount(value.shape);
  if (value.placement.isReplicated()) {
    for (std::int64_t i = 0; i < total; ++i) visit(i, i);
    return;
  }
  std::int64_t before = 1, joint = 1, after = 1;
  for (int dim = 0; dim < std::ssize(value.shape); ++dim) {
    std::int64_t& part = dim < value.placement.firstDim() ? before : dim > value.placement.lastDim() ? after : joint;
    part *= value.shape[static_cast<std::size_t>(dim)];
  }
  // A part may have padding at its end.
  const std::int64_t count = value.placement.localCount(value.shape, value.ranks);
  const std::int64_t length = before * after == 0 ? 0 : count / (before * after);
  const auto ranges = value.placement.ranges(value.shape, value.ranks, rank);
  for (std::int64_t outer = 0; outer < before; ++outer) {
    std::int64_t at = 0;
    for (const rules::Range& range : ranges) {
      for (std::int64_t i = 0; i < range.length; ++i, ++at) {
        for (std::int64_t inner = 0; inner < after; ++inner)
          visit((outer * length + at) * after + inner, (outer * joint + range.start + i) * after + inner);
      }
    }
  }
}

Result<std::vector<double>> readPart(const HeldValue& value, int rank) {
  const fs::path path = fmt::format("{}.{}", value.files.string(), rank);
  CLEAVE_TRY(const auto file, formats::SafetensorsFile::open(path));
  const formats::WeightSource* found = file.find(value.tensor);
  const auto local = value.placement.localShape(value.shape, value.ranks);
  if (!found || !local || found->type.shape != *local)
    return fail(ErrorCode::BadInput, "Rank {} wrote no part of {} with the full shape {}.", rank, value.tensor,
                graph::toText(value.shape));
  const formats::ElementLoader load = formats::elementLoader(found->type.dtype);
  if (!load)
    return fail(ErrorCode::BadInput, "Cleave cannot compare elements of type {}.", graph::toText(found->type.dtype));
  std::vector<std::byte> bytes(static_cast<std::size_t>(graph::sizeInBytes(found->type)));
  CLEAVE_TRY_VOID(file.read(*found, 0, bytes));
  const auto itemSize = static_cast<std::size_t>(graph::itemSize(found->type.dtype));
  std::vector<double> numbers(bytes.size() / itemSize);
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = load(bytes.data() + i * itemSize);
  return numbers;
}

Result<std::vector<double>> readWhole(const HeldValue& value) {
  std::vector<double> whole(static_cast<std::size_t>(graph::elementCount(value.shape)));
  const int parts = value.placement.isReplicated() ? 1 : value.ranks;
  for (int rank = parts - 1; rank >= 0; --rank) {
    CLEAVE_TRY(const std::vector<double> part, readPart(value, rank));
    forEachElement(value, rank, [&](std::int64_t from, std::int64_t to) {
      whole[static_cast<std::size_t>(to)] = part[static_cast<std::size_t>(from)];
    });
  }
  return whole;
}

double sizeOf(const std::vector<double>& numbers) {
  Magnitudes magnitudes;
  for (const double number : numbers) magnitudes.add(number);
  return magnitudes.size();
}

/// The difference relative to the allowed one; above 1: the elements differ.
double apart(double actual, double expected, const Rounding& rounding, double scale) {
  if (std::isnan(actual) && std::isnan(expected)) return 0;
  if (!std::isfinite(actual) || !std::isfinite(expected)) return actual == expected ? 0 : HUGE_VAL;
  const double difference = std::abs(actual - expected);
  return difference == 0 ? 0 : difference / rounding.allowed(expected, scale);
}

}  // namespace

Result<ValueDifference> differenceOf(const HeldValue& actual, const HeldValue& expected, const Rounding& rounding) {
  ValueDifference difference;
  CLEAVE_TRY(const std::vector<double> whole, readWhole(expected));
  difference.elements = std::ssize(whole);
  const double scale = sizeOf(whole);
  double farthest = 1;
  for (int rank = 0; rank < actual.ranks; ++rank) {
    CLEAVE_TRY(const std::vector<double> part, readPart(actual, rank));
    std::int64_t outside = 0, jumped = 0;
    forEachElement(actual, rank, [&](std::int64_t own, std::int64_t at) {
      const double is = part[static_cast<std::size_t>(own)], shouldBe = whole[static_cast<std::size_t>(at)];
      const double far = apart(is, shouldBe, rounding, scale);
      const bool jumps = far > 1 && std::isfinite(far) && rounding.mayJump(std::abs(is - shouldBe));
      (jumps ? jumped : outside) += far > 1;
      if (far <= farthest || jumps) return;
      farthest = far;
      difference.largest =
          ElementDifference{indexOf(at, actual.shape), rank, is, shouldBe, rounding.allowed(shouldBe, scale)};
    });
    if (rounding.moves && jumped > rounding.moves->maxJumps()) outside += jumped;
    difference.outside = std::max(difference.outside, outside);
  }
  return difference;
}

Result<Moves> movesOf(const HeldValue& reordered, const HeldValue& unsplit, double unit) {
  CLEAVE_TRY(const std::vector<double> left, readWhole(unsplit));
  CLEAVE_TRY(const std::vector<double> right, readWhole(reordered));
  MoveFinder finder(unit);
  const std::size_t count = std::min(left.size(), right.size());
  for (std::size_t i = 0; i < count; ++i) finder.look(left[i], right[i]);
  for (std::size_t i = 0; i < count; ++i) finder.measure(left[i], right[i]);
  return finder.found();
}

Result<ValueDifference> nanElementsOf(const HeldValue& value) {
  ValueDifference found;
  CLEAVE_TRY(const std::vector<double> whole, readWhole(value));
  found.elements = std::ssize(whole);
  for (std::size_t at = 0; at < whole.size(); ++at) {
    if (!std::isnan(whole[at])) continue;
    if (found.outside++ == 0)
      found.largest = ElementDifference{indexOf(static_cast<std::int64_t>(at), value.shape), 0, whole[at], whole[at]};
  }
  return found;
}

}  // namespace cleave::pipeline
