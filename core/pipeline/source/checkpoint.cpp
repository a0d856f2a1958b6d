#include "pipeline/source/checkpoint.h"

#include "formats/exported_program.h"
#include "formats/exported_weights.h"
#include "formats/model_folder.h"

namespace cleave::pipeline {

Result<Checkpoint> readCheckpoint(const plan::ModelInfo& info, const Progress& progress) {
  Checkpoint checkpoint{formats::WeightPlaces::of(info.source, info.isExported, info.input.weights), {}};
  if (!info.isExported) {
    CLEAVE_TRY(const formats::ModelFolder folder, formats::openModelFolder(info.source, progress));
    checkpoint.tensors = folder.tensors;
    return checkpoint;
  }
  CLEAVE_TRY(const formats::ArchivedWeights archived, formats::openExportedWeights(info.source));
  checkpoint.tensors = archived.tensors;
  for (auto& [name, tensor] : checkpoint.tensors) tensor.file = formats::exportedFileName(info.source);
  if (info.input.weights.empty()) return checkpoint;
  CLEAVE_TRY(const formats::WeightsBeside beside, formats::readWeightsBeside(info.input.weights));
  for (const auto& [name, tensor] : beside.tensors) checkpoint.tensors[name] = tensor;
  return checkpoint;
}

}  // namespace cleave::pipeline
