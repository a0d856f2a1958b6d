#include "pipeline/run/modes.h"

#include "base/quantities.h"
#include "pipeline/compare/expected_outputs.h"
#include "pipeline/compare/token_differences.h"
#include "pipeline/compare/token_rows.h"
#include "pipeline/report/generation_report.h"
#include "pipeline/run/generation.h"
#include "plan/text/headline.h"
#include "program/backward.h"

#include <fmt/ranges.h>

namespace cleave::pipeline {
namespace {

using Names = std::vector<std::string>;

// ---- forward

Result<void> validateForward(const RunRequest&, RunReport&) { return {}; }
void launchForward(const RunRequest&, spec::RankSpec&) {}
Result<void> collectForward(const RunRequest&, const RankFiles&, const Follower&, RunReport&) { return {}; }
Result<Names> compareForward(const RunRequest& request) {
  return checkExpected(*request.plan, *request.expect, request.replicas);
}

// ---- training

/// Notes the parameters that the run does not train.
void noteFrozen(RunReport& report, const RunRequest& request) {
  if (!request.plan->backward) return;
  const graph::Graph& program = *request.plan->program;
  std::int64_t all = 0, trained = 0;
  for (const graph::Node& node : program.nodes) {
    if (node.kind != graph::NodeKind::Parameter) continue;
    ++all;
    trained += request.plan->backward->gradients.of(node.results[0]);
  }
  const std::int64_t frozen = std::ssize(program.frozen), others = all - trained - frozen;
  if (trained == all) return;
  std::string text = fmt::format("{} of {} parameters are trained.", trained, all);
  if (frozen > 0) text += fmt::format(" {} {} or frozen.", frozen, frozen == 1 ? "is a buffer" : "are buffers");
  if (others > 0) text += fmt::format(" {} {} no gradient from the loss.", others, others == 1 ? "gets" : "get");
  report.notes.push_back(std::move(text));
}

/// The buffers that the program changes. `areRead`: those that its results depend on; otherwise the others.
std::vector<std::string> writtenBuffers(const plan::Plan& plan, bool areRead) {
  std::vector<std::string> names;
  for (const std::string& name : plan.model.writtenBuffers) {
    const auto value = plan.graph->findValue(name);
    const bool isRead = value.isValid() && !plan.graph->value(value).users.empty();
    if (isRead == areRead) names.push_back(name);
  }
  return names;
}

std::string firstOf(const std::vector<std::string>& names) {
  return names.front() + (names.size() > 1 ? fmt::format(" and {} more", names.size() - 1) : "");
}

void noteWritten(RunReport& report, const RunRequest& request) {
  const std::vector<std::string> written = writtenBuffers(*request.plan, false);
  if (written.empty()) return;
  report.notes.push_back(fmt::format(
      "The program writes to {} ({}) that its results do not read. Cleave does not keep these writes, so "
      "{} after training differ from PyTorch's.",
      counted(std::ssize(written), "buffer"), firstOf(written), written.size() == 1 ? "its values" : "their values"));
}

Result<void> validateTraining(const RunRequest& request, RunReport& report) {
  CLEAVE_TRY_VOID(checkTraining(request));
  noteFrozen(report, request);
  noteWritten(report, request);
  if (const std::string isOff = plan::dropoutOffText(*request.plan); !isOff.empty()) report.notes.push_back(isOff);
  return {};
}
void launchTraining(const RunRequest& request, spec::RankSpec& spec) { spec.training = request.training; }
Result<Names> compareTraining(const RunRequest& request) {
  return checkExpectedTraining(*request.plan, request.training.steps, *request.expect);
}

// ---- generation

void launchGeneration(const RunRequest& request, spec::RankSpec& spec) { spec.generation = request.generation; }

/// Adds the generated tokens, and the ranks' reports about them.
Result<void> collectGeneration(const RunRequest& request, const RankFiles& files, const Follower& follower,
                               RunReport& report) {
  CLEAVE_TRY(const std::vector<std::string> ignored, ignoredGenerationSettings(request.plan->model));
  if (!ignored.empty())
    report.notes.push_back(
        fmt::format("Cleave uses greedy decoding and ignores a part of the model's generation config: {}. "
                    "transformers' generate may choose other tokens.",
                    fmt::join(ignored, ", ")));
  std::vector<protocol::Generated> byRank;
  for (const auto& [rank, generated] : follower.generated()) byRank.push_back(generated);
  CLEAVE_TRY(report.generation,
             generationReport(files.output, request.generation, *request.plan, *request.step, byRank));
  for (std::string& violation : cacheViolations(*report.generation)) report.violations.push_back(std::move(violation));
  return {};
}

Result<Names> compareGeneration(const RunRequest& request) {
  CLEAVE_TRY(const TokenRows prompt, readPrompt(*request.input));
  CLEAVE_TRY_VOID(checkExpectedTokens(prompt, *request.expect));
  return Names();
}

constexpr ModeSteps kForward{validateForward, launchForward, collectForward, compareForward},
    kTraining{validateTraining, launchTraining, collectForward, compareTraining},
    kGeneration{validateForward, launchGeneration, collectGeneration, compareGeneration};

}  // namespace

Result<void> checkTraining(const RunRequest& request) {
  CLEAVE_TRY_VOID(program::check(request.training));
  const plan::Plan& plan = *request.plan;
  if (!plan.spec.cost.isTraining)
    return fail(ErrorCode::BadInput, "The plan is not for training. Plan again with --train.");
  const std::vector<std::string> written = writtenBuffers(plan, true);
  if (!written.empty() && request.training.steps * request.training.accumulate > 1) {
    return fail(ErrorCode::BadInput,
                "{}: each pass of the program changes the buffer {}, which the next pass reads. Cleave does not keep "
                "buffers between passes. Train one step (--steps 1), or export the model in eval mode.",
                plan.model.source, firstOf(written));
  }
  if (plan.backward) return {};
  CLEAVE_TRY_VOID(program::backwardOf(*plan.program, plan.parameters, plan.spec.ranks, plan.checkpointed));
  return {};
}

const ModeSteps& stepsOf(const RunRequest& request) {
  switch (request.mode()) {
    case spec::RunMode::Generate: return kGeneration;
    case spec::RunMode::Train: return kTraining;
    case spec::RunMode::Shapes: return request.training.isAsked() ? kTraining : kForward;
    case spec::RunMode::Forward:
    case spec::RunMode::Bisect: break;
  }
  return kForward;
}

}  // namespace cleave::pipeline
