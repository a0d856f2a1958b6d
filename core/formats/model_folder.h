#pragma once
/// A Hugging Face model folder: `config.json`, and weights in safetensors files where there are any.
///
/// Nothing is loaded but headers. Everything is checked before it is believed (see safetensors.h, base/json.h): the
/// error names the file, the tensor and what to do. Pickled weights beside missing safetensors are refused with the
/// way to convert them.
#include "base/files.h"
#include "base/progress.h"
#include "formats/safetensors.h"

#include <nlohmann/json_fwd.hpp>

#include <memory>

namespace cleave::formats {

struct ModelFolder {
  fs::path path;
  /// An object; raw dialect, see families/model_config.h for the typed form. Null: there is no config.
  std::shared_ptr<const nlohmann::json> config;
  WeightSources tensors;
  bool hasWeights() const { return !tensors.empty(); }
};

/// Opens a folder, or a `config.json` given by its path. BadInput (exit code 3) for anything malformed.
Result<ModelFolder> openModelFolder(const fs::path& path, const Progress& progress = {});

}  // namespace cleave::formats
