#include "pipeline/run/folder_check.h"

#include "pipeline/source/source_files.h"
#include "plan/build/missing_weights.h"

namespace cleave::pipeline {

FolderCheck checkFolder(const RunRequest& request) {
  const plan::ModelInfo& model = request.plan->model;
  FolderCheck check;
  check.isQuantized = !model.quantization.empty();
  if (check.isQuantized) {
    check.text = program::whyNotRun(model.source, model.quantization);
    return check;
  }
  std::error_code ignored;
  check.isGone = !fs::exists(model.source, ignored);
  // Remote ranks read the files of their own machine.
  const bool isMissed = check.isGone && !request.remote;
  check.lacksWeights = request.readsWeights() && (isMissed || !model.hasWeights);
  check.lacksModel = check.isGone && request.comparesUnsplit();
  const std::string_view what = model.isExported ? "exported program" : "model folder";
  if (check.holds() && request.readsWeights() && !request.initMissing) {
    const std::string lacks = plan::missingWeights(request.plan->parameters, *request.plan->graph);
    check.isIncomplete = !lacks.empty();
    if (check.isIncomplete) check.text = fmt::format("The weights of the {} {} lack {}.", what, model.source, lacks);
  }
  if (check.holds() || check.isIncomplete) return check;
  if (!check.isGone) {
    check.text = fmt::format("The {} {} has no weights to read{}.", what, model.source,
                             model.isExported ? ": they are pickled or empty. Plan it again with --weights and a "
                                                "safetensors file"
                                              : "");
    return check;
  }
  constexpr std::string_view kNoWeights = "its weights cannot be read";
  constexpr std::string_view kNoUnsplitRun = "the unsplit run for the comparison cannot start";
  check.text =
      fmt::format("The {} {} does not exist: {}{}{}.", what, model.source, check.lacksWeights ? kNoWeights : "",
                  check.lacksWeights && check.lacksModel ? ", and " : "", check.lacksModel ? kNoUnsplitRun : "");
  return check;
}

ModelFiles::ModelFiles(const RunRequest& request) {
  if (!request.comparesUnsplit() || !request.readsWeights()) return;
  for (const NamedFile& file : sourceFilesOf(request.plan->model)) m_files.emplace_back(file.path, stampOf(file.path));
}

Result<void> ModelFiles::checkUnchanged() const {
  for (const auto& [file, stamp] : m_files) {
    if (stampOf(file) == stamp) continue;
    return fail(
        ErrorCode::BadInput,
        "{} changed during the run, so the ranks and the unsplit run may have read different weights. Run again "
        "while no process writes to it.",
        file.string());
  }
  return {};
}

}  // namespace cleave::pipeline
