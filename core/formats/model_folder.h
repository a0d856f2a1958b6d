#pragma once
/// A Hugging Face model folder: `config.json`, and weights in safetensors files if present.
///
/// Only headers are loaded. Everything is checked before use (see safetensors.h, base/json.h): an error names the file,
/// the tensor and the remedy. Pickled weights without safetensors are rejected, with the command that converts them.
#include "base/files.h"
#include "base/progress.h"
#include "formats/safetensors.h"

#include <nlohmann/json_fwd.hpp>

#include <memory>

namespace cleave::formats {

struct ModelFolder {
  fs::path path;
  /// An object in its raw form; families/model_config.h has the typed form. Null: the folder has no config.
  std::shared_ptr<const nlohmann::json> config;
  WeightSources tensors;
  bool hasWeights() const { return !tensors.empty(); }
};

/// Opens a folder, or a `config.json` given by its path. BadInput (exit code 3) for anything malformed.
Result<ModelFolder> openModelFolder(const fs::path& path, const Progress& progress = {});

}  // namespace cleave::formats
