#include "pipeline/run/unsplit_runs.h"

#include "pipeline/memory/memory_check.h"
#include "pipeline/solve/unsplit_plan.h"
#include "pipeline/source/planned_model.h"

namespace cleave::pipeline {

UnsplitRuns::UnsplitRuns(const RunRequest& request, launch::Backend backend, std::shared_ptr<const Model> model,
                         const ModelFiles& modelFiles, const RankFiles& files, const TemporaryFolder& folder,
                         const Progress& progress)
    : m_request(request),
      m_place(unsplitPlace(*request.plan, request.workload(), backend)),
      m_model(std::move(model)),
      m_modelFiles(modelFiles),
      m_files(files),
      m_folder(folder),
      m_progress(progress) {}

Result<fs::path> UnsplitRuns::run() {
  m_progress.report("unsplit run");
  CLEAVE_TRY(const auto whole, wholeModel());
  CLEAVE_TRY(const auto plan, unsplitPlan(whole, *m_request.plan, m_progress));
  CLEAVE_TRY(m_output, launched(*plan, "unsplit"));
  return *m_output;
}

Result<std::optional<RulerFiles>> UnsplitRuns::ruler(std::vector<std::string>& notes, int again) {
  const bool isOnCpus = m_place.backend == launch::Backend::Gloo;
  if (!m_output && isOnCpus && !m_request.ignoreMemory) {
    const MemoryCheck memory = checkUnsplitMemory(*m_request.plan, m_request.workload());
    if (!memory.fits()) {
      notes.push_back(fmt::format("The effect of rounding on the outputs is unknown. {}", memory.text));
      return std::nullopt;
    }
  }
  if (!m_output) CLEAVE_TRY_VOID(run());
  CLEAVE_TRY(const auto whole, wholeModel());
  CLEAVE_TRY(const auto plan, reorderedPlan(whole, *m_request.plan, m_progress, again));
  m_progress.report("ruler");
  CLEAVE_TRY(fs::path reordered, launched(*plan, "reordered"));
  return RulerFiles{*m_output, std::move(reordered)};
}

Result<std::shared_ptr<const Model>> UnsplitRuns::wholeModel() {
  if (!m_model) {
    CLEAVE_TRY(m_model, openSameModel(*m_request.plan, m_progress));
  }
  if (m_request.replicas == 1) return m_model;
  return openModelOf(withRowsOf(m_request.plan->model, m_request.replicas), m_progress);
}

Result<fs::path> UnsplitRuns::launched(const plan::Plan& plan, const std::string& name) {
  const RankFiles files{.plan = m_folder / (name + "-plan.json"),
                        .output = m_folder / (name + ".safetensors"),
                        .deviation = m_folder / (name + ".rank"),
                        .input = m_files.input,
                        .step = m_folder / (name + "-step.json")};
  CLEAVE_TRY_VOID(launchUnsplit(plan, m_place, files, m_request, m_modelFiles, m_progress));
  return files.output;
}

}  // namespace cleave::pipeline
