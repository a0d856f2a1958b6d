#include "base/quantities.h"
#include "solve/explain/core_finder.h"
#include "solve/explain/explain.h"
#include "solve/explain/impossible.h"
#include "solve/sentences.h"
#include "solve/wording.h"

#include <algorithm>

namespace cleave::solve {
namespace {

using Answer = Relaxation::Answer;

/// One "why not": what is asked for, as a pin that demands exactly that, and in words.
struct Question {
  const Problem& problem;
  const Optimum* optimum;
  const Deadline& deadline;
  const Solution* solution;                 ///< null: the problem has none
  ValueId value;                            ///< the value, or the layer's result
  std::optional<rules::Strategy> strategy;  ///< asked of a layer
  Placement placement;                      ///< asked of a value
  Pin pin;

  const Graph& graph() const { return *problem.graph; }
  std::string wanted() const { return strategy ? std::string(rules::toText(*strategy)) : inWords(placement, graph().shapeOf(value)); }
};

class Answerer {
 public:
  Answerer(const Question& question, const Variables& variables) : m_question(question), m_variables(variables) {}

  Result<WhyNot> run(const std::optional<Constraint>& impossible) {
    if (impossible) {
      m_answer.answer = WhyNotAnswer::Impossible;
      m_answer.core.constraints = {*impossible};
      m_answer.core.isMinimal = true;
      say(linked(*impossible));
      return std::move(m_answer);
    }
    Problem demanded = m_question.problem;
    demanded.pins.push_back(m_question.pin);
    CLEAVE_TRY(Attempt tried, attempt(demanded, m_question.deadline));
    if (m_question.deadline.progress().cancelled()) return m_question.deadline.progress().cancelledError("looking for an answer");
    switch (tried.answer) {
      case Answer::Fails: return forbidden();
      case Answer::Holds: return withPlan();
      default: break;
    }
    m_answer.answer = WhyNotAnswer::Possible;
    say(subject().text(fmt::format(" may be {} or not: the search did not end in the time it had. Solve with the pin {} to find out.", m_question.wanted(),
                                   ticked(m_question.pin.text))));
    return std::move(m_answer);
  }

  Result<WhyNot> isSo() {
    m_answer.answer = WhyNotAnswer::IsSo;
    say(subject().text(fmt::format(" is {} in this plan.", m_question.wanted())));
    return std::move(m_answer);
  }

 private:
  SentenceBuilder sentence() const { return {m_question.graph(), m_variables}; }
  SentenceBuilder subject() const {
    auto s = sentence();
    return std::move(m_question.strategy ? s.node(m_question.graph().value(m_question.value).producer) : s.value(m_question.value));
  }
  void say(SentenceBuilder s) { m_answer.sentences.push_back(s.finish()); }

  /// A constraint as a sentence: names at its beginning lead to its node.
  SentenceBuilder linked(const Constraint& constraint) const {
    auto s = sentence();
    if (constraint.node.isValid()) {
      const std::string own = ticked(nameOf(m_question.graph(), constraint.node, m_variables.layer(constraint.node).has_value()));
      if (const auto at = constraint.text.find(own); at != std::string::npos) {
        s.text(std::string_view(constraint.text).substr(0, at)).node(constraint.node).text(std::string_view(constraint.text).substr(at + own.size()));
        return s;
      }
    }
    return std::move(s.text(constraint.text));
  }

  Result<WhyNot> forbidden() {
    m_answer.answer = WhyNotAnswer::Forbidden;
    CLEAVE_TRY(auto core, findCore(m_question.problem, {m_question.pin}, m_question.deadline));
    if (core) m_answer.core = *std::move(core);
    const auto& constraints = m_answer.core.constraints;
    say(subject().text(fmt::format(" could be {} for itself, but then something else cannot hold{}", m_question.wanted(), constraints.empty() ? "." : ":")));
    if (m_question.strategy && !constraints.empty()) tellNeeds();
    for (const Constraint& constraint : constraints) say(linked(constraint));
    if (!m_answer.core.isMinimal) say(sentence().text("There was no time to find the smallest such set: some of this may not matter."));
    std::vector<std::string> lifts;
    for (const Constraint& constraint : constraints) {
      if (constraint.lift) lifts.push_back(ticked(*constraint.lift));
    }
    if (!lifts.empty()) say(sentence().text(fmt::format("Lift {} to make it possible.", joined(lifts, "or"))));
    return std::move(m_answer);
  }

  /// What the form that is asked for needs of the layer's input.
  void tellNeeds() {
    const NodeId layer = m_question.graph().value(m_question.value).producer;
    const ValueId input = m_variables.layer(layer)->input;
    std::vector<std::string> needs;
    for (const auto& option : rules::layerOptions(m_question.graph(), layer, *m_variables.layer(layer), m_question.problem.context).offered) {
      std::string text = inWords(option.input, m_question.graph().shapeOf(input));
      if (option.strategy == *m_question.strategy && m_question.solution && option.input == m_question.solution->of(input)) return;  // it has that
      if (option.strategy == *m_question.strategy && std::find(needs.begin(), needs.end(), text) == needs.end()) needs.push_back(std::move(text));
    }
    say(sentence().text(fmt::format("As {} it needs its input ", m_question.wanted())).value(input).text(fmt::format(" {}.", joined(needs, "or"))));
  }

  Result<WhyNot> withPlan() {
    m_answer.pin = m_question.pin.text;
    if (m_question.optimum) {
      CLEAVE_TRY(const bool isTold, tellRegret());
      if (isTold) return std::move(m_answer);
    }
    m_answer.answer = WhyNotAnswer::Possible;
    say(subject().text(fmt::format(" can be {}: there is a plan with it. This plan came first in the search.", m_question.wanted())));
    say(sentence().text(fmt::format("Pin {} to have it.", ticked(m_question.pin.text))));
    return std::move(m_answer);
  }

  bool isAsked(const Regret& regret) const {
    return m_question.strategy ? regret.strategy == m_question.strategy : regret.placement == m_question.placement;
  }

  /// What the best plan with it costs more; false when the optimum does not list it.
  Result<bool> tellRegret() {
    CLEAVE_TRY(const auto regrets, m_question.optimum->regrets(m_question.value, m_question.deadline.progress()));
    const Regret* best = nullptr;
    bool isListed = false;
    for (const Regret& regret : regrets) {
      if (!isAsked(regret)) continue;
      isListed = true;
      if (regret.extraFs && (!best || *regret.extraFs < *best->extraFs)) best = &regret;
    }
    if (!isListed) return false;
    if (!best) {
      tellBudget();
      return true;
    }
    m_answer.answer = WhyNotAnswer::Costs;
    m_answer.extraFs = best->extraFs;
    m_answer.extraBytes = best->extraBytes;
    std::string cost = *best->extraFs == 0 ? "takes as long as this plan"
                         : *best->extraFs < 0 ? fmt::format("takes {} less", timeText(-*best->extraFs))
                                              : fmt::format("takes {} more", timeText(*best->extraFs));
    if (best->extraBytes && *best->extraBytes != 0) {
      cost += fmt::format(" and holds {} {} on a rank", bytesText(std::abs(*best->extraBytes)), *best->extraBytes > 0 ? "more" : "less");
    }
    say(subject().text(fmt::format(" can be {}, but the best plan with it {}{}.", m_question.wanted(), cost,
                                   *best->extraFs == 0 && best->extraBytes.value_or(0) == 0 ? "; this one comes first in the menu" : "")));
    say(sentence().text(fmt::format("Pin {} to have it.", ticked(m_question.pin.text))));
    return true;
  }

  void tellBudget() {
    m_answer.answer = WhyNotAnswer::Forbidden;
    m_answer.pin.reset();
    m_answer.core.isMinimal = true;
    m_answer.core.constraints = {{.kind = ConstraintKind::Budget,
                                  .text = fmt::format("Every plan with it needs more than the memory budget of {} a rank.",
                                                      bytesText(m_question.problem.cost.budgetBytes()))}};
    say(subject().text(fmt::format(" cannot be {} within the budget:", m_question.wanted())));
    say(linked(m_answer.core.constraints.front()));
  }

  const Question& m_question;
  const Variables& m_variables;
  WhyNot m_answer;
};

Pin pinFor(const std::string& name, std::string_view wanted) {
  return {.pattern = name, .text = fmt::format("{}={}", name, wanted)};
}

bool isOf(const Problem& problem, const Solution& solution) {
  return solution.placements.size() == problem.graph->values.size() && solution.strategies.size() == problem.graph->nodes.size();
}

/// The name to pin a layer by: its own, or its result's where several layers share that.
std::string pinnableName(const Graph& graph, NodeId layer) {
  const std::string name = graph::layerName(graph, layer);
  Pin pin{.pattern = name};
  return targetsOf(pin, graph).layers.size() == 1 ? name : graph.value(graph.node(layer).results.front()).name;
}

}  // namespace

Result<WhyNot> whyNot(const Problem& problem, const Solution& solution, const Optimum* optimum, ValueId value, const Placement& placement,
                      const Progress& progress, std::int64_t timeLimitMs) {
  const Graph& graph = *problem.graph;
  if (value.index() >= graph.values.size()) return fail(ErrorCode::BadUsage, "The graph has no value {}.", value.raw());
  if (const auto& info = graph.value(value); placement.lastDim() >= static_cast<int>(info.type.shape.size())) {
    return fail(ErrorCode::BadUsage, "`{}` {} has no dimension {}: it cannot be {}.", info.name, graph::toText(info.type.shape), placement.lastDim(),
                placement.text());
  }
  const Variables variables(problem);
  const Deadline deadline(timeLimitMs, progress);
  const Solution* known = isOf(problem, solution) ? &solution : nullptr;
  Question question{problem, optimum, deadline, known, value, {}, placement, pinFor(graph.value(value).name, placement.text())};
  question.pin.placement = placement;
  Answerer answerer(question, variables);
  if (known && known->of(value) == placement) return answerer.isSo();
  return answerer.run(whyImpossible(problem, variables, value, placement));
}

Result<WhyNot> whyNot(const Problem& problem, const Solution& solution, const Optimum* optimum, NodeId layer, rules::Strategy strategy,
                      const Progress& progress, std::int64_t timeLimitMs) {
  const Graph& graph = *problem.graph;
  const Variables variables(problem);
  if (layer.index() >= graph.nodes.size() || !variables.layer(layer)) {
    return fail(ErrorCode::BadUsage, "Only layers have strategies: ask for a placement of the value instead.");
  }
  const Deadline deadline(timeLimitMs, progress);
  const Solution* known = isOf(problem, solution) ? &solution : nullptr;
  Question question{problem, optimum, deadline, known, graph.node(layer).results.front(), strategy, {}, pinFor(pinnableName(graph, layer), rules::toText(strategy))};
  question.pin.strategies = {strategy};
  Answerer answerer(question, variables);
  if (known && known->strategies[layer.index()] && known->strategies[layer.index()]->strategy == strategy) return answerer.isSo();
  return answerer.run(whyImpossible(problem, variables, layer, strategy));
}

Result<Core> smallestCore(const Problem& problem, const Progress& progress, std::int64_t timeLimitMs) {
  const Deadline deadline(timeLimitMs, progress);
  CLEAVE_TRY(auto core, findCore(problem, {}, deadline));
  if (core) return *std::move(core);
  // What holds without the budget may still be too big.
  CLEAVE_TRY(core, findCore(problem, {}, deadline, Engine::Optimal));
  if (progress.cancelled()) return progress.cancelledError("looking for the smallest core");
  return core ? *std::move(core) : Core{};
}

}  // namespace cleave::solve
