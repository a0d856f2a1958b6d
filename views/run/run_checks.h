#pragma once
/// What is said before a run: what speaks for it and against it, whether memory suffices, and the command line that
/// does the same.
#include "pipeline/run.h"
#include "views/session/runs.h"

namespace cleave::views {

/// One line of the check before a run.
struct RunCheck {
  bool isOk = true;
  QString text;
};
/// What Runs::backendFor answers.
using BackendAnswer = std::optional<Result<launch::BackendChoice>>;
/// What speaks for and against running this plan so, in words. `whyNot`: what Runs::whyNot says.
std::vector<RunCheck> checksBeforeRun(const plan::Plan* plan, const RunSettings& settings, const BackendAnswer& backend,
                                      const QString& whyNot = {});
/// Whether the ranks fit into memory, and after them the unsplit run they are compared with; empty while there is no
/// plan for this, or no such backend here.
std::vector<pipeline::MemoryCheck> memoryBeforeRun(const plan::Plan* plan, const RunSettings& settings,
                                                   const BackendAnswer& backend);
/// The command line that does the same, quoted for a shell; empty when there is none.
QString runCommand(const Runs& runs, const RunSettings& settings);

/// Collectives of a run, by kind.
struct CollectiveCounts {
  std::int64_t allReduce = 0, allGather = 0, reduceScatter = 0;
};
CollectiveCounts plannedCollectives(const plan::Plan& plan);  ///< of a forward pass
QString countsText(const CollectiveCounts& counts);           ///< "8 all-reduce, 1 all-gather, 0 reduce-scatter"

/// Bytes that a rank of such a run is predicted to hold at most.
std::int64_t predictedBytes(const plan::Plan& plan, const program::Training& training);

}  // namespace cleave::views
