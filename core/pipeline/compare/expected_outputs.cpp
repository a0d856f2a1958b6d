#include "pipeline/compare/expected_outputs.h"

#include "base/quantities.h"
#include "families/checkpoint_names.h"
#include "families/family_table.h"
#include "formats/safetensors.h"
#include "pipeline/compare/expected_tensor.h"

#include <algorithm>
#include <array>
#include <set>

namespace cleave::pipeline {
namespace {

// Inputs that a file may have although this run does not read them, such as labels when the loss is off.
constexpr std::array<std::string_view, 5> kInputNames{"input_ids", "labels", "attention_mask", "token_type_ids",
                                                      "position_ids"};

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
              "{} has no training results. It needs \"losses\" of {}, or parameters with names like \"param.{}\".",
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

}  // namespace cleave::pipeline
