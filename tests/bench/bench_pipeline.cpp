/// The whole pipeline on a 126-layer model without weights (405B's sizes): in this process by stage, and as the
/// programs that users start.
#include "pipeline/solve/devices.h"
#include "pipeline/solve/solve.h"
#include "pipeline/source/open.h"
#include "plan/file/plan_file.h"
#include "tests/bench/bench.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <unistd.h>

using namespace cleave;

namespace {

const std::string kModel = CLEAVE_SOURCE_DIR "/tests/data/models/llama-126-layers";
constexpr int kRanks =
    16;  // 812 GB of bfloat16 weights: the fewest ranks, a power of two, of the default device that hold them

/// Runs a program of the build, discards its output, and returns true if it exited with 0.
bool runs(const std::string& commandLine) {
  return std::system(("QT_QPA_PLATFORM=offscreen " CLEAVE_BIN_DIR "/" + commandLine + " >/dev/null 2>&1").c_str()) == 0;
}

}  // namespace

BENCH_CASE("pipeline/126-layers") {
  std::shared_ptr<const pipeline::Model> model;
  std::shared_ptr<const pipeline::Solved> solved;
  std::shared_ptr<const plan::Plan> plan;
  std::size_t jsonBytes = 0;
  bench.measure("open_capture_ms", [&] { model = bench::need(pipeline::openModel(kModel, {})); });
  spec::PlanSpec options;
  options.ranks = kRanks;
  options.cost.profile = bench::need(pipeline::deviceProfile(std::string(pipeline::kDefaultDevice)));
  bench.measure("solve_record_ms", [&] { solved = bench::need(pipeline::solveModel(model, options)); });
  bench.measure("plan_ms", [&] { plan = bench::need(pipeline::planModel(model, solved)); });
  bench.measure("json_ms", [&] { jsonBytes = plan::toJson(*plan).size(); });
  bench.report("nodes", static_cast<std::int64_t>(model->aten->nodes.size()));
  bench.report("json_bytes", static_cast<std::int64_t>(jsonBytes));
}

BENCH_CASE("program/plan-126-layers") {
  bool ended = true;
  const double plan = bench.measure(
      "plan_ms", [&] { ended = ended && runs(fmt::format("cleave-cli plan {} --ranks {}", kModel, kRanks)); });
  const double start = bench.measure("version_ms", [&] { ended = ended && runs("cleave-cli --version"); });
  bench::need(ended, "cleave-cli failed.");
  bench.report("ratio_to_start", plan / start);
}

BENCH_CASE("program/window-126-layers") {
  // The script's shot is taken after the first paint of the graph, so the whole run is an upper bound for it.
  char folder[] = "/tmp/cleave-bench-XXXXXX";
  bench::need(::mkdtemp(folder) != nullptr, "Cannot make a temporary folder.");
  const std::string script = std::string(folder) + "/open.script";
  std::ofstream(script) << "open " << kModel << "\nwait\nshot first\nquit\n";
  bool ended = true;
  bench.measure(
      "open_to_shot_ms", [&] { ended = ended && runs("cleave --script " + script + " --screenshot " + folder); }, 3);
  std::error_code ignored;
  std::filesystem::remove_all(folder, ignored);
  bench::need(ended, "cleave failed.");
}
