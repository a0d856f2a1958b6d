#pragma once
/// What a run of one plan (run.h) and one of several on the same weights (run_shapes.h) have in common: how ranks are
/// started, what is seen of them, and how what they computed is compared.
#include "pipeline/conduct.h"
#include "pipeline/folder_check.h"
#include "pipeline/run.h"
#include "pipeline/unsplit_place.h"

#include <map>

namespace cleave::pipeline {

/// Where the ranks of one plan find and leave what.
struct RankFiles {
  fs::path plan, output;
  fs::path deviation;  ///< "FILE.r": the outputs of a rank r that are not rank 0's
  std::optional<fs::path> input;
  fs::path step;  ///< of a run that generates: the plan of a step behind the prompt
};

/// BadInput, BadUsage: the plan cannot be trained as the request wants.
Result<void> checkTraining(const RunRequest& request);
/// What is known before anything starts. BadUsage, BadInput: what a rank would say as well, a folder that is not there.
Result<RunReport> beginReport(const RunRequest& request, const launch::BackendChoice& choice);
/// Environment where the ranks of the plan, or the unsplit run, do not fit into memory, unless that does not matter:
/// then notes.
Result<void> checkRoom(const RunRequest& request, launch::Backend backend, RunReport& report);

/// Writes the plan, and starts its ranks here. `then`: what runs behind it on the same weights, as --then of
/// cleave-rank takes it.
Result<launch::RunOutcome> launchRanks(const plan::Plan& plan, launch::Backend backend, const RankFiles& files,
                                       const RunRequest& request, const launch::Observer& observer,
                                       const Progress& progress, const std::vector<std::string>& then = {});
/// The same of the unsplit run at its place, whose failure is an error, as it is when `model` is another one by its
/// end.
Result<void> launchUnsplit(const plan::Plan& plan, const UnsplitPlace& place, const RankFiles& files,
                           const RunRequest& request, const ModelFiles& model, const Progress& progress,
                           const std::vector<std::string>& then = {});

/// What the ranks of one plan tell while they run it.
class Follower {
 public:
  /// The request must outlive it. `loads`: they load their weights, and do not have them already.
  explicit Follower(const RunRequest& request, bool loads = true);
  void observe(const launch::RankEvent& event);
  /// Of a run that succeeded, whose outcome the report has.
  void tell(RunReport& report) const;
  const std::vector<protocol::TrainingStep>& steps() const { return m_steps; }
  /// By rank, of a run that generates.
  const std::map<int, protocol::Generated>& generated() const { return m_generated; }

 private:
  const RunRequest& m_request;
  Conduct m_conduct;
  TimelineCollector m_times;
  std::map<int, protocol::MemoryAccount> m_accounts;
  std::vector<protocol::TrainingStep> m_steps;  ///< of rank 0
  std::map<int, protocol::Generated> m_generated;
  std::string m_precision;  ///< of rank 0
};

/// The outputs of the unsplit run, and of the same with its sums in another order (rounding.h).
struct RulerFiles {
  fs::path unsplit, reordered;
};
/// Makes them: for the comparison that finds a difference which rounding in one sum does not explain. Nullopt: the
/// unsplit run does not fit into memory, which is a note then.
/// `again` times after the first: each with sums in another number of parts.
using MeasureRuler = std::function<Result<std::optional<RulerFiles>>(int again)>;

/// Compares what the ranks wrote with what is expected, and explains what is not equal. The report has their outcome.
/// `steps`: that the parameters went through, of training.
Result<void> compareWith(const fs::path& expected, RunReport& report, const RunRequest& request, const RankFiles& files,
                         std::int64_t steps, const MeasureRuler& measure, const Progress& progress);

RunVerdict verdictOf(const RunReport& report);

}  // namespace cleave::pipeline
