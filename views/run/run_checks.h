#pragma once
/// The checks before a run, including memory, and the equivalent command line.
#include "pipeline/memory/memory_check.h"
#include "views/session/runs.h"

namespace cleave::views {

/// One line of the check before a run.
struct RunCheck {
  bool isOk = true;
  QString text;
};
/// The answer of Runs::backendFor.
using BackendAnswer = std::optional<Result<launch::BackendChoice>>;
/// The checks for running this plan with these settings, in words. `whyNot`: the answer of Runs::whyNot.
std::vector<RunCheck> checksBeforeRun(const plan::Plan* plan, const RunSettings& settings, const BackendAnswer& backend,
                                      const QString& whyNot = {});
/// Whether memory suffices for the ranks and, after them, for the unsplit run they are compared with. Empty without a
/// plan for these settings, or without this backend here.
std::vector<pipeline::MemoryCheck> memoryBeforeRun(const plan::Plan* plan, const RunSettings& settings,
                                                   const BackendAnswer& backend);
/// The equivalent command line, quoted for a shell. Empty if no command line can do it.
QString runCommand(const Runs& runs, const RunSettings& settings);

/// Collectives of a run, by kind.
struct CollectiveCounts {
  std::int64_t allReduce = 0, allGather = 0, reduceScatter = 0;
};
CollectiveCounts plannedCollectives(const plan::Plan& plan);  ///< of a forward pass
QString countsText(const CollectiveCounts& counts);           ///< "8 all-reduce, 1 all-gather, 0 reduce-scatter"

/// Predicted peak memory per rank of such a run, in bytes.
std::int64_t predictedBytes(const plan::Plan& plan, const program::Training& training);

}  // namespace cleave::views
