#pragma once
/// The words of the pipeline that most commands speak.
#include "pipeline/describe_model.h"
#include "pipeline/plan_flags.h"
#include "pipeline/source.h"

namespace cleave::cli {

using pipeline::isPlanFile;
using pipeline::PlanFlags;
using pipeline::planModel;
using pipeline::Planned;
using pipeline::readPlanFile;

/// What `info` says of a config, for those who do not ask it.
inline Result<void> addIgnoredKeys(const pipeline::Model& model, std::vector<std::string>& warnings) {
  CLEAVE_TRY(std::string keys, pipeline::ignoredKeysText(model));
  if (!keys.empty()) warnings.push_back(std::move(keys));
  return {};
}

}  // namespace cleave::cli
