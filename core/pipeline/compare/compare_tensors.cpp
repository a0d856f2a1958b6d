#include "pipeline/compare/compare_tensors.h"

#include "formats/safetensors.h"
#include "pipeline/compare/element_index.h"
#include "pipeline/compare/expected_tensor.h"
#include "pipeline/compare/stored_tensor.h"

#include <algorithm>
#include <cmath>

namespace cleave::pipeline {
namespace {

/// Returns true if this element differs most so far. `allowed` applies to two finite numbers.
bool addElement(OutputDifference& difference, double actual, double expected, double allowed) {
  const double before = difference.ofTolerance;
  if (std::isnan(actual) || std::isnan(expected)) {
    ++difference.notANumber;
    difference.maxAbs = difference.maxRel = difference.ofTolerance = HUGE_VAL;
  } else if (std::isinf(actual) || std::isinf(expected)) {
    // No tolerance makes an infinity equal to another value.
    if (actual == expected) return false;
    ++difference.outside;
    difference.maxAbs = difference.maxRel = difference.ofTolerance = HUGE_VAL;
  } else {
    const double absolute = std::abs(actual - expected);
    difference.maxAbs = std::max(difference.maxAbs, absolute);
    if (absolute > 0)
      difference.maxRel = std::max(difference.maxRel, expected == 0 ? HUGE_VAL : absolute / std::abs(expected));
    if (absolute > 0)
      difference.ofTolerance = std::max(difference.ofTolerance, allowed > 0 ? absolute / allowed : HUGE_VAL);
    difference.outside += !(absolute <= allowed);
  }
  return difference.ofTolerance > before;
}

/// Calls `visit(index in the chunk, index in the tensor)` for each element of tensors of one size, read in chunks. An
/// element is `tensor.at(index in the chunk)`.
template <class Visit>
Result<void> forEachPlace(std::int64_t total, const std::vector<StoredTensor*>& tensors, Visit visit) {
  for (std::int64_t first = 0; first < total; first += kChunkElements) {
    const std::int64_t count = std::min(kChunkElements, total - first);
    for (StoredTensor* tensor : tensors) CLEAVE_TRY_VOID(tensor->read(first, count));
    for (std::int64_t i = 0; i < count; ++i) visit(i, first + i);
  }
  return {};
}

/// The size (rounding.h) of the elements that are compared.
Result<double> sizeOf(StoredTensor stored, const std::function<bool(std::int64_t)>& isLeftOut) {
  const std::int64_t total = graph::elementCount(stored.source.type.shape);
  Magnitudes magnitudes;
  CLEAVE_TRY_VOID(forEachPlace(total, {&stored}, [&](std::int64_t i, std::int64_t place) {
    if (!isLeftOut(place)) magnitudes.add(stored.at(i));
  }));
  return magnitudes.size();
}

/// The padding if this output has token positions; otherwise null.
const std::vector<bool>* paddingIn(const std::string& name, const graph::Shape& shape, const Padding& padding) {
  const bool hasPositions = name == "logits" && shape.size() == 3;
  const bool isCounted = hasPositions && shape[0] * shape[1] == std::ssize(padding.isPadding);
  return isCounted ? &padding.isPadding : nullptr;
}

/// Counts the jumped elements as outside if there are more than allowed.
OutputDifference withJumps(OutputDifference difference, const OutputDifference& jumped) {
  if (jumped.outside == 0) return difference;
  difference.maxAbs = std::max(difference.maxAbs, jumped.maxAbs);
  difference.maxRel = std::max(difference.maxRel, jumped.maxRel);
  if (jumped.outside <= difference.rounding.moves->maxJumps()) {
    difference.jumped = jumped.outside;
    return difference;
  }
  difference.outside += jumped.outside;
  if (jumped.ofTolerance <= difference.ofTolerance) return difference;
  difference.ofTolerance = jumped.ofTolerance;
  difference.place = jumped.place;
  difference.actual = jumped.actual;
  difference.expected = jumped.expected;
  difference.allowed = jumped.allowed;
  return difference;
}

Result<OutputDifference> compareOne(const std::string& name, StoredTensor actual, StoredTensor expected,
                                    std::vector<StoredTensor> masks, const Comparison& comparison) {
  OutputDifference difference, jumped;
  difference.name = name;
  const graph::Shape& shape = actual.source.type.shape;
  const std::int64_t total = graph::elementCount(shape);
  const std::vector<bool>* isPadding = paddingIn(name, shape, comparison.padding);
  if (isPadding) {
    difference.positions = std::ssize(*isPadding);
    difference.padding = std::count(isPadding->begin(), isPadding->end(), true);
  }
  const auto isLeftOut = [&](std::int64_t at) {
    return isPadding && (*isPadding)[static_cast<std::size_t>(at / shape.back())];
  };
  const auto own = comparison.roundings.find(name);
  difference.rounding = own == comparison.roundings.end() ? comparison.rounding : own->second;
  difference.rounding.elements = total;
  if (!graph::isFloatingPoint(actual.source.type.dtype)) difference.rounding.unit = 0;  // an index has no rounding
  const bool isByRounding = !comparison.rtol && !comparison.atol;
  double size = 0;
  if (isByRounding) {
    // The smaller one, because a tensor with nothing but fill values has their size.
    CLEAVE_TRY(const double ofExpected, sizeOf(expected, isLeftOut));
    CLEAVE_TRY(const double ofActual, sizeOf(actual, isLeftOut));
    size = std::min(ofExpected, ofActual);
  }
  const auto allowedOf = [&](double value) {
    return isByRounding ? difference.rounding.allowed(value, size)
                        : comparison.atol.value_or(0) + comparison.rtol.value_or(0) * std::abs(value);
  };
  std::vector<StoredTensor*> tensors{&actual, &expected};
  for (StoredTensor& mask : masks) tensors.push_back(&mask);
  CLEAVE_TRY_VOID(forEachPlace(total, tensors, [&](std::int64_t i, std::int64_t place) {
    if (isLeftOut(place)) return;
    const bool areNumbers = std::isfinite(actual.at(i)) && std::isfinite(expected.at(i));
    const bool isByChance =
        !masks.empty() && areNumbers && std::ranges::all_of(masks, [i](const StoredTensor& m) { return m.at(i) != 0; });
    difference.undetermined += isByChance && actual.at(i) != expected.at(i);
    const double allowed = allowedOf(expected.at(i)) + (isByChance ? comparison.moves : 0);
    const double apart = std::abs(actual.at(i) - expected.at(i));
    const bool jumps = isByRounding && areNumbers && apart > allowed && difference.rounding.mayJump(apart);
    OutputDifference& into = jumps ? jumped : difference;
    if (!addElement(into, actual.at(i), expected.at(i), allowed)) return;
    into.place = indexOf(place, shape);
    into.actual = actual.at(i);
    into.expected = expected.at(i);
    into.allowed = allowed;
  }));
  return withJumps(std::move(difference), jumped);
}

}  // namespace

Result<Padding> paddingOf(const plan::ModelInfo& model, const fs::path& inputs) {
  if (!model.input.mask) return Padding{};
  CLEAVE_TRY(const auto file, formats::SafetensorsFile::open(inputs));
  const formats::WeightSource* found = file.find("attention_mask");
  if (!found || found->type.shape != graph::Shape{model.batch, model.sequence}) return Padding{};
  StoredTensor mask = StoredTensor::of(file, *found);
  if (!mask.loader) return Padding{};
  CLEAVE_TRY_VOID(mask.read(0, model.batch * model.sequence));
  const std::int64_t kept =
      model.input.logitsToKeep == 0 ? model.sequence : std::min(model.input.logitsToKeep, model.sequence);
  Padding padding;
  for (std::int64_t row = 0; row < model.batch; ++row) {
    for (std::int64_t position = model.sequence - kept; position < model.sequence; ++position)
      padding.isPadding.push_back(mask.at(row * model.sequence + position) == 0);
  }
  if (std::find(padding.isPadding.begin(), padding.isPadding.end(), false) == padding.isPadding.end()) {
    return fail(ErrorCode::BadInput,
                "{}: attention_mask is 0 at all positions with logits, so no logits can be compared. Set it to 1 at "
                "some of them.",
                inputs.string());
  }
  return padding;
}

namespace {

/// The masks of the undetermined elements of a trained parameter; empty if all elements are determined.
std::vector<StoredTensor> masksOf(const std::string& name, const std::string& there,
                                  const formats::SafetensorsFile& actual, const formats::SafetensorsFile& expected,
                                  const Comparison& comparison) {
  if (!comparison.isTraining) return {};
  const auto* own = actual.find(std::string(kUndetermined) + name);
  const auto* other = comparison.isExpectedOfRun ? expected.find(std::string(kUndetermined) + there) : own;
  if (!own || !other) return {};
  std::vector<StoredTensor> masks;
  masks.push_back(StoredTensor::of(actual, *own));
  if (comparison.isExpectedOfRun) masks.push_back(StoredTensor::of(expected, *other));
  return masks;
}

}  // namespace

Result<std::vector<OutputDifference>> compareTensors(const fs::path& actualPath, const fs::path& expectedPath,
                                                     const Comparison& comparison) {
  CLEAVE_TRY(const auto actual, formats::SafetensorsFile::open(actualPath));
  CLEAVE_TRY(const auto expected, formats::SafetensorsFile::open(expectedPath));
  std::vector<OutputDifference> differences;
  for (const auto& [name, tensor] : actual.tensors()) {
    if (comparison.isTraining && name.starts_with(kUndetermined)) continue;
    const auto renamed = comparison.otherNames.find(name);
    const std::string& there = renamed == comparison.otherNames.end() ? name : renamed->second;
    if (comparison.isTraining && !expected.find(there)) continue;
    CLEAVE_TRY(const auto* other, expectedTensor(expected, there, tensor.type.shape));
    StoredTensor actualSide = StoredTensor::of(actual, tensor);
    StoredTensor expectedSide = StoredTensor::of(expected, *other);
    if (!actualSide.loader || !expectedSide.loader)
      return fail(ErrorCode::BadInput, "Cleave cannot compare {}: it is stored in an 8-bit float type.", name);
    CLEAVE_TRY(auto difference, compareOne(name, std::move(actualSide), std::move(expectedSide),
                                           masksOf(name, there, actual, expected, comparison), comparison));
    differences.push_back(std::move(difference));
  }
  return differences;
}

Result<std::map<std::string, Moves>> movesBetween(const fs::path& unsplit, const fs::path& reordered,
                                                  const std::function<double(const std::string&)>& unitOf) {
  CLEAVE_TRY(const auto one, formats::SafetensorsFile::open(unsplit));
  CLEAVE_TRY(const auto other, formats::SafetensorsFile::open(reordered));
  std::map<std::string, Moves> moves;
  for (const auto& [name, tensor] : one.tensors()) {
    const formats::WeightSource* same = other.find(name);
    if (!same || !isSameShape(same->type.shape, tensor.type.shape)) continue;
    StoredTensor left = StoredTensor::of(one, tensor), right = StoredTensor::of(other, *same);
    if (!left.loader || !right.loader) continue;
    MoveFinder finder(graph::isFloatingPoint(tensor.type.dtype) ? unitOf(name) : 0);
    const std::int64_t total = graph::elementCount(tensor.type.shape);
    CLEAVE_TRY_VOID(forEachPlace(total, {&left, &right},
                                 [&](std::int64_t i, std::int64_t) { finder.look(left.at(i), right.at(i)); }));
    CLEAVE_TRY_VOID(forEachPlace(total, {&left, &right},
                                 [&](std::int64_t i, std::int64_t) { finder.measure(left.at(i), right.at(i)); }));
    moves[name] = finder.found();
  }
  return moves;
}

}  // namespace cleave::pipeline
