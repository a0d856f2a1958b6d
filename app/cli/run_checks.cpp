#include "cli/run_checks.h"

#include "pipeline/memory/memory_check.h"
#include "pipeline/run/folder_check.h"
#include "pipeline/run/prepare_run.h"
#include "pipeline/run/unsplit_place.h"

namespace cleave::cli {
namespace {

Result<void> checkRanksFit(const pipeline::RunRequest& request, launch::Backend backend) {
  const auto memory = pipeline::checkMemory(*request.plan, backend, request.workload());
  if (memory.fits()) return {};
  return fail(ErrorCode::Environment,
              "{} Free memory, use a smaller --batch, --seq or --dtype, or start the ranks anyway with "
              "--ignore-memory.",
              memory.text);
}

Result<void> checkUnsplitFits(const pipeline::RunRequest& request, launch::Backend backend) {
  const auto place = pipeline::unsplitPlace(*request.plan, request.workload(), backend);
  if (!request.comparesUnsplit() || place.backend != launch::Backend::Gloo) return {};
  const auto memory = pipeline::checkUnsplitMemory(*request.plan, request.workload());
  if (memory.fits()) return {};
  return fail(ErrorCode::Environment,
              "{} Give the expected values with --expect, skip the comparison with --no-check, or start anyway with "
              "--ignore-memory.",
              memory.text);
}

}  // namespace

Result<void> checkModelFiles(const pipeline::RunRequest& request) {
  const pipeline::FolderCheck folder = pipeline::checkFolder(request);
  if (folder.holds()) return {};
  if (folder.isQuantized) return fail(ErrorCode::BadInput, "{}", folder.text);
  if (folder.isIncomplete) {
    return fail(ErrorCode::BadInput,
                "{} Add the missing weights{}, or fill them from the seed with --init-missing, or all parameters with "
                "--skip-weights.",
                folder.text, request.plan->model.isExported ? " with --weights" : " or correct config.json");
  }
  if (!folder.isGone)
    return fail(ErrorCode::BadInput, "{} Fill all parameters from the seed with --skip-weights.", folder.text);
  return fail(ErrorCode::BadInput, "{} Put it back, or run without it:{}{}.", folder.text,
              folder.lacksWeights ? " --skip-weights" : "", folder.lacksModel ? " --no-check" : "");
}

Result<void> checkMemoryFits(const pipeline::RunRequest& request, const Progress& progress) {
  if (request.ignoreMemory) return {};
  CLEAVE_TRY(const launch::BackendChoice choice, pipeline::backendFor(request, progress));
  if (!request.remote) CLEAVE_TRY_VOID(checkRanksFit(request, choice.backend));
  return checkUnsplitFits(request, choice.backend);
}

}  // namespace cleave::cli
