#pragma once
/// Places of an exported program's weights and constants in its archive. Part of exported_program.h's reader.
#include "formats/exported_program.h"

namespace cleave::formats {

struct ExportedWeights {
  WeightSources tensors;   ///< tensors that can be read
  std::string whyWithout;  ///< a sentence if some cannot be read, else empty
};

/// Names of an archive's parts: "llama/" and "model" of llama/models/model.json.
struct ArchiveLayout {
  std::string root, model;
  std::string program;  ///< the entry of the graph
};
/// BadInput names the content of another kind of archive.
Result<ArchiveLayout> findProgram(const ZipArchive& archive);

Result<ExportedWeights> readPayloads(const ZipArchive& archive, const ArchiveLayout& layout);

/// BadInput with a remedy if a zip archive is not an exported program. Looks only at entry names.
Result<void> checkIsExportedProgram(const fs::path& path);

/// Only the weights, for a rank, which has the graph already.
struct ArchivedWeights {
  ZipArchive archive;
  WeightSources tensors;
  std::int64_t headerBytes = 0;  ///< bytes read from the archive for other entries than tensors
};
Result<ArchivedWeights> openExportedWeights(const fs::path& path);

/// "llama.pt2": the file name by which plans refer to the archive.
std::string exportedFileName(const fs::path& path);

/// The dimensions in memory order, outermost first.
std::vector<std::size_t> storageOrder(const WeightSource& tensor);
/// Fills `out` with elements of a tensor that may be a view, from element `first` on, counted through its dimensions in
/// `order`. CLEAVE_CHECKs that the elements are inside it.
Result<void> readElements(const ZipArchive& archive, const WeightSource& tensor, std::span<const std::size_t> order,
                          std::int64_t first, std::span<std::byte> out);

}  // namespace cleave::formats
