#include "cli/pass_outcome.h"

#include "cli/console.h"
#include "cli/summary.h"

#include <cstdio>

namespace cleave::cli {
namespace {

Error failureOf(const launch::RankExit& failure) {
  const std::string lastOutput = failure.lastMessage.empty() ? "" : " Its last output: " + failure.lastMessage;
  const char* advice = failure.isOutOfMemory
                           ? " Free memory, or use a smaller --batch, --seq or --dtype; training also "
                             "needs less with --checkpoint-activations."
                           : "";
  return {failure.code, fmt::format("Rank {} {}.{}{}", failure.rank, failure.what, lastOutput, advice)};
}

}  // namespace

int PassOutcome::exitCode() const {
  return verdict == pipeline::RunVerdict::Failed ? cleave::exitCode(ErrorCode::Negative) : 0;
}

PassOutcome outcomeOf(const pipeline::RunReport& report, const plan::Plan& plan) {
  PassOutcome outcome;
  outcome.verdict = report.verdict;
  outcome.report = toJson(report, plan);
  outcome.summary = runSummary(report, plan);
  if (report.outcome.firstFailure) outcome.failure = failureOf(*report.outcome.firstFailure);
  return outcome;
}

launch::Observer rankObserver(const Progress& progress) {
  return [&progress](const launch::RankEvent& event) {
    if (!event.notice.empty()) {
      warn({event.notice});
    } else if (!event.line.empty()) {
      endProgress();
      std::fprintf(stderr, "rank %d: %s\n", event.rank, event.line.c_str());
    } else if (event.message && event.rank == 0) {
      if (const auto* phase = std::get_if<protocol::PhaseChange>(&*event.message))
        progress.report(protocol::toText(phase->phase), phase->done, phase->total);
      if (const auto* step = std::get_if<protocol::TrainingStep>(&*event.message))
        progress.report(fmt::format("training, loss {:.6f}", step->loss), step->step, step->steps);
    }
  };
}

}  // namespace cleave::cli
