#pragma once
/// Which files of a model folder hold its weights, by the names Hugging Face tools write.
///
/// In this order: `model.safetensors` (as transformers does, even beside an index that does not name it),
/// `model.safetensors.index.json`, every `model*.safetensors`, a single other `*.safetensors` file. `expected*` and
/// `adapter*` files are never weights. Weights in other formats only (pickle, GGUF, ...) are refused with the way out.
/// All errors are BadInput.
#include "base/files.h"

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace cleave::formats {

struct WeightFiles {
  std::vector<std::string> files;                ///< relative to the folder, sorted; empty: no weights
  std::map<std::string, std::string> announced;  ///< tensor → file, from the index; empty without one
};

Result<WeightFiles> findWeightFiles(const fs::path& folder);

/// Refuses file names of an index that could lead out of the folder or are not safetensors: empty, absolute, with a
/// drive letter, `..`, a backslash or NUL, or not ending in `.safetensors`. The error is the end of a sentence: "is
/// absolute ...".
Result<void> checkWeightFileName(std::string_view name);

/// Opens a weight file that a folder, an index or a plan names. Symlinks may lead anywhere inside the folder, or, in a Hub
/// cache, from `models--*/snapshots/*` into `models--*/blobs`; anything else is refused. What is checked is the file that was
/// opened, whatever becomes of its name meanwhile. Errors, and the file's path(), call it by its name in the folder (a blob
/// is called by its hash). BadInput when it does not exist.
Result<RandomAccessFile> openWeightFile(const fs::path& folder, const std::string& name);

}  // namespace cleave::formats
