#pragma once
/// The sizes and options of a capture that fit a safetensors file of inputs.
#include "base/result.h"
#include "formats/exported_program.h"

#include <cstdint>
#include <filesystem>

namespace cleave::pipeline {

/// The sizes and options of a file of inputs.
struct InputShape {
  std::int64_t batch = 1, sequence = 1;
  bool hasMask = false, hasTokenTypes = false, hasLabels = false;
};
/// BadInput names the file, also if its sizes cannot be captured. `wantsLoss`: with a loss if the file has labels.
Result<InputShape> readInputShape(const std::filesystem::path& file, bool wantsLoss);
/// The same for an exported program: the sizes of its inputs in the file. BadInput for shapes that it does not accept.
Result<formats::SymbolSizes> readInputSizes(const formats::ExportedProgram& program, const std::filesystem::path& file);

}  // namespace cleave::pipeline
