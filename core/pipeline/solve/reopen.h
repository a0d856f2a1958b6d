#pragma once
/// Opens a plan file together with its model.
#include "base/progress.h"
#include "pipeline/model/model.h"
#include "pipeline/model/solved.h"
#include "plan/plan.h"

#include <filesystem>
#include <memory>
#include <string>

namespace cleave::pipeline {

/// A plan with its model and its solution, as after a solve. `solved` has no trace and no optimum.
struct ReopenedPlan {
  std::shared_ptr<const Model> model;
  std::shared_ptr<const Solved> solved;
  std::shared_ptr<const plan::Plan> plan;
  std::string note;       ///< why the plan is without its model (folder missing or changed); empty: it has its model
  std::string whyNotRun;  ///< the error of a run, if the model's folder is missing or changed
};
Result<ReopenedPlan> reopenPlan(const fs::path& file, const Progress& progress = {});

}  // namespace cleave::pipeline
