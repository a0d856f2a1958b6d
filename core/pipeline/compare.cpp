#include "pipeline/compare.h"

#include "base/quantities.h"
#include "families/checkpoint_names.h"
#include "formats/element.h"
#include "formats/safetensors.h"
#include "formats/weight_files.h"
#include "pipeline/open.h"
#include "pipeline/value_difference.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <map>
#include <set>

namespace cleave::pipeline {
namespace {

constexpr std::int64_t kChunkElements = 1 << 16;
constexpr std::string_view kLosses = "losses", kParameter = "param.",
                           kUndetermined = "undetermined.";  // see libtorch/rank/inputs.h
// What a file of inputs may hold although this run does not read it: labels where the loss is off.
constexpr std::array<std::string_view, 5> kInputNames{"input_ids", "labels", "attention_mask", "token_type_ids",
                                                      "position_ids"};

/// A stored tensor, read a chunk at a time.
struct Stored {
  /// Elements from the first on.
  std::function<Result<void>(std::int64_t first, std::span<std::byte> out)> readElements;
  const formats::WeightSource& source;
  formats::ElementLoader loader = formats::elementLoader(source.type.dtype);
  std::vector<std::byte> chunk = {};

  Result<void> read(std::int64_t first, std::int64_t count) {
    const int itemBytes = graph::itemSize(source.type.dtype);
    chunk.resize(static_cast<std::size_t>(count * itemBytes));
    return readElements(first, chunk);
  }
  static Stored of(const formats::SafetensorsFile& file, const formats::WeightSource& source) {
    return {[&](std::int64_t first, std::span<std::byte> out) {
              return file.read(source, first * graph::itemSize(source.type.dtype), out);
            },
            source};
  }
  double at(std::int64_t i) const { return loader(chunk.data() + i * graph::itemSize(source.type.dtype)); }
};

/// Whether it is the farthest so far. `allowed`: of two finite numbers.
bool addElement(OutputDifference& difference, double actual, double expected, double allowed) {
  const double before = difference.ofTolerance;
  if (std::isnan(actual) || std::isnan(expected)) {
    ++difference.notANumber;
    difference.maxAbs = difference.maxRel = difference.ofTolerance = HUGE_VAL;
  } else if (std::isinf(actual) || std::isinf(expected)) {
    // No tolerance reaches from an infinity to anything else.
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

/// Calls `visit(at)` for each place of tensors of one size, read a chunk at a time; an element is `tensor.at(at in the
/// chunk)`, which is the first argument, the place in the tensor the second.
template <class Visit>
Result<void> forEachPlace(std::int64_t total, const std::vector<Stored*>& tensors, Visit visit) {
  for (std::int64_t first = 0; first < total; first += kChunkElements) {
    const std::int64_t count = std::min(kChunkElements, total - first);
    for (Stored* tensor : tensors) CLEAVE_TRY_VOID(tensor->read(first, count));
    for (std::int64_t i = 0; i < count; ++i) visit(i, first + i);
  }
  return {};
}

/// Size of the elements that are compared (rounding.h).
Result<double> sizeOf(Stored stored, const std::function<bool(std::int64_t)>& isLeftOut) {
  const std::int64_t total = graph::elementCount(stored.source.type.shape);
  Magnitudes magnitudes;
  CLEAVE_TRY_VOID(forEachPlace(total, {&stored}, [&](std::int64_t i, std::int64_t place) {
    if (!isLeftOut(place)) magnitudes.add(stored.at(i));
  }));
  return magnitudes.size();
}

/// The padding, if this output has its positions.
const std::vector<bool>* paddingIn(const std::string& name, const graph::Shape& shape, const Padding& padding) {
  const bool hasPositions = name == "logits" && shape.size() == 3;
  const bool isCounted = hasPositions && shape[0] * shape[1] == std::ssize(padding.isPadding);
  return isCounted ? &padding.isPadding : nullptr;
}

/// Elements that jumped count as outside where they are more than may.
OutputDifference withJumps(OutputDifference difference, const OutputDifference& jumped) {
  if (jumped.outside == 0) return difference;
  difference.maxAbs = std::max(difference.maxAbs, jumped.maxAbs);
  difference.maxRel = std::max(difference.maxRel, jumped.maxRel);
  if (jumped.outside <= difference.rounding.moves->mostJumps()) {
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

Result<OutputDifference> compareOne(const std::string& name, Stored actual, Stored expected, std::vector<Stored> masks,
                                    const Comparison& comparison) {
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
    // The smaller one: a tensor that is nothing but fill has the size of that.
    CLEAVE_TRY(const double ofExpected, sizeOf(expected, isLeftOut));
    CLEAVE_TRY(const double ofActual, sizeOf(actual, isLeftOut));
    size = std::min(ofExpected, ofActual);
  }
  const auto allowedOf = [&](double value) {
    return isByRounding ? difference.rounding.allowed(value, size)
                        : comparison.atol.value_or(0) + comparison.rtol.value_or(0) * std::abs(value);
  };
  std::vector<Stored*> tensors{&actual, &expected};
  for (Stored& mask : masks) tensors.push_back(&mask);
  CLEAVE_TRY_VOID(forEachPlace(total, tensors, [&](std::int64_t i, std::int64_t place) {
    if (isLeftOut(place)) return;
    const bool areNumbers = std::isfinite(actual.at(i)) && std::isfinite(expected.at(i));
    const bool isByChance = !masks.empty() && areNumbers &&
                            std::all_of(masks.begin(), masks.end(), [i](const Stored& m) { return m.at(i) != 0; });
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

/// A single number may be saved without dimensions or as a list of one.
bool isSameShape(const graph::Shape& a, const graph::Shape& b) {
  const auto isNumber = [](const graph::Shape& shape) { return shape.size() <= 1 && graph::elementCount(shape) == 1; };
  return a == b || (isNumber(a) && isNumber(b));
}

Result<const formats::WeightSource*> expectedTensor(const formats::SafetensorsFile& expected, const std::string& name,
                                                    const graph::Shape& shape) {
  const std::string where = expected.path().string();
  const formats::WeightSource* found = expected.find(name);
  if (!found) {
    return fail(ErrorCode::BadInput,
                "{} has no tensor {}, which this run computes: add it, or give the file as --input alone to compare "
                "with an unsplit run{}.",
                where, name, name == "loss" ? ", or leave the loss out with --loss off" : "");
  }
  if (!isSameShape(found->type.shape, shape)) {
    return fail(
        ErrorCode::BadInput,
        "{} has {} in shape {}, and the run gives {}: expect a file made with the same batch, sequence and outputs.",
        where, name, graph::toText(found->type.shape), graph::toText(shape));
  }
  return found;
}

std::set<std::string_view> inputsOf(const plan::Plan& plan) {
  std::set<std::string_view> names;
  for (const graph::Node& node : plan.program->nodes) {
    if (node.kind == graph::NodeKind::Input) names.insert(plan.program->value(node.results.front()).name);
  }
  return names;
}

bool isOfTraining(std::string_view tensor) {
  return tensor == kLosses || tensor.starts_with(kParameter) || tensor.starts_with(kUndetermined);
}

}  // namespace

Result<std::vector<std::string>> checkExpected(const plan::Plan& plan, const fs::path& expected, int replicas) {
  CLEAVE_TRY(const auto file, formats::SafetensorsFile::open(expected));
  std::set<std::string_view> known = inputsOf(plan);
  known.insert(kInputNames.begin(), kInputNames.end());
  for (const graph::Output& output : plan.program->outputs) {
    graph::Shape shape = plan.program->shapeOf(output.value);
    if (!shape.empty()) shape[0] *= replicas;
    CLEAVE_TRY_VOID(expectedTensor(file, output.name, shape));
    known.insert(output.name);
  }
  std::vector<std::string> others;
  for (const auto& [name, tensor] : file.tensors()) {
    if (!known.contains(name)) others.push_back(name);
  }
  return others;
}

Result<std::vector<std::string>> checkExpectedTraining(const plan::Plan& plan, std::int64_t steps,
                                                       const fs::path& expected) {
  CLEAVE_TRY(const auto file, formats::SafetensorsFile::open(expected));
  std::map<std::string, graph::Shape> known{{std::string(kLosses), {steps}}};
  for (const program::ParameterShards& parameter : plan.parameters)
    known.emplace("param." + parameter.name, parameter.type.shape);
  std::set<std::string_view> inputs = inputsOf(plan);
  inputs.insert(kInputNames.begin(), kInputNames.end());
  CLEAVE_TRY(const auto otherNames, otherNamesIn(plan, expected));
  for (const auto& [ours, theirs] : otherNames) {
    if (const auto at = known.find(ours); at != known.end()) known.emplace(theirs, at->second);
  }
  std::vector<std::string> others;
  bool hasAny = false;
  for (const auto& [name, tensor] : file.tensors()) {
    if (name.starts_with(kUndetermined)) continue;
    const auto at = known.find(name);
    if (at == known.end()) {
      if (!inputs.contains(name)) others.push_back(name);
      continue;
    }
    CLEAVE_TRY_VOID(expectedTensor(file, name, at->second));
    hasAny = true;
  }
  if (hasAny) return others;
  return fail(ErrorCode::BadInput,
              "{} has nothing that training gives: expect \"losses\" of {}, or parameters as \"param.{}\".",
              expected.string(), counted(steps, "step"), plan.parameters.empty() ? "NAME" : plan.parameters[0].name);
}

Result<std::map<std::string, std::string>> otherNamesIn(const plan::Plan& plan, const fs::path& expected) {
  CLEAVE_TRY(const auto file, formats::SafetensorsFile::open(expected));
  std::map<std::string, std::string> names;
  const auto isThere = [&](const std::string& name) { return file.find(std::string(kParameter) + name) != nullptr; };
  for (const auto& [name, others] : plan.program->tiedNames) {
    const auto other = std::find_if(others.begin(), others.end(), isThere);
    if (!isThere(name) && other != others.end())
      names.emplace(std::string(kParameter) + name, std::string(kParameter) + *other);
  }
  const families::Family* family = families::findFamily(plan.model.modelType);
  if (!family) return names;
  std::vector<std::string> theirs;
  for (const auto& [name, tensor] : file.tensors()) {
    if (name.starts_with(kParameter)) theirs.push_back(name.substr(kParameter.size()));
  }
  const std::vector<std::string> ours = families::modelNames(*family, theirs);
  for (std::size_t i = 0; i < ours.size(); ++i) {
    if (ours[i] != theirs[i]) names.emplace(std::string(kParameter) + ours[i], std::string(kParameter) + theirs[i]);
  }
  return names;
}

Result<bool> holdsInputs(const fs::path& path) {
  CLEAVE_TRY(const auto file, formats::SafetensorsFile::open(path));
  return std::any_of(file.tensors().begin(), file.tensors().end(),
                     [](const auto& tensor) { return !isOfTraining(tensor.first); });
}

Result<std::vector<std::string>> unusedInputs(const plan::Plan& plan, const fs::path& inputs) {
  CLEAVE_TRY(const auto file, formats::SafetensorsFile::open(inputs));
  std::set<std::string_view> known = inputsOf(plan);
  for (const graph::Output& output : plan.program->outputs) known.insert(output.name);
  std::vector<std::string> unused;
  for (const auto& [name, tensor] : file.tensors()) {
    if (!known.contains(name) && !isOfTraining(name)) unused.push_back(name);
  }
  return unused;
}

Result<Padding> paddingOf(const plan::ModelInfo& model, const fs::path& inputs) {
  if (!model.hasMask) return Padding{};
  CLEAVE_TRY(const auto file, formats::SafetensorsFile::open(inputs));
  const formats::WeightSource* found = file.find("attention_mask");
  if (!found || found->type.shape != graph::Shape{model.batch, model.sequence}) return Padding{};
  Stored mask = Stored::of(file, *found);
  if (!mask.loader) return Padding{};
  CLEAVE_TRY_VOID(mask.read(0, model.batch * model.sequence));
  const std::int64_t kept = model.logitsToKeep == 0 ? model.sequence : std::min(model.logitsToKeep, model.sequence);
  Padding padding;
  for (std::int64_t row = 0; row < model.batch; ++row) {
    for (std::int64_t position = model.sequence - kept; position < model.sequence; ++position)
      padding.isPadding.push_back(mask.at(row * model.sequence + position) == 0);
  }
  if (std::find(padding.isPadding.begin(), padding.isPadding.end(), false) == padding.isPadding.end()) {
    return fail(ErrorCode::BadInput,
                "{}: attention_mask is 0 at all positions whose logits are computed, so that none is left to compare.",
                inputs.string());
  }
  return padding;
}

Result<bool> leavesNoLabel(const fs::path& inputs) {
  constexpr double kIgnored = -100;  // transformers' ignore_index
  CLEAVE_TRY(const auto file, formats::SafetensorsFile::open(inputs));
  const formats::WeightSource* found = file.find("labels");
  if (!found) return false;
  Stored labels = Stored::of(file, *found);
  if (!labels.loader) return false;
  const std::int64_t total = graph::elementCount(found->type.shape);
  for (std::int64_t first = 0; first < total; first += kChunkElements) {
    const std::int64_t count = std::min(kChunkElements, total - first);
    CLEAVE_TRY_VOID(labels.read(first, count));
    for (std::int64_t i = 0; i < count; ++i) {
      if (labels.at(i) != kIgnored) return false;
    }
  }
  return total > 0;
}

namespace {

/// What says of each element of a trained parameter whether it is undetermined; empty: none is.
std::vector<Stored> masksOf(const std::string& name, const std::string& there, const formats::SafetensorsFile& actual,
                            const formats::SafetensorsFile& expected, const Comparison& comparison) {
  if (!comparison.isTraining) return {};
  const auto* own = actual.find(std::string(kUndetermined) + name);
  const auto* other = comparison.isExpectedOfRun ? expected.find(std::string(kUndetermined) + there) : own;
  if (!own || !other) return {};
  std::vector<Stored> masks;
  masks.push_back(Stored::of(actual, *own));
  if (comparison.isExpectedOfRun) masks.push_back(Stored::of(expected, *other));
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
    Stored actualSide = Stored::of(actual, tensor);
    Stored expectedSide = Stored::of(expected, *other);
    if (!actualSide.loader || !expectedSide.loader)
      return fail(ErrorCode::BadInput, "{} is stored in an 8-bit float type, which cannot be compared.", name);
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
    Stored left = Stored::of(one, tensor), right = Stored::of(other, *same);
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

Result<std::string> weightThatIsNotFinite(const plan::ModelInfo& model, const Progress& progress) {
  CLEAVE_TRY(const Checkpoint checkpoint, readCheckpoint(model, progress));
  formats::WeightReader reader(checkpoint.places);
  std::int64_t done = 0;
  for (const auto& [name, tensor] : checkpoint.tensors) {
    progress.report("look for weights that are not numbers", done++, std::ssize(checkpoint.tensors));
    if (!graph::isFloatingPoint(tensor.type.dtype)) continue;
    CLEAVE_TRY(const auto* file, reader.open(tensor.file));
    const std::vector<std::size_t> order = formats::storageOrder(tensor);
    Stored weight{[&, file = file, &tensor = tensor](std::int64_t first, std::span<std::byte> out) {
                    return file->readElements(tensor, order, first, out);
                  },
                  tensor};
    if (!weight.loader) continue;
    const std::int64_t total = graph::elementCount(tensor.type.shape);
    for (std::int64_t first = 0; first < total; first += kChunkElements) {
      if (progress.cancelled()) return progress.cancelledError("looking for weights that are not numbers");
      const std::int64_t count = std::min(kChunkElements, total - first);
      CLEAVE_TRY_VOID(weight.read(first, count));
      for (std::int64_t i = 0; i < count; ++i) {
        const double value = weight.at(i);
        if (std::isfinite(value)) continue;
        return fmt::format("The weights hold values that are not finite: {} in {} has {} at element {}.", name,
                           tensor.file, value, first + i);
      }
    }
  }
  return std::string();
}

}  // namespace cleave::pipeline
