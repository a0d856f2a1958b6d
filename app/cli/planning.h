#pragma once
/// The words of the pipeline that most commands speak.
#include "cli/console.h"
#include "pipeline/describe_model.h"
#include "pipeline/hub_model.h"
#include "pipeline/plan_flags.h"
#include "pipeline/source.h"

namespace cleave::cli {

using pipeline::isForeignPlan;
using pipeline::isPlanFile;
using pipeline::PlanFlags;
using pipeline::planModel;
using pipeline::Planned;
using pipeline::readPlanFile;
using pipeline::readUnalteredPlan;

/// A Hub id becomes the folder of what is wanted of it; whatever else MODEL is stays.
inline Result<void> bringModel(std::string& model, hub::Wanted wanted, const Progress& progress) {
  CLEAVE_TRY(model, pipeline::bringModel(model, wanted, consoleWatcher(), progress));
  endProgress();
  return {};
}

/// What `info` says of a config, for those who do not ask it.
inline Result<void> addIgnoredKeys(const pipeline::Model& model, std::vector<std::string>& warnings) {
  CLEAVE_TRY(std::string keys, pipeline::ignoredKeysText(model));
  if (!keys.empty()) warnings.push_back(std::move(keys));
  return {};
}

}  // namespace cleave::cli
