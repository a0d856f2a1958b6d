#include "pipeline/folder_check.h"

namespace cleave::pipeline {

FolderCheck checkFolder(const RunRequest& request) {
  const plan::ModelInfo& model = request.plan->model;
  FolderCheck check;
  std::error_code ignored;
  check.isGone = !fs::exists(model.source, ignored);
  check.lacksWeights = request.readsWeights() && (check.isGone || !model.hasWeights);
  check.lacksModel = check.isGone && request.comparesUnsplit();
  if (check.holds()) return check;
  if (!check.isGone) {
    check.text = fmt::format("The model folder {} has no weights to read.", model.source);
    return check;
  }
  constexpr std::string_view kNoWeights = "its weights cannot be read";
  constexpr std::string_view kNoUnsplitRun = "the unsplit run that the ranks are compared with cannot be made";
  check.text =
      fmt::format("The model folder {} does not exist: {}{}{}.", model.source, check.lacksWeights ? kNoWeights : "",
                  check.lacksWeights && check.lacksModel ? ", and " : "", check.lacksModel ? kNoUnsplitRun : "");
  return check;
}

}  // namespace cleave::pipeline
