// Reports of runs: an accepted report has as many results as its plan has ranks; messages stay valid UTF-8.
#include "pipeline/report/report_read.h"
#include "tests/fuzz/fuzz_target.h"

#include <nlohmann/json.hpp>

using namespace cleave;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto run = pipeline::readReport({reinterpret_cast<const char*>(data), size}, "report");
  wasAccepted = run.has_value();
  if (!run) {
    nlohmann::json(run.error().message).dump();  // throws on invalid UTF-8
    return 0;
  }
  CLEAVE_CHECK(std::ssize(run->report.outcome.results) == run->plan.ranks);
  for (const pipeline::OutputDifference& output : run->report.outputs) CLEAVE_CHECK(output.rank < run->plan.ranks);
  for (const auto& [rank, memory] : run->report.memory) CLEAVE_CHECK(rank >= 0 && rank < run->plan.ranks);
  run->loss();
  run->stepMicroseconds();
  return 0;
}
