#pragma once
/// What a run does with a plan: its mode, files, comparison, training and generation. Plain data, comparable, without
/// the plan. The ranks of the plan and their devices follow from the plan.
///
///     RunSpec{.backend = launch::Backend::Gloo, .training = {.steps = 10}}.mode();   // RunMode::Train
#include "launch/backend.h"
#include "launch/launcher.h"
#include "program/generation.h"
#include "program/training.h"

#include <array>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace cleave::spec {

/// What the ranks do with the plan. Each mode but Shapes is a command of its own; Shapes is a forward pass, or
/// training, at several shapes one after the other.
enum class RunMode : std::uint8_t { Forward, Train, Generate, Shapes, Bisect };
inline constexpr std::array kRunModes{RunMode::Forward, RunMode::Train, RunMode::Generate, RunMode::Shapes,
                                      RunMode::Bisect};
std::string_view toText(RunMode mode);  ///< "forward", "train", ...

/// Inputs of one of several passes.
struct RunShape {
  std::int64_t batch = 1, sequence = 1;  ///< of all replicas together
  bool operator==(const RunShape&) const = default;
};

struct RunSpec {
  launch::Backend backend = launch::Backend::Auto;
  int replicas = 1;  ///< data parallelism: number of copies of the plan's ranks, each with its rows (program/mesh.h)
  std::optional<std::filesystem::path> input, expect, output;
  std::optional<double> rtol, atol;   ///< a missing one is 0; nullopt both: by rounding (pipeline/compare/rounding.h)
  program::Training training;         ///< Train: its steps, with the plan's optimizer
  program::Generation generation;     ///< Generate: tokens after the prompt in `input`
  std::string prompt = {};            ///< Generate: token ids instead of `input`, "1,2,3;4,5,6"; empty: `input`
  bool ignoresEndToken = false;       ///< Generate: rows do not stop at the model's end tokens
  std::vector<RunShape> shapes = {};  ///< Shapes: one pass for each, on the weights that were loaded once
  bool padsToPlanned = false;         ///< Shapes: a shape that fits into an earlier one is padded instead of planned
  bool bisects = false;               ///< Bisect
  std::optional<std::filesystem::path> against = {};  ///< Bisect: another plan; nullopt: the unsplit program
  bool skipWeights = false, initMissing = false;      ///< see cleave-rank and run/folder_check.h
  bool recordsTimes = true;    ///< RunReport::timeline: a forward pass runs twice, warm the second time
  bool compareUnsplit = true;  ///< without `expect`: compare with the unsplit program in one process
  bool ignoreMemory = false;   ///< start even if too little memory is predicted
  std::chrono::milliseconds silence = launch::kSilence;    ///< a rank that is silent for longer has failed
  std::chrono::milliseconds teardown = launch::kTeardown;  ///< a rank that runs longer after its result is ended
  std::optional<std::chrono::seconds> collectiveTimeout;   ///< nullopt: the default of cleave-rank
  bool operator==(const RunSpec&) const = default;

  RunMode mode() const;
  bool wantsOutputs() const { return output || expect || compareUnsplit; }
  bool comparesUnsplit() const { return compareUnsplit && !expect; }
};

}  // namespace cleave::spec
