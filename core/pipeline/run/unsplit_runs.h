#pragma once
/// Runs of the full model in one process, for the comparison with the ranks.
#include "base/progress.h"
#include "base/temporary_folder.h"
#include "pipeline/model/model.h"
#include "pipeline/run/check_outputs.h"
#include "pipeline/run/folder_check.h"
#include "pipeline/run/rank_launch.h"
#include "pipeline/run/run_request.h"
#include "pipeline/run/unsplit_place.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace cleave::pipeline {

class UnsplitRuns {
 public:
  /// `backend`: the backend of the ranks. `model` may be null. The other arguments must outlive this object.
  UnsplitRuns(const RunRequest& request, launch::Backend backend, std::shared_ptr<const Model> model,
              const ModelFiles& modelFiles, const RankFiles& files, const TemporaryFolder& folder,
              const Progress& progress);

  const UnsplitPlace& place() const { return m_place; }
  /// Runs the unsplit model and returns the file with its outputs.
  Result<fs::path> run();
  /// See MeasureRuler. Adds a note if the unsplit run does not fit into memory.
  Result<std::optional<RulerFiles>> ruler(std::vector<std::string>& notes, int again);

 private:
  /// The model with the rows of all replicas.
  Result<std::shared_ptr<const Model>> wholeModel();
  Result<fs::path> launched(const plan::Plan& plan, const std::string& name);

  const RunRequest& m_request;
  const UnsplitPlace m_place;
  std::shared_ptr<const Model> m_model;
  const ModelFiles& m_modelFiles;
  const RankFiles& m_files;
  const TemporaryFolder& m_folder;
  const Progress& m_progress;
  std::optional<fs::path> m_output;  ///< outputs of the unsplit run; nullopt: it has not run
};

}  // namespace cleave::pipeline
