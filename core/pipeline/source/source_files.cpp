#include "pipeline/source/source_files.h"

#include "formats/weight_files.h"
#include "pipeline/source/source.h"

namespace cleave::pipeline {

std::vector<NamedFile> sourceFilesOf(const std::string& path) {
  const auto source = recognise(path);
  if (!source) return {};
  if (source->kind != SourceKind::Model || source->isExported) return {{path, source->path}};
  std::vector<NamedFile> files;
  const auto add = [&](const std::string& name) {
    files.push_back({fmt::format("the model's {}", name), source->path / name});
  };
  add("config.json");
  add("model.safetensors.index.json");
  if (const auto weights = formats::findWeightFiles(source->path)) {
    for (const std::string& name : weights->files) add(name);
  }
  return files;
}

std::vector<NamedFile> weightFilesOf(const std::string& weights) {
  std::error_code ignored;
  if (weights.empty()) return {};
  if (!fs::is_directory(weights, ignored)) return {{"--weights", weights}};
  std::vector<NamedFile> files;
  if (const auto found = formats::findWeightFiles(weights)) {
    for (const std::string& name : found->files) files.push_back({"--weights", fs::path(weights) / name});
  }
  return files;
}

std::vector<NamedFile> sourceFilesOf(const plan::ModelInfo& model) {
  std::vector<NamedFile> files = sourceFilesOf(model.source);
  const auto beside = weightFilesOf(model.input.weights);
  files.insert(files.end(), beside.begin(), beside.end());
  return files;
}

}  // namespace cleave::pipeline
