#pragma once
/// What most commands need of the pipeline.
#include "cli/console.h"
#include "cli/plan_flags.h"
#include "pipeline/source/describe_model.h"
#include "pipeline/source/hub_model.h"
#include "pipeline/source/plan_file.h"

namespace cleave::cli {

using pipeline::isForeignPlan;
using pipeline::isPlanFile;
using pipeline::planModel;
using pipeline::Planned;
using pipeline::readPlanFile;
using pipeline::readUnalteredPlan;

/// Replaces a Hub id by the folder with the files wanted of it. Anything else stays as it is.
inline Result<void> resolveModel(std::string& model, hub::Wanted wanted, const Progress& progress) {
  CLEAVE_TRY(model, pipeline::resolveModel(model, wanted, consoleWatcher(), progress));
  endProgress();
  return {};
}

/// Adds the warning about config keys that Cleave ignores, as `info` prints it.
inline Result<void> addIgnoredKeys(const pipeline::Model& model, std::vector<std::string>& warnings) {
  CLEAVE_TRY(std::string keys, pipeline::ignoredKeysText(model));
  if (!keys.empty()) warnings.push_back(std::move(keys));
  return {};
}

}  // namespace cleave::cli
