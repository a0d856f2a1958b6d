#pragma once
/// Checks that the model's folder has what a run reads: the weights, and the model for the unsplit run. A plan does not
/// need its folder; a run of it does.
///
///     if (const auto folder = checkFolder(request); !folder.holds()) print(folder.text);
#include "base/files.h"
#include "pipeline/run/run_request.h"

#include <string>
#include <utility>
#include <vector>

namespace cleave::pipeline {

struct FolderCheck {
  bool isGone = false;        ///< the folder does not exist
  bool lacksWeights = false;  ///< the run needs weights and cannot read them; `skipWeights` avoids that
  bool lacksModel = false;    ///< the unsplit run needs the model; `expect` or no `compareUnsplit` avoids that
  bool isIncomplete = false;  ///< the files lack some weights; `initMissing` avoids that
  bool isQuantized = false;   ///< the weights are packed, and ranks cannot compute with them
  std::string text;           ///< what is missing, and what needs it; one sentence
  bool holds() const { return !lacksWeights && !lacksModel && !isIncomplete && !isQuantized; }
};
/// Does not read the folder's files: the plan has their tensors from the time when it was made.
FolderCheck checkFolder(const RunRequest& request);

/// The state of the files that both the ranks and the unsplit run read; empty without such files. If another process
/// changes one during the run, the two sides may read different weights.
class ModelFiles {
 public:
  explicit ModelFiles(const RunRequest& request);
  /// BadInput names a file that has changed.
  Result<void> checkUnchanged() const;

 private:
  std::vector<std::pair<std::filesystem::path, FileStamp>> m_files;
};

}  // namespace cleave::pipeline
