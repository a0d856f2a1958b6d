#pragma once
/// Where the weights and constants of an exported program lie in its archive. Part of exported_program.h's reader.
#include "formats/exported_program.h"

namespace cleave::formats {

struct ExportedWeights {
  WeightSources tensors;   ///< that can be read
  std::string whyWithout;  ///< a sentence where some cannot, else empty
};

/// Where the parts of an archive lie: "llama/" and "model" of llama/models/model.json.
struct ArchiveLayout {
  std::string root, model;
  std::string program;  ///< the entry of the graph
};
/// BadInput says what the archive holds instead.
Result<ArchiveLayout> findProgram(const ZipArchive& archive);

Result<ExportedWeights> readPayloads(const ZipArchive& archive, const ArchiveLayout& layout);

}  // namespace cleave::formats
