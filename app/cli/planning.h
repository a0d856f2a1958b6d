#pragma once
/// The words of the pipeline that most commands speak.
#include "pipeline/plan_flags.h"
#include "pipeline/source.h"

namespace cleave::cli {

using pipeline::isPlanFile;
using pipeline::PlanFlags;
using pipeline::planModel;
using pipeline::Planned;
using pipeline::readPlanFile;

}  // namespace cleave::cli
