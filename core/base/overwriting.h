#pragma once
/// Checks a command's outputs against its inputs before it reads or writes.
#include "base/files.h"

#include <vector>

namespace cleave {

/// A file and its name for the user: {"--expect", "out.safetensors"}, {"the model's config.json", ".../config.json"}.
struct NamedFile {
  std::string name;
  fs::path path;
};

/// BadUsage if an output is the same file as an input or another output, by any path or link: the file would be
/// destroyed, or compared with itself. Devices, pipes and "-" have nothing to lose. An empty path means no output.
///
///     CLEAVE_TRY_VOID(refuseOverwriting({{"--output", output}}, {{"--expect", expect}}));
Result<void> refuseOverwriting(const std::vector<NamedFile>& outputs, const std::vector<NamedFile>& inputs);

}  // namespace cleave
