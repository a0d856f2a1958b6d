#include "solve/optimal/optimal.h"

#include "base/quantities.h"
#include "solve/optimal/eliminated.h"
#include "solve/optimal/over_budget_text.h"
#include "solve/optimal/tables.h"
#include "solve/problem/budget_text.h"
#include "solve/problem/wording.h"
#include "solve/search/learning.h"
#include "solve/search/search_report.h"

#include <algorithm>

namespace cleave::solve {
namespace {

using namespace optimal;

constexpr std::uint32_t kStepsBetweenPolls = 1 << 8;

/// Reports a path as a search without conflicts.
class PathReporter {
 public:
  PathReporter(const Eliminated& optimum, TraceSink& sink, const Progress& progress)
      : m_optimum(optimum), m_sink(sink), m_progress(progress), m_report(sink, progress) {}

  /// Reports the first `count` steps in the order of the search; false if stopped.
  bool follow(const Path& path, std::size_t count) {
    const auto& layout = m_optimum.elimination().layout;
    const auto& steps = m_optimum.context().variables.deciders();
    std::vector<Chosen> chosenAt(m_optimum.context().problem.graph->nodes.size());
    for (const auto& fixed : layout.fixed) chosenAt[fixed.node.index()] = {fixed.row.get(), 0};
    for (std::size_t place = 0; place < path.size(); ++place) {
      const Level& level = m_optimum.elimination().level(place);
      const auto& row = level.rows[fromOf(level, path[place])];
      chosenAt[layout.order[place].index()] = {row.get(), level.transitions[path[place]].ordinal};
    }
    for (std::size_t i = 0; i < count; ++i) {
      if (i % kStepsBetweenPolls == 0 && m_progress.cancelled()) return false;
      const Chosen& chosen = chosenAt[steps[i].index()];
      if (!m_report.visit(steps[i], static_cast<std::uint32_t>(chosen.row->open.size()))) return false;
      if (!m_report.tried(steps[i], chosen.ordinal, choiceId(chosen))) return false;
    }
    return true;
  }

  /// Reports a step without candidates, with the conflict of the record.
  bool fail(ConflictRecord record) {
    const NodeId node = record.node;
    return m_report.visit(node, 0) && m_report.conflict(node, m_sink.internConflict(std::move(record)));
  }

  SearchReport& report() { return m_report; }

 private:
  struct Chosen {
    const PricedRow* row = nullptr;
    std::uint32_t ordinal = 0;
  };

  ChoiceId choiceId(const Chosen& chosen) {
    const PricedChoice& candidate = chosen.row->open[chosen.ordinal];
    const auto [known, isNew] = m_choices.try_emplace(&candidate);
    if (isNew) known->second = m_sink.internChoice(candidate.choice);
    return known->second;
  }

  const Eliminated& m_optimum;
  TraceSink& m_sink;
  const Progress& m_progress;
  SearchReport m_report;
  std::unordered_map<const PricedChoice*, ChoiceId> m_choices;
};

/// Reports that plans exist but exceed the budget: the smallest plan up to its last step, then the conflict.
SolveResult overBudget(const Eliminated& optimum, const Found& found, PathReporter& reporter) {
  const auto& steps = optimum.context().variables.deciders();
  ConflictRecord record{steps.back(), overBudgetSentence(optimum, found), {}, {}};
  if (!reporter.follow(found.path, steps.size() - 1) || !reporter.fail(record)) return reporter.report().stopped();
  SolveResult result =
      reporter.report().finish(Outcome::NoSolution, found.isProved ? EventType::Exhausted : EventType::Ended);
  result.core.constraints.push_back({ConstraintKind::Budget, NodeId(), ValueId(),
                                     budgetText(optimum.context().problem, false, found.isProved), std::nullopt});
  result.isProved = found.isProved;
  if (!found.isProved) result.limit = optimum.limitText();
  result.leastBytes = found.cost.bytes();
  result.causes.push_back(std::move(record));
  return result;
}

/// Solves with `learning`, which can explain a conflict. It finds a plan only if `optimal` dropped states for lack of
/// memory. The result is that plan if it fits the budget.
SolveResult solveWithLearning(const Context& context, CandidateTable& candidates, TraceSink& sink,
                              const Progress& progress) {
  SolveResult result = solveLearning(context.problem, context.variables, candidates, sink, progress);
  result.engine = Engine::Learning;
  if (!result.solution) return result;
  const std::int64_t bytes = context.model.evaluate(*result.solution).bytes(),
                     budget = context.problem.cost.budgetBytes();
  if (bytes <= budget) return result;
  ConflictRecord record{
      context.variables.deciders().back(),
      fmt::format(
          "No plan found within the budget of {} per rank. The search stopped at its limit of {}. The only plan "
          "that it found needs {}.",
          bytesText(budget), stateLimitText(), bytesText(bytes)),
      {},
      {}};
  result.outcome = Outcome::NoSolution;
  result.solution.reset();
  result.isProved = false;
  result.limit = stateLimitText();
  result.leastBytes = bytes;
  result.core.constraints = {
      {ConstraintKind::Budget, NodeId(), ValueId(), budgetText(context.problem, false, false), std::nullopt}};
  result.causes = {std::move(record)};
  return result;
}

/// nullopt if no plan exists, even without a budget.
std::optional<SolveResult> solved(const std::shared_ptr<const Context>& context, TraceSink& sink,
                                  const Progress& progress, Tables& tables) {
  Elimination elimination;
  const auto unfolding = unfold(context->pricing(), tables.steps, tables.levels, progress, elimination);
  if (unfolding == Unfolding::Stopped) return SearchReport(sink, progress).stopped();
  if (unfolding == Unfolding::NoPlan) return std::nullopt;
  auto optimum = std::make_shared<Eliminated>(context, std::move(elimination));
  const Found& found = optimum->find(progress);
  PathReporter reporter(*optimum, sink, progress);
  switch (found.ending) {
    case Found::Ending::Stopped: return SearchReport(sink, progress).stopped();
    case Found::Ending::NoPlan: return std::nullopt;
    case Found::Ending::OverBudget: return overBudget(*optimum, found, reporter);
    case Found::Ending::Plan: break;
  }
  if (!reporter.follow(found.path, context->variables.deciders().size())) return reporter.report().stopped();
  SolveResult result = reporter.report().finish(Outcome::Solved, EventType::Solution);
  result.solution = optimum->solution();
  result.optimum = std::move(optimum);
  return result;
}

}  // namespace

SolveResult solveOptimal(const Problem& problem, Tables& tables, TraceSink& sink, const Progress& progress) {
  const auto context = std::make_shared<const Context>(problem);
  progress.report("solve", 0, static_cast<std::int64_t>(context->variables.deciders().size()));
  auto result = solved(context, sink, progress, tables);
  if (!result) return solveWithLearning(*context, tables.steps.candidates(), sink, progress);
  result->engine = Engine::Optimal;
  return *std::move(result);
}

}  // namespace cleave::solve
