#pragma once
/// The flags that say how a model is captured and solved; shared by `plan`, `run` and `export`.
#include "pipeline/pipeline.h"

#include <CLI/CLI.hpp>

namespace cleave::cli {

struct PlanFlags {
  std::string model;
  int ranks = 2;
  std::string engine = std::string(solve::toText(pipeline::SolveOptions().engine)), menu, sequenceParallel = "off", dtype, mask = "off", loss = "on";
  std::optional<std::int64_t> batch, sequence;
  std::int64_t logitsToKeep = 0;
  std::uint64_t seed = 0;
  std::vector<std::string> pins, rulesOff, redistributable;
  std::string device = std::string(pipeline::kDefaultDevice), optimizer = "adamw", memoryBudget, slack = "1";
  bool isTraining = false;

  void addTo(CLI::App& command);
  Result<torch_capture::CaptureOptions> captureOptions() const;
  Result<pipeline::SolveOptions> solveOptions() const;

 private:
  Result<solve::CostSettings> costSettings() const;
};

/// A model opened, solved and planned as the flags say.
struct Planned {
  std::shared_ptr<const pipeline::Model> model;
  std::shared_ptr<const pipeline::Solved> solved;
  std::shared_ptr<const plan::Plan> plan;  ///< null when there is no solution; `planError` says why
  Error planError;
};
Result<Planned> planModel(const PlanFlags& flags, bool record, const Progress& progress);

/// True for a path that ends in .json and is not a config: a plan file.
bool isPlanFile(const std::string& path);
Result<std::shared_ptr<const plan::Plan>> readPlanFile(const std::string& path);

}  // namespace cleave::cli
