#pragma once
/// The second stage: an engine chooses how a model is split, and what it chose becomes a plan.
#include "pipeline/open.h"
#include "solve/trace/cursor.h"
#include "solve/trace/recorder.h"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace cleave::pipeline {

/// More ranks than any tensor-parallel group that exists; predictions cover 1-64.
inline constexpr int kMaxRanks = 1024;

/// `optimum` for the reference engine, `full` for the others.
rules::CandidateSet defaultCandidateSet(solve::Engine engine);

/// The bundled profiles (resources/devices/*.json) by name; the first is the default.
Result<std::vector<solve::DeviceProfile>> deviceProfiles();
/// A bundled profile by name, or by path one from a JSON file, or that of a plan (whose maker may have had profiles
/// that are not here). BadInput lists the names there are.
Result<solve::DeviceProfile> deviceProfile(const std::string& nameOrFile);
inline constexpr std::string_view kDefaultDevice = "h100";
/// Its name is enough to find it, here and wherever this version of Cleave is.
bool isBundled(const solve::DeviceProfile& profile);

struct SolveOptions {
  int ranks = 2;
  solve::Engine engine = solve::Engine::Optimal;
  std::optional<rules::CandidateSet> candidateSet;  ///< nullopt: the engine's default
  rules::SequenceParallel sequenceParallel = rules::SequenceParallel::Off;
  std::vector<solve::Pin> pins;
  std::vector<std::string> rulesOff, redistributable;  ///< see solve::Problem
  solve::CostSettings cost;                            ///< its profile from `deviceProfile`
  bool trainsWithDropout = false;                      ///< a folder, with the dropout of its config: see `dropsOut`
  std::shared_ptr<solve::SolveCache> cache;            ///< kept between solves of one model; may be null
  std::uint64_t seed = 0;
  bool record = true;  ///< keep a trace
  solve::RecorderLimits limits;
  /// Called on the solving thread as soon as the recording exists, so that a view can look at it while it grows.
  std::function<void(std::shared_ptr<const solve::Trace>)> onTrace;

  /// CaptureOptions::dropout of a folder that is solved with these.
  bool dropsOut() const { return cost.isTraining && trainsWithDropout; }
};

struct Solved {
  std::shared_ptr<const solve::Problem> problem;
  solve::SolveResult result;
  std::shared_ptr<const solve::Trace> trace;  ///< null without `record`
  std::string whyStopped;                     ///< when the recording ended the search: its limit, or its file
  double solveMs = 0;
  SolveOptions options;
};

Result<std::shared_ptr<const Solved>> solveModel(const std::shared_ptr<const Model>& model, const SolveOptions& options,
                                                 const Progress& progress = {});

/// Negative when there is no solution; the error names the causes.
Result<void> needSolution(const Solved& solved);
/// What follows from the solution; an error of needSolution where there is none.
Result<std::shared_ptr<const plan::Plan>> planModel(const std::shared_ptr<const Model>& model,
                                                    const std::shared_ptr<const Solved>& solved,
                                                    const Progress& progress = {});

/// The problem that these options make of a model; what solveModel solves.
Result<std::shared_ptr<const solve::Problem>> problemOf(const Model& model, const SolveOptions& options);

}  // namespace cleave::pipeline
