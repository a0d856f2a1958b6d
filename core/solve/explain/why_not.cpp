#include "base/quantities.h"
#include "solve/explain/change.h"
#include "solve/explain/explain.h"
#include "solve/explain/impossible.h"
#include "solve/explain/sentences.h"
#include "solve/problem/strategy_text.h"
#include "solve/problem/wording.h"

#include <algorithm>

namespace cleave::solve {
namespace {

/// Work limit of the first look at other settings; solving with `optimal` needs more.
constexpr std::uint64_t kQuickWork = kDefaultWork / 20;

/// One "why not" question.
struct Question {
  const Problem& problem;
  Engine engine;
  Work& work;
  Work& workElsewhere;                      ///< for tries of other settings
  SolveCache& cache;                        ///< shared by all tries
  const Solution* solution;                 ///< null: the problem has no solution
  ValueId value;                            ///< the value, or the layer's result
  std::optional<rules::Strategy> strategy;  ///< the requested strategy, for a layer
  Placement placement;                      ///< the requested placement, for a value

  const Graph& graph() const { return *problem.graph; }
  NodeId node() const { return graph().value(value).producer; }
  std::string wanted() const {
    return strategy ? std::string(rules::toText(*strategy)) : inWords(placement, graph().shapeOf(value));
  }
  bool isIn(const Solution& plan) const {
    if (!strategy) return plan.of(value) == placement;
    const auto& taken = plan.strategies[node().index()];
    return taken && effectiveStrategy(*taken, problem.context.worldSize) == *strategy;
  }
};

/// A name that pins this layer alone: the layer's name, or its result's name if several layers share the layer's name.
std::string pinnableName(const Graph& graph, NodeId layer) {
  const std::string name = graph::layerName(graph, layer);
  Pin pin{.pattern = name};
  return targetsOf(pin, graph).layers.size() == 1 ? name : graph.value(graph.node(layer).results.front()).name;
}

/// The pin that demands exactly the requested strategy or placement.
Pin pinFor(const Question& question) {
  const std::string text =
      question.strategy ? demandFor(pinnableName(question.graph(), question.node()), *question.strategy)
                        : fmt::format("{}={}", question.graph().value(question.value).name, question.placement.text());
  auto pin = Pin::parse(text);
  CLEAVE_CHECK(pin.has_value(), "the text {} is not a pin", text);
  return *std::move(pin);
}

class Answerer {
 public:
  Answerer(const Question& question, const Variables& variables)
      : m_question(question), m_variables(variables), m_pin(pinFor(question)) {}

  /// `isInDomain`: false if no plan with these settings has it, whatever the pins are.
  Result<WhyNot> run(const std::optional<Impossible>& impossible, bool isInDomain = true) {
    if (m_question.solution && m_question.isIn(*m_question.solution)) return isSo();
    if (impossible) {
      m_answer.answer = WhyNotAnswer::Impossible;
      m_answer.core.constraints = {*impossible};
      m_answer.core.isIrreducible = true;
      say(linked(*impossible));
      if (impossible->wider) {
        CLEAVE_TRY_VOID(reportWider(*impossible->wider));
      } else if (!m_question.strategy) {  // only wider settings change the strategies of a layer
        reportOtherSettings(otherSettings());
      }
      CLEAVE_TRY_VOID(reportAxisStrategies());
      return std::move(m_answer);
    }
    CLEAVE_TRY(const Tried tried, tryChange(m_question.problem, {ChangeKind::AddPin, m_pin.text}, m_question.engine,
                                            m_question.work, &m_question.cache));
    const Progress& progress = m_question.work.progress();
    if (progress.cancelled()) return progress.cancelledError("looking for an answer");
    switch (tried.answer) {
      case Answer::Holds: return withPlan(tried);
      case Answer::Fails: return isInDomain ? forbidden(tried.isOverBudget) : outsideDomain();
      case Answer::Unknown: break;
    }
    return notKnown();
  }

 private:
  SentenceBuilder sentence() const { return {m_question.graph(), m_variables}; }
  SentenceBuilder subject() const {
    auto s = sentence();
    return std::move(m_question.strategy ? s.node(m_question.node()) : s.value(m_question.value));
  }
  void say(SentenceBuilder s) { m_answer.sentences.push_back(s.finish()); }

  Result<WhyNot> isSo() {
    m_answer.answer = WhyNotAnswer::IsSo;
    say(subject().text(fmt::format(" is {} in this plan.", m_question.wanted())));
    return std::move(m_answer);
  }

  Result<WhyNot> notKnown() {
    m_answer.answer = WhyNotAnswer::NotKnown;
    auto s = sentence();
    s.text("The search reached its limit before it found out whether ");
    if (m_question.strategy) {
      s.node(m_question.node());
    } else {
      s.value(m_question.value);
    }
    say(std::move(s.text(
        fmt::format(" can be {}. Solve with the pin {} to find out.", m_question.wanted(), ticked(m_pin.text)))));
    return std::move(m_answer);
  }

  /// A constraint as a sentence, in which the name of its node is a link.
  SentenceBuilder linked(const Constraint& constraint) const {
    auto s = sentence();
    if (constraint.node.isValid()) {
      const std::string own =
          ticked(nameOf(m_question.graph(), constraint.node, m_variables.layer(constraint.node).has_value()));
      if (const auto at = constraint.text.find(own); at != std::string::npos) {
        s.text(std::string_view(constraint.text).substr(0, at))
            .node(constraint.node)
            .text(std::string_view(constraint.text).substr(at + own.size()));
        return s;
      }
    }
    return std::move(s.text(constraint.text));
  }

  Result<void> findReasons() {
    CLEAVE_TRY(CoreAnswer found,
               findCore(m_question.problem, {m_pin}, m_question.work, m_question.cache, m_question.engine));
    m_answer.core = std::move(found.core);
    return {};
  }

  void reportReasons() {
    for (const Constraint& constraint : m_answer.core.constraints) say(linked(constraint));
    if (!m_answer.core.isIrreducible)
      say(sentence().text(
          "The search for the reason reached its limit. Constraints may be missing from this list, or not matter."));
  }

  /// The answer under settings that the user did not choose.
  struct OtherSettings {
    std::string name;             ///< of the first settings that allow it; empty: not found
    std::vector<Change> changes;  ///< the changes that make these settings
    bool isOverBudget = false;    ///< some settings allow it, but not within the memory budget
    bool isKnown = true;          ///< all settings were tried
    bool isNowhere() const { return name.empty() && !isOverBudget && isKnown; }
  };

  /// Tries the pin with more strategies, then with redistribution of nearby values and of all values, then does the
  /// same without the user's demands.
  OtherSettings otherSettings() {
    OtherSettings other;
    if (!canBePlacedElsewhere()) return other;
    const Problem& problem = m_question.problem;
    tryWithDemands(problem, other);
    if (!other.name.empty() || (problem.pins.empty() && problem.rulesOff.empty())) return other;
    Problem free = problem;
    free.pins.clear();
    free.rulesOff.clear();
    tryWithDemands(free, other);
    if (other.name.empty()) return other;
    for (const Pin& pin : problem.pins) other.changes.push_back({ChangeKind::LiftPin, pin.text});
    for (const std::string& rule : problem.rulesOff) other.changes.push_back({ChangeKind::RuleOn, rule});
    other.name += problem.pins.empty()       ? ", all rules switched on"
                  : problem.rulesOff.empty() ? ", no other pin"
                                             : ", no other pin, all rules switched on";
    return other;
  }

  /// The same tries with the demands of `problem`.
  void tryWithDemands(const Problem& problem, OtherSettings& other) {
    const auto allows = [&](const Problem& changed) { return hasPlanUnder(changed, other); };
    if (auto wider = widerWith(problem, allows)) {
      other.name = wider->name;
      other.changes = std::move(wider->changes);
      return;
    }
    const auto isEvery = [](const std::string& pattern) { return pattern == "*"; };
    if (std::any_of(problem.redistributable.begin(), problem.redistributable.end(), isEvery)) {
      other.name = allows(problem) ? "these settings" : "";
      return;
    }
    for (const std::vector<std::string>& values : redistributions()) {
      Problem free = problem;
      free.redistributable.insert(free.redistributable.end(), values.begin(), values.end());
      const bool isHere = allows(free);
      const auto wider = isHere ? std::nullopt : widerWith(free, allows);
      if (!isHere && !wider) continue;
      other.name =
          isEvery(values.front()) ? "redistribution of all values (`*`)" : "redistribution of " + inTicks(values);
      for (const std::string& value : values) other.changes.push_back({ChangeKind::Redistribute, value});
      if (wider) {
        other.name += fmt::format(", {}", wider->name);
        other.changes.insert(other.changes.end(), wider->changes.begin(), wider->changes.end());
      }
      return;
    }
  }

  /// False if the sizes do not divide, or the value is a source, which has one placement.
  bool canBePlacedElsewhere() const {
    if (m_question.strategy) return true;
    const bool isComputed = m_question.graph().node(decider()).kind == graph::NodeKind::Call;
    return isComputed &&
           m_question.placement
               .whyNotDivisible(m_question.graph().shapeOf(m_question.value), m_question.problem.context.worldSize)
               .empty();
  }

  /// The node whose choice places the value; for a layer's weight, the layer.
  NodeId decider() const { return m_variables.decider(m_question.node()); }

  /// Patterns of values to redistribute, the smallest change first: the layer's input, the value itself, both, all
  /// values.
  std::vector<std::vector<std::string>> redistributions() const {
    std::vector<std::string> nearBy;
    if (const auto& layer = m_variables.layer(decider())) nearBy.push_back(m_question.graph().value(layer->input).name);
    nearBy.push_back(m_question.graph().value(m_question.value).name);
    std::vector<std::vector<std::string>> tries;
    for (const std::string& name : nearBy) tries.push_back({name});
    if (nearBy.size() > 1) tries.push_back(nearBy);
    tries.push_back({"*"});
    return tries;
  }

  static std::string inTicks(const std::vector<std::string>& names) {
    std::vector<std::string> texts;
    for (const std::string& name : names) texts.push_back(ticked(name));
    return joined(texts, "and");
  }

  /// True if `problem` has a plan with the pin. If not, the reason goes into `other`.
  bool hasPlanUnder(const Problem& problem, OtherSettings& other) {
    Work& work = m_question.workElsewhere;
    if (!m_question.strategy) {
      const auto domains = m_question.cache.domains(problem, work);
      if (domains->isComplete(m_question.value) && !domains->has(m_question.value, m_question.placement)) return false;
    }
    const Change change{ChangeKind::AddPin, m_pin.text};
    if (m_question.engine == Engine::Optimal) {  // `learning` finds out faster if there is a plan at all
      Work quick(std::min(work.left(), kQuickWork), work.progress());
      const auto found = tryChange(problem, change, Engine::Learning, quick, &m_question.cache);
      work.spend(quick.spent());
      if (!found || found->answer == Answer::Fails) return false;
    }
    const auto tried = tryChange(problem, change, m_question.engine, work, &m_question.cache);
    if (!tried) return false;
    other.isKnown = other.isKnown && tried->answer != Answer::Unknown;
    other.isOverBudget = other.isOverBudget || tried->isOverBudget;
    return tried->answer == Answer::Holds;
  }

  void reportElsewhere(std::string_view settings, std::vector<Change> changes) {
    say(sentence().text(fmt::format("With {} and the pin {}, a plan exists.", settings, ticked(m_pin.text))));
    m_answer.elsewhere = std::move(changes);
    m_answer.elsewhere.push_back({ChangeKind::AddPin, m_pin.text});
  }

  void reportOtherSettings(const OtherSettings& other) {
    if (!other.name.empty()) {
      reportElsewhere(other.name, other.changes);
    } else if (other.isOverBudget) {
      say(sentence().text("Other settings allow it, but no plan was found within the memory budget."));
    } else if (!other.isKnown) {
      say(sentence().text("It is not known whether other settings allow it: the search reached its limit."));
    }
  }

  /// The operator itself could give it, but no plan places the inputs as that needs.
  Result<WhyNot> outsideDomain() {
    CLEAVE_TRY_VOID(findReasons());
    const OtherSettings other = otherSettings();
    m_answer.answer = WhyNotAnswer::Impossible;
    say(subject().text(fmt::format(" cannot be {} {}{}", m_question.wanted(),
                                   other.isNowhere() ? "in any plan, under any settings" : "with these settings",
                                   m_answer.core.constraints.empty() ? "." : ":")));
    reportReasons();
    reportOtherSettings(other);
    return std::move(m_answer);
  }

  Result<WhyNot> forbidden(bool isOverBudget) {
    CLEAVE_TRY_VOID(findReasons());
    m_answer.answer = WhyNotAnswer::Forbidden;
    const auto& constraints = m_answer.core.constraints;
    const char* stop = constraints.empty() ? "." : ":";
    if (isOverBudget) {
      say(subject().text(
          fmt::format(" can be {}, but no plan with it fits the memory budget{}", m_question.wanted(), stop)));
    } else {
      say(subject().text(fmt::format(" can be {} alone, but conflicts with{}", m_question.wanted(),
                                     constraints.empty() ? " other constraints." : ":")));
    }
    if (m_question.strategy && !constraints.empty() && !isOverBudget) reportNeeds();
    reportReasons();
    std::vector<std::string> lifts;
    for (const Constraint& constraint : constraints) {
      if (constraint.lift && constraint.offer) lifts.push_back(ticked(*constraint.lift));
    }
    if (!lifts.empty())
      say(sentence().text(fmt::format("To get it, lift {} and pin {}.", joined(lifts, "or"), ticked(m_pin.text))));
    else if (!isOverBudget)
      reportOtherSettings(otherSettings());
    CLEAVE_TRY_VOID(reportAxisStrategies());
    return std::move(m_answer);
  }

  /// The pin `=column` admits every strategy of its axis, so a question about `column` may mean any of them.
  Result<void> reportAxisStrategies() {
    if (!m_question.strategy) return {};
    const std::string name = pinnableName(m_question.graph(), m_question.node());
    const std::string text = fmt::format("{}={}", name, m_question.wanted());
    const auto pin = Pin::parse(text);
    if (!pin || pin->strategies.size() < 2) return {};
    CLEAVE_TRY(const Tried tried, tryChange(m_question.problem, {ChangeKind::AddPin, text}, m_question.engine,
                                            m_question.work, &m_question.cache));
    if (tried.answer != Answer::Holds) return {};
    const rules::Strategy taken =
        effectiveStrategy(*tried.solution->strategies[m_question.node().index()], m_question.problem.context.worldSize);
    say(subject().text(fmt::format(" can be {}: a plan with it exists. Pin {} to get it.", rules::toText(taken),
                                   ticked(demandFor(name, taken)))));
    return {};
  }

  /// Wider settings that have the strategy need not have a plan with it, so this solves with them.
  Result<void> reportWider(const Wider& wider) {
    CLEAVE_TRY(const Tried tried, tryChange(wider.problem, {ChangeKind::AddPin, m_pin.text}, m_question.engine,
                                            m_question.work, &m_question.cache));
    switch (tried.answer) {
      case Answer::Holds: reportElsewhere("that setting", wider.changes); break;
      case Answer::Fails:
        if (tried.isOverBudget) {
          say(sentence().text("With that setting, no plan with it fits the memory budget."));
          break;
        }
        say(sentence().text("With that setting, it conflicts with other constraints."));
        if (const OtherSettings other = otherSettings(); other.isNowhere()) {
          say(sentence().text(fmt::format("No plan on {} has it, under any settings.",
                                          counted(m_question.problem.context.worldSize, "rank"))));
        } else {
          reportOtherSettings(other);
        }
        break;
      case Answer::Unknown:
        say(sentence().text("It is not known whether a plan with it exists under that setting."));
        break;
    }
    return {};
  }

  /// Reports the placement of the layer's input that the requested strategy needs.
  void reportNeeds() {
    const NodeId layer = m_question.node();
    const ValueId input = m_variables.layer(layer)->input;
    std::vector<std::string> needs;
    for (const auto& option : layerStrategiesOf(m_question.problem, m_variables, layer).offered) {
      std::string text = inWords(option.input, m_question.graph().shapeOf(input));
      if (effectiveStrategy(option, m_question.problem.context.worldSize) == *m_question.strategy &&
          m_question.solution && option.input == m_question.solution->of(input))
        return;  // the input already has that placement
      if (effectiveStrategy(option, m_question.problem.context.worldSize) == *m_question.strategy &&
          std::find(needs.begin(), needs.end(), text) == needs.end())
        needs.push_back(std::move(text));
    }
    if (needs.empty()) return;
    say(sentence()
            .text(fmt::format("As {}, it needs its input ", m_question.wanted()))
            .value(input)
            .text(fmt::format(" {}.", joined(needs, "or"))));
  }

  Result<WhyNot> withPlan(const Tried& tried) {
    CLEAVE_CHECK(m_question.isIn(*tried.solution), "the plan with the pin {} lacks what the pin demands", m_pin.text);
    m_answer.pin = m_pin.text;
    if (m_question.engine == Engine::Optimal && m_question.solution) {
      reportCost(tried);
    } else {
      m_answer.answer = WhyNotAnswer::Possible;
      say(subject().text(fmt::format(" can be {}: a plan with it exists. The search found the current plan first.",
                                     m_question.wanted())));
    }
    say(sentence().text(fmt::format("Pin {} to get it.", ticked(m_pin.text))));
    return std::move(m_answer);
  }

  /// Reports how the plan with the pin differs from the current plan.
  void reportCost(const Tried& tried) {
    const Figures now = figuresOf(m_question.problem, m_question.solution);
    m_answer.answer = WhyNotAnswer::Costs;
    m_answer.extraFs = tried.figures.femtoseconds - now.femtoseconds;
    m_answer.extraBytes = tried.figures.rankBytes - now.rankBytes;
    const Femtoseconds fs = *m_answer.extraFs;
    const std::int64_t bytes = *m_answer.extraBytes;
    say(subject().text(fmt::format(
        " can be {}, but the plan with it takes {} and {}{}.", m_question.wanted(), longerText(fs), needsText(bytes),
        fs == 0 && bytes == 0 ? ". Among equal plans, the engine returns the first in candidate order" : "")));
  }

  const Question& m_question;
  const Variables& m_variables;
  const Pin m_pin;
  WhyNot m_answer;
};

bool isOf(const Problem& problem, const Solution& solution) {
  return solution.placements.size() == problem.graph->values.size() &&
         solution.strategies.size() == problem.graph->nodes.size();
}

}  // namespace

Result<WhyNot> whyNot(const Problem& problem, const Solution& solution, Engine engine, ValueId value,
                      const Placement& placement, const Progress& progress, std::uint64_t units) {
  const Graph& graph = *problem.graph;
  if (value.index() >= graph.values.size()) return fail(ErrorCode::BadUsage, "The graph has no value {}.", value.raw());
  if (const auto& info = graph.value(value); placement.lastDim() >= static_cast<int>(info.type.shape.size())) {
    return fail(ErrorCode::BadUsage, "`{}` {} has no dimension {}, so it cannot be {}.", info.name,
                graph::toText(info.type.shape), placement.lastDim(), placement.text());
  }
  const Variables variables(problem);
  Work work(units, progress), workElsewhere(units, progress);
  SolveCache cache;
  const Question question{
      problem, engine, work, workElsewhere, cache, isOf(problem, solution) ? &solution : nullptr, value, {}, placement};
  const auto domains = cache.domains(problem, work);
  const bool isInDomain = !domains->isComplete(value) || domains->has(value, placement);
  return Answerer(question, variables)
      .run(whyImpossible(problem, variables, *domains, work, value, placement), isInDomain);
}

Result<WhyNot> whyNot(const Problem& problem, const Solution& solution, Engine engine, NodeId layer,
                      rules::Strategy strategy, const Progress& progress, std::uint64_t units) {
  const Graph& graph = *problem.graph;
  const Variables variables(problem);
  if (layer.index() >= graph.nodes.size() || !variables.layer(layer)) {
    return fail(ErrorCode::BadUsage,
                "The node is not a layer, so it has no strategy. Ask for a placement of its value.");
  }
  Work work(units, progress), workElsewhere(units, progress);
  SolveCache cache;
  const Question question{problem,
                          engine,
                          work,
                          workElsewhere,
                          cache,
                          isOf(problem, solution) ? &solution : nullptr,
                          graph.node(layer).results.front(),
                          strategy,
                          {}};
  return Answerer(question, variables).run(whyImpossible(problem, variables, layer, strategy));
}

Result<CoreAnswer> irreducibleCore(const Problem& problem, Engine engine, const Progress& progress,
                                   std::uint64_t units) {
  Work work(units, progress);
  SolveCache cache;
  CLEAVE_TRY(auto found, findCore(problem, {}, work, cache, engine));
  if (progress.cancelled()) return progress.cancelledError("looking for conflicting constraints");
  return found;
}

}  // namespace cleave::solve
