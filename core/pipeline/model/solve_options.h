#pragma once
/// The options of a solve: ranks, engine, demands, costs.
#include "solve/engine.h"
#include "solve/problem/cost_settings.h"
#include "solve/problem/problem.h"
#include "solve/trace/recorder.h"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace cleave::pipeline {

/// Above the size of every existing tensor-parallel group; predictions cover 1-64 ranks.
inline constexpr int kMaxRanks = 1024;

/// `optimum` for the reference engine, `full` for the others.
rules::CandidateSet defaultCandidateSet(solve::Engine engine);

struct SolveOptions {
  int ranks = 2;
  solve::Engine engine = solve::Engine::Optimal;
  std::optional<rules::CandidateSet> candidateSet;  ///< nullopt: the engine's default
  rules::SequenceParallel sequenceParallel = rules::SequenceParallel::Off;
  std::vector<solve::Pin> pins;
  std::vector<std::string> rulesOff, redistributable;  ///< see solve::Problem
  solve::CostSettings cost;                            ///< with a profile from `deviceProfile`
  bool trainsWithDropout = false;                      ///< use the dropout of the folder's config: see `dropsOut`
  std::shared_ptr<solve::SolveCache> cache;            ///< shared by the solves of one model; may be null
  std::uint64_t seed = 0;
  bool record = true;  ///< keep a trace
  solve::RecorderLimits limits;
  /// Called on the solving thread when the recording exists, so that a view can show it while it grows.
  std::function<void(std::shared_ptr<const solve::Trace>)> onTrace;

  /// CaptureOptions::dropout for a folder that is solved with these options.
  bool dropsOut() const { return cost.isTraining && trainsWithDropout; }
};

}  // namespace cleave::pipeline
