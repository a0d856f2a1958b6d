#include "pipeline/source/plan_file.h"

#include "exchange/foreign_plan.h"
#include "launch/shell_word.h"
#include "pipeline/source/source.h"
#include "plan/file/plan_file.h"

namespace cleave::pipeline {

bool isPlanFile(const std::string& path) {
  const auto source = recognise(path);
  return source && source->kind == SourceKind::Plan;
}

Result<std::shared_ptr<const plan::Plan>> readPlanFile(const fs::path& file) {
  auto plan = plan::readPlanFile(file);
  if (plan) return std::make_shared<const plan::Plan>(*std::move(plan));
  if (exchange::readForeignPlan(file))
    return fail(ErrorCode::BadInput, "{} is a plan of transformers or PyTorch. Read it with `plan MODEL --tp-plan {}`.",
                file.string(), shellWord(file.string()));
  return tl::unexpected(plan.error());
}

Result<std::shared_ptr<const plan::Plan>> readUnalteredPlan(const fs::path& file) {
  CLEAVE_TRY(auto plan, readPlanFile(file));
  if (plan->seal == plan::Seal::Broken) {
    return fail(ErrorCode::BadInput, "{} was changed after Cleave wrote it. `check {}` reports the differences.",
                file.string(), shellWord(file.string()));
  }
  return plan;
}

bool isForeignPlan(const std::string& path) {
  if (exchange::readForeignPlan(path)) return true;
  const auto source = recognise(path);
  return source && source->mayBeForeign && !plan::readPlanFile(source->path);
}

}  // namespace cleave::pipeline
