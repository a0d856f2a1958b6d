#pragma once
/// What a command writes, held against what it reads, before it does either.
#include "base/files.h"

#include <vector>

namespace cleave {

/// A file with the name the user knows it by: {"--expect", "out.safetensors"}, {"the model's config.json",
/// ".../config.json"}.
struct NamedFile {
  std::string name;
  fs::path path;
};

/// BadUsage when an output is one of the files that are read, or another output, under whatever path or link: it would
/// be destroyed, or be compared with itself. Devices, pipes and "-" hold nothing that could be lost; an empty path is
/// no output.
///
///     CLEAVE_TRY_VOID(refuseOverwriting({{"--output", output}}, {{"--expect", expect}}));
Result<void> refuseOverwriting(const std::vector<NamedFile>& outputs, const std::vector<NamedFile>& inputs);

}  // namespace cleave
