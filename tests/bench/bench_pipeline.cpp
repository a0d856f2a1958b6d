/// The whole way on a 126-layer model without weights (405B's sizes): in this process, stage by stage, and as the programs users start.
#include "bench/bench.h"
#include "pipeline/pipeline.h"

#include <cstdlib>
#include <fstream>

#include <unistd.h>

using namespace cleave;

namespace {

const std::string kModel = CLEAVE_SOURCE_DIR "/tests/data/models/llama-126-layers";

/// Runs a program of the build and answers whether it ended with 0; its output is thrown away.
bool runs(const std::string& commandLine) {
  return std::system(("QT_QPA_PLATFORM=offscreen " CLEAVE_BIN_DIR "/" + commandLine + " >/dev/null 2>&1").c_str()) == 0;
}

}  // namespace

BENCH_CASE("pipeline/126-layers") {
  std::shared_ptr<const pipeline::Model> model;
  std::shared_ptr<const pipeline::Solved> solved;
  std::shared_ptr<const plan::Plan> plan;
  std::size_t jsonBytes = 0;
  bench.measure("open_capture_ms", [&] { model = *pipeline::openModel(kModel, {}); });
  bench.measure("solve_record_ms", [&] { solved = *pipeline::solveModel(model, {.ranks = 8}); });
  bench.measure("plan_ms", [&] { plan = *pipeline::planModel(model, solved); });
  bench.measure("json_ms", [&] { jsonBytes = plan::toJson(*plan).size(); });
  bench.report("nodes", static_cast<std::int64_t>(model->aten->nodes.size()));
  bench.report("json_bytes", static_cast<std::int64_t>(jsonBytes));
}

BENCH_CASE("program/plan-126-layers") {
  bool ended = true;
  const double plan = bench.measure("plan_ms", [&] { ended = ended && runs("cleave-cli plan " + kModel + " --ranks 8"); });
  const double start = bench.measure("version_ms", [&] { ended = ended && runs("cleave-cli --version"); });
  CLEAVE_CHECK(ended, "cleave-cli failed");
  bench.report("ratio_to_start", plan / start);
}

BENCH_CASE("program/window-126-layers") {
  // The script's shot is taken after the graph was painted, so the whole run bounds the time to first paint.
  char folder[] = "/tmp/cleave-bench-XXXXXX";
  CLEAVE_CHECK(::mkdtemp(folder), "no temporary folder");
  const std::string script = std::string(folder) + "/open.script";
  std::ofstream(script) << "open " << kModel << "\nwait\nshot first\nquit\n";
  bool ended = true;
  bench.measure("open_to_shot_ms", [&] { ended = ended && runs("cleave --script " + script + " --screenshot " + folder); }, 3);
  CLEAVE_CHECK(ended, "cleave failed");
  std::system(("rm -r " + std::string(folder)).c_str());
}
