#include "pipeline/source/input_shape.h"

#include "formats/exported_sizes.h"
#include "formats/safetensors.h"
#include "spec/input/input_spec.h"

#include <map>

namespace cleave::pipeline {

Result<InputShape> readInputShape(const fs::path& file, bool wantsLoss) {
  CLEAVE_TRY(const auto header, formats::readSafetensorsHeader(file));
  const auto ids = header.tensors.find("input_ids");
  if (ids == header.tensors.end()) return fail(ErrorCode::BadInput, "{} has no tensor input_ids.", file.string());
  const graph::Shape& shape = ids->second.type.shape;
  if (shape.size() != 2)
    return fail(ErrorCode::BadInput, "{}: input_ids has shape {}, but must be [batch, sequence].", file.string(),
                graph::toText(shape));
  const auto has = [&](const char* name) { return header.tensors.contains(name); };
  InputShape inputs{shape[0], shape[1], has("attention_mask"), has("token_type_ids"), has("labels")};
  const auto checked =
      spec::check({.batch = inputs.batch, .sequence = inputs.sequence, .loss = inputs.hasLabels && wantsLoss});
  if (!checked)
    return fail(ErrorCode::BadInput, "{}: input_ids has shape {}: {}.", file.string(), graph::toText(shape),
                checked.error().message);
  return inputs;
}

Result<formats::SymbolSizes> readInputSizes(const formats::ExportedProgram& program, const fs::path& file) {
  CLEAVE_TRY(const auto header, formats::readSafetensorsHeader(file));
  std::map<std::string, graph::TensorType> types;
  for (const auto& [name, tensor] : header.tensors) types.emplace(name, tensor.type);
  return formats::symbolsOfInputs(program, types, file.string());
}

}  // namespace cleave::pipeline
