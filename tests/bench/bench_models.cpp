/// Opens published models from their configurations and plans them for 1 to 16 ranks. The plan is measured as in `plan
/// --json` on an open model: search, reasons, rank program, JSON.
/// makes once the model is open: search, reasons, rank program, JSON.
#include "base/stopwatch.h"
#include "pipeline/solve/devices.h"
#include "pipeline/solve/solve.h"
#include "pipeline/source/open.h"
#include "plan/file/plan_file.h"
#include "program/rank_program.h"
#include "tests/bench/bench.h"

#include <algorithm>
#include <filesystem>

using namespace cleave;

namespace {

const std::filesystem::path kConfigs = CLEAVE_SOURCE_DIR "/tests/data/configs";
constexpr double kPlanLimitMs = 1000;

std::vector<std::filesystem::path> folders() {
  std::vector<std::filesystem::path> found;
  for (const auto& entry : std::filesystem::directory_iterator(kConfigs)) {
    const bool isResaved = entry.path().filename().string().ends_with("-resaved");
    if (entry.is_directory() && !isResaved) found.push_back(entry.path());
  }
  std::sort(found.begin(), found.end());
  return found;
}

}  // namespace

BENCH_CASE("models/published") {
  double mostMs = 0, openMs = 0;
  for (const std::filesystem::path& folder : folders()) {
    if (bench.isSmoke() && folder.filename() != "gpt2") continue;
    const Stopwatch opening;
    const auto model = bench::need(pipeline::openModel(folder.string(), {}));
    openMs = std::max(openMs, opening.milliseconds());
    double slowest = 0;
    for (const int ranks : {1, 2, 4, 8, 16}) {
      spec::PlanSpec options;
      options.ranks = ranks;
      options.cost.memoryBudget = program::kMaxSize;  // some models need many devices
      options.cost.profile = bench::need(pipeline::deviceProfile(std::string(pipeline::kDefaultDevice)));
      const Stopwatch planning;
      const auto solved = bench::need(pipeline::solveModel(model, options, {}, {.records = false}));
      const auto plan = bench::need(pipeline::planModel(model, solved));
      bench::need(!plan::toJson(*plan).empty(), "A plan has no text.");
      slowest = std::max(slowest, planning.milliseconds());
    }
    mostMs = std::max(mostMs, slowest);
    bench.report(folder.filename().string() + "_ms", slowest);
  }
  bench.report("slowest_open_ms", openMs);
  bench.hold("slowest_plan_ms", mostMs, kPlanLimitMs);
}
