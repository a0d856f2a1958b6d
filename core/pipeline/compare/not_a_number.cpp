#include "pipeline/compare/not_a_number.h"

#include "formats/exported_weights.h"
#include "formats/safetensors.h"
#include "formats/weight_files.h"
#include "pipeline/compare/stored_tensor.h"
#include "pipeline/source/checkpoint.h"

#include <algorithm>
#include <cmath>
#include <span>

namespace cleave::pipeline {

Result<bool> areAllLabelsIgnored(const fs::path& inputs) {
  constexpr double kIgnored = -100;  // transformers' ignore_index
  CLEAVE_TRY(const auto file, formats::SafetensorsFile::open(inputs));
  const formats::WeightSource* found = file.find("labels");
  if (!found) return false;
  StoredTensor labels = StoredTensor::of(file, *found);
  if (!labels.loader) return false;
  const std::int64_t total = graph::elementCount(found->type.shape);
  for (std::int64_t first = 0; first < total; first += kChunkElements) {
    const std::int64_t count = std::min(kChunkElements, total - first);
    CLEAVE_TRY_VOID(labels.read(first, count));
    for (std::int64_t i = 0; i < count; ++i) {
      if (labels.at(i) != kIgnored) return false;
    }
  }
  return total > 0;
}

Result<std::string> firstNonFiniteWeight(const plan::ModelInfo& model, const Progress& progress) {
  CLEAVE_TRY(const Checkpoint checkpoint, readCheckpoint(model, progress));
  formats::WeightReader reader(checkpoint.places);
  std::int64_t done = 0;
  for (const auto& [name, tensor] : checkpoint.tensors) {
    progress.report("look for weights that are not numbers", done++, std::ssize(checkpoint.tensors));
    if (!graph::isFloatingPoint(tensor.type.dtype)) continue;
    CLEAVE_TRY(const auto* file, reader.open(tensor.file));
    const std::vector<std::size_t> order = formats::storageOrder(tensor);
    StoredTensor weight{[&, file = file, &tensor = tensor](std::int64_t first, std::span<std::byte> out) {
                          return file->readElements(tensor, order, first, out);
                        },
                        tensor};
    if (!weight.loader) continue;
    const std::int64_t total = graph::elementCount(tensor.type.shape);
    for (std::int64_t first = 0; first < total; first += kChunkElements) {
      if (progress.cancelled()) return progress.cancelledError("looking for weights that are not numbers");
      const std::int64_t count = std::min(kChunkElements, total - first);
      CLEAVE_TRY_VOID(weight.read(first, count));
      for (std::int64_t i = 0; i < count; ++i) {
        const double value = weight.at(i);
        if (std::isfinite(value)) continue;
        return fmt::format("The weights have values that are not finite: {} in {} has {} at element {}.", name,
                           tensor.file, value, first + i);
      }
    }
  }
  return std::string();
}

}  // namespace cleave::pipeline
