#include "solve/explain/change.h"

#include "solve/checker.h"
#include "solve/explain/attempt.h"
#include "solve/problem/layer_count.h"

#include <algorithm>
#include <charconv>
#include <limits>

namespace cleave::solve {
namespace {

constexpr int kMostRanks = 1024;

std::optional<int> parseRanks(std::string_view text) {
  int ranks = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), ranks);
  if (error != std::errc() || end != text.data() + text.size() || ranks < 1 || ranks > kMostRanks) return std::nullopt;
  return ranks;
}

Result<void> lift(Problem& problem, const std::string& text) {
  if (std::erase_if(problem.pins, [&](const Pin& pin) { return pin.text == text; }) > 0) return {};
  return fail(ErrorCode::BadUsage, "There is no pin `{}` to lift.", text);
}

Result<void> switchOn(Problem& problem, const std::string& rule) {
  const auto at = std::find(problem.rulesOff.begin(), problem.rulesOff.end(), rule);
  if (at == problem.rulesOff.end()) return fail(ErrorCode::BadUsage, "The rule of `{}` is not switched off.", rule);
  problem.rulesOff.erase(at);
  return {};
}

Result<void> change(Problem& problem, const Change& change) {
  switch (change.kind) {
    case ChangeKind::AddPin: {
      CLEAVE_TRY(Pin pin, Pin::parse(change.argument));
      problem.pins.push_back(std::move(pin));
      return {};
    }
    case ChangeKind::LiftPin: return lift(problem, change.argument);
    case ChangeKind::RuleOn: return switchOn(problem, change.argument);
    case ChangeKind::Redistribute: problem.redistributable.push_back(change.argument); return {};
    case ChangeKind::FullCandidateSet: problem.context.candidateSet = rules::CandidateSet::Full; return {};
    case ChangeKind::SequenceParallel: {
      const auto mode = rules::parseSequenceParallel(change.argument);
      if (!mode)
        return fail(ErrorCode::BadUsage, "Sequence parallelism is `off`, `on` or `auto`, not `{}`.", change.argument);
      problem.context.sequenceParallel = *mode;
      return {};
    }
    case ChangeKind::Ranks: {
      const auto ranks = parseRanks(change.argument);
      if (!ranks)
        return fail(ErrorCode::BadUsage, "`{}` is not a number of ranks from 1 to {}.", change.argument, kMostRanks);
      problem.context.worldSize = *ranks;
      return {};
    }
    case ChangeKind::LiftBudget:
      if (!problem.cost.memoryBudget)
        return fail(ErrorCode::BadUsage,
                    "The budget is the device's memory and cannot be raised. Choose another device.");
      problem.cost.memoryBudget.reset();
      return {};
  }
  return {};
}

}  // namespace

std::string toText(const Change& change) {
  switch (change.kind) {
    case ChangeKind::AddPin: return fmt::format("pin {}", change.argument);
    case ChangeKind::LiftPin: return fmt::format("lift the pin {}", change.argument);
    case ChangeKind::RuleOn: return fmt::format("switch the rule of {} on again", change.argument);
    case ChangeKind::Redistribute:
      return fmt::format("allow {} to be gathered or cut after it is computed", change.argument);
    case ChangeKind::FullCandidateSet: return "use the full candidate set";
    case ChangeKind::SequenceParallel:
      return change.argument == "auto" ? "let the solver decide on sequence parallelism"
                                       : fmt::format("turn sequence parallelism {}", change.argument);
    case ChangeKind::LiftBudget: return "raise the memory budget to the device's memory";
    case ChangeKind::Ranks: return fmt::format("use {} rank{}", change.argument, change.argument == "1" ? "" : "s");
  }
  return {};
}

Result<Problem> applied(const Problem& problem, const Change& what) {
  Problem changed = problem;
  CLEAVE_TRY_VOID(change(changed, what));
  CLEAVE_TRY_VOID(changed.checkPins());
  return changed;
}

Figures figuresOf(const Problem& problem, const Solution* solution) {
  const LayerCount count = countLayers(*problem.graph, solution, problem.context.worldSize);
  Figures figures{.splitLayers = count.split + count.gathered, .layers = count.layers, .gathered = count.gathered};
  if (!solution) return figures;
  const PlanCost cost = costOf(problem, *solution);
  figures.hasPlan = true;
  figures.rankBytes = cost.bytes();
  figures.femtoseconds = cost.femtoseconds();
  return figures;
}

Result<Tried> tryChange(const Problem& problem, const Change& change, Engine engine, Work& work, SolveCache* cache) {
  CLEAVE_TRY(const Problem changed, applied(problem, change));
  CLEAVE_TRY(Attempt attempted, attempt(changed, work, engine, cache));
  Tried tried{.answer = attempted.answer, .isOverBudget = attempted.isOverBudget, .conflicts = attempted.conflicts};
  if (attempted.answer != Answer::Holds) return tried;
  Problem kept = changed;  // `reference` and `learning` ignore the budget
  if (engine != Engine::Optimal) kept.cost.memoryBudget = std::numeric_limits<std::int64_t>::max();
  const auto violations = check(kept, *attempted.solution);
  CLEAVE_CHECK(violations.empty(), "the plan after the change \"{}\" is invalid: {}", toText(change),
               violations.front());
  tried.figures = figuresOf(changed, &*attempted.solution);
  tried.solution = std::move(attempted.solution);
  return tried;
}

}  // namespace cleave::solve
