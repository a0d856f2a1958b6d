#pragma once
/// A Hugging Face model folder: `config.json`, and weights in safetensors files where there are any.
///
/// Nothing is loaded but headers. Everything is checked before it is believed (see safetensors.h, bounded_json.h): the
/// error names the file, the tensor and what to do. Pickled weights beside missing safetensors are refused with the
/// way to convert them.
#include "base/files.h"
#include "base/progress.h"
#include "graph/types.h"

#include <nlohmann/json.hpp>

#include <map>
#include <string>
#include <vector>

namespace cleave::formats {

/// One tensor of a checkpoint: where its bytes lie.
struct StoredTensor {
  graph::TensorType type;
  std::string file;         ///< relative to the model folder
  std::int64_t offset = 0;  ///< of its first byte in the file
  std::int64_t bytes = 0;
};

struct ModelFolder {
  fs::path path;
  nlohmann::json config;  ///< an object; raw dialect, see libtorch/models/decoder_config.h for the typed form
  std::map<std::string, StoredTensor> tensors;
  bool hasWeights() const { return !tensors.empty(); }
};

/// Opens a folder, or a `config.json` given by its path. BadInput (exit code 3) for anything malformed.
Result<ModelFolder> openModelFolder(const fs::path& path, const Progress& progress = {});

}  // namespace cleave::formats
