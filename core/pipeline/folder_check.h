#pragma once
/// Whether a run finds what it reads of the model's folder, and can compute with it: the weights, and the model for the
/// unsplit run that the ranks are compared with. A plan is complete without its folder; a run of it is not.
///
///     if (const auto folder = checkFolder(request); !folder.holds()) say(folder.text);
#include "pipeline/run.h"

namespace cleave::pipeline {

struct FolderCheck {
  bool isGone = false;        ///< there is no such folder; else it lies there without weights
  bool lacksWeights = false;  ///< they would be read: `skipWeights` does without
  bool lacksModel = false;    ///< an unsplit run would be made of it: `expect` and not `compareUnsplit` do without
  bool isIncomplete = false;  ///< some weights that would be read are in no file: `initMissing` does without them
  bool isQuantized = false;   ///< its weights are packed, which no rank computes with
  std::string text;           ///< what is missing and for what, one sentence
  bool holds() const { return !lacksWeights && !lacksModel && !isIncomplete && !isQuantized; }
};
/// Looks for the folder alone, not into its files; what those held when the plan was made stands in the plan.
FolderCheck checkFolder(const RunRequest& request);

/// The files that both the ranks and the unsplit run read, as they lie there now; none where a run has no two that do.
/// Who writes to one while a run goes on, or puts another in its place, gives them two models.
class ModelFiles {
 public:
  explicit ModelFiles(const RunRequest& request);
  /// BadInput names a file that is no longer the same.
  Result<void> checkUnchanged() const;

 private:
  std::vector<std::pair<std::filesystem::path, FileStamp>> m_files;
};

}  // namespace cleave::pipeline
