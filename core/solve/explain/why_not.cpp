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

/// What a first look at other settings may do: less than solving with `optimal` would.
constexpr std::uint64_t kQuickWork = kDefaultWork / 20;

/// One "why not": what is asked for, and in words.
struct Question {
  const Problem& problem;
  Engine engine;
  Work& work;
  Work& workElsewhere;                      ///< for what other settings bring
  SolveCache& cache;                        ///< of all that is tried
  const Solution* solution;                 ///< null: the problem has none
  ValueId value;                            ///< the value, or the layer's result
  std::optional<rules::Strategy> strategy;  ///< asked of a layer
  Placement placement;                      ///< asked of a value

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

/// The name that a pin of this layer alone has: its own, or its result's where several layers share that.
std::string pinnableName(const Graph& graph, NodeId layer) {
  const std::string name = graph::layerName(graph, layer);
  Pin pin{.pattern = name};
  return targetsOf(pin, graph).layers.size() == 1 ? name : graph.value(graph.node(layer).results.front()).name;
}

/// The pin that demands exactly what is asked for.
Pin pinFor(const Question& question) {
  const std::string text =
      question.strategy ? demandFor(pinnableName(question.graph(), question.node()), *question.strategy)
                        : fmt::format("{}={}", question.graph().value(question.value).name, question.placement.text());
  auto pin = Pin::parse(text);
  CLEAVE_CHECK(pin.has_value(), "the pin {} is none", text);
  return *std::move(pin);
}

class Answerer {
 public:
  Answerer(const Question& question, const Variables& variables)
      : m_question(question), m_variables(variables), m_pin(pinFor(question)) {}

  /// `isInDomain`: false where no plan of these settings has it, whatever is demanded.
  Result<WhyNot> run(const std::optional<Impossible>& impossible, bool isInDomain = true) {
    if (m_question.solution && m_question.isIn(*m_question.solution)) return isSo();
    if (impossible) {
      m_answer.answer = WhyNotAnswer::Impossible;
      m_answer.core.constraints = {*impossible};
      m_answer.core.isIrreducible = true;
      say(linked(*impossible));
      if (impossible->wider) {
        CLEAVE_TRY_VOID(tellWider(*impossible->wider));
      } else if (!m_question.strategy) {  // what a layer's strategies are, only `wider` ones change
        tell(otherSettings());
      }
      CLEAVE_TRY_VOID(tellOfTheAxis());
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
    say(subject().text(fmt::format(
        " may be {} or not: the search ended at its limit before it could tell. Solve with the pin {} to find out.",
        m_question.wanted(), ticked(m_pin.text))));
    return std::move(m_answer);
  }

  /// A constraint as a sentence: names at its beginning lead to its node.
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

  void tellReasons() {
    for (const Constraint& constraint : m_answer.core.constraints) say(linked(constraint));
    if (!m_answer.core.isIrreducible)
      say(sentence().text(
          "The search for the reason ended at its limit: there may be more to it, and some of this may not matter."));
  }

  /// What settings that the user did not choose make of it.
  struct OtherSettings {
    std::string name;             ///< of the first ones that bring it; empty: none was found
    std::vector<Change> changes;  ///< that they are
    bool isOverBudget = false;    ///< some bring it, but not within the memory budget
    bool isKnown = true;          ///< all were looked at
    bool isNowhere() const { return name.empty() && !isOverBudget && isKnown; }
  };

  /// Tried with the pin: strategies that the user did not let the search use, then values that may be gathered or cut
  /// after they are computed, near by and everywhere; then the same without the user's demands.
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

  /// With the demands of `problem`.
  void tryWithDemands(const Problem& problem, OtherSettings& other) {
    const auto brings = [&](const Problem& changed) { return bringsIt(changed, other); };
    if (auto wider = widerWith(problem, brings)) {
      other.name = wider->name;
      other.changes = std::move(wider->changes);
      return;
    }
    const auto isEvery = [](const std::string& pattern) { return pattern == "*"; };
    if (std::any_of(problem.redistributable.begin(), problem.redistributable.end(), isEvery)) {
      other.name = brings(problem) ? "these settings" : "";
      return;
    }
    for (const std::vector<std::string>& values : redistributions()) {
      Problem free = problem;
      free.redistributable.insert(free.redistributable.end(), values.begin(), values.end());
      const bool isHere = brings(free);
      const auto wider = isHere ? std::nullopt : widerWith(free, brings);
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

  /// Sizes are what they are, and sources have one placement.
  bool canBePlacedElsewhere() const {
    if (m_question.strategy) return true;
    const bool isComputed = m_question.graph().node(decider()).kind == graph::NodeKind::Call;
    return isComputed &&
           m_question.placement
               .whyNotDivisible(m_question.graph().shapeOf(m_question.value), m_question.problem.context.worldSize)
               .empty();
  }

  /// The node whose choice places it: of a layer's weight that is the layer.
  NodeId decider() const { return m_variables.decider(m_question.node()); }

  /// From the least on: what a layer reads, what is asked about, both, everything.
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

  /// Whether `problem` with the pin has a plan; `other` is told why not.
  bool bringsIt(const Problem& problem, OtherSettings& other) {
    Work& work = m_question.workElsewhere;
    if (!m_question.strategy) {
      const auto domains = m_question.cache.domains(problem, work);
      if (domains->isComplete(m_question.value) && !domains->has(m_question.value, m_question.placement)) return false;
    }
    const Change change{ChangeKind::AddPin, m_pin.text};
    if (m_question.engine == Engine::Optimal) {  // whether there is a plan at all is sooner told by the other engine
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

  void tellElsewhere(std::string_view settings, std::vector<Change> changes) {
    say(sentence().text(fmt::format("With {} and the pin {} there is a plan.", settings, ticked(m_pin.text))));
    m_answer.elsewhere = std::move(changes);
    m_answer.elsewhere.push_back({ChangeKind::AddPin, m_pin.text});
  }

  void tell(const OtherSettings& other) {
    if (!other.name.empty()) {
      tellElsewhere(other.name, other.changes);
    } else if (other.isOverBudget) {
      say(sentence().text("Other settings have plans with it, but none was found within the memory budget."));
    } else if (!other.isKnown) {
      say(sentence().text("Whether other settings bring it is not known: the search ended at its limit."));
    }
  }

  /// Its own operator could, but what that needs comes from nowhere.
  Result<WhyNot> outsideDomain() {
    CLEAVE_TRY_VOID(findReasons());
    const OtherSettings other = otherSettings();
    m_answer.answer = WhyNotAnswer::Impossible;
    say(subject().text(fmt::format(" cannot be {} {}{}", m_question.wanted(),
                                   other.isNowhere() ? "in any plan, whatever is demanded" : "with these settings",
                                   m_answer.core.constraints.empty() ? "." : ":")));
    tellReasons();
    tell(other);
    return std::move(m_answer);
  }

  Result<WhyNot> forbidden(bool isOverBudget) {
    CLEAVE_TRY_VOID(findReasons());
    m_answer.answer = WhyNotAnswer::Forbidden;
    const auto& constraints = m_answer.core.constraints;
    const char* stop = constraints.empty() ? "." : ":";
    if (isOverBudget) {
      say(subject().text(
          fmt::format(" could be {}, but then no plan stays within the memory budget{}", m_question.wanted(), stop)));
    } else {
      say(subject().text(
          fmt::format(" could be {} on its own, but then something else cannot hold{}", m_question.wanted(), stop)));
    }
    if (m_question.strategy && !constraints.empty() && !isOverBudget) tellNeeds();
    tellReasons();
    std::vector<std::string> lifts;
    for (const Constraint& constraint : constraints) {
      if (constraint.lift && constraint.offer) lifts.push_back(ticked(*constraint.lift));
    }
    if (!lifts.empty())
      say(sentence().text(
          fmt::format("Lift {} to make it possible, and pin {} to get it.", joined(lifts, "or"), ticked(m_pin.text))));
    else if (!isOverBudget)
      tell(otherSettings());
    CLEAVE_TRY_VOID(tellOfTheAxis());
    return std::move(m_answer);
  }

  /// `=column` admits all of its axis, and whoever asks for `column` may mean any.
  Result<void> tellOfTheAxis() {
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
    say(subject().text(fmt::format(" can be {}: there is a plan with it. Pin {} to get it.", rules::toText(taken),
                                   ticked(demandFor(name, taken)))));
    return {};
  }

  /// A strategy that other settings have is not yet a plan with it.
  Result<void> tellWider(const Wider& wider) {
    CLEAVE_TRY(const Tried tried, tryChange(wider.problem, {ChangeKind::AddPin, m_pin.text}, m_question.engine,
                                            m_question.work, &m_question.cache));
    switch (tried.answer) {
      case Answer::Holds: tellElsewhere("that setting", wider.changes); break;
      case Answer::Fails:
        if (tried.isOverBudget) {
          say(sentence().text("No plan with it stays within the memory budget then."));
          break;
        }
        say(sentence().text("Then something else cannot hold."));
        if (const OtherSettings other = otherSettings(); other.isNowhere()) {
          say(sentence().text(fmt::format("No plan on {} has it, whatever the other settings are.",
                                          counted(m_question.problem.context.worldSize, "rank"))));
        } else {
          tell(other);
        }
        break;
      case Answer::Unknown: say(sentence().text("Whether there is then a plan with it is not known.")); break;
    }
    return {};
  }

  /// What the strategy that is asked for needs of the layer's input.
  void tellNeeds() {
    const NodeId layer = m_question.node();
    const ValueId input = m_variables.layer(layer)->input;
    std::vector<std::string> needs;
    for (const auto& option : layerStrategiesOf(m_question.problem, m_variables, layer).offered) {
      std::string text = inWords(option.input, m_question.graph().shapeOf(input));
      if (effectiveStrategy(option, m_question.problem.context.worldSize) == *m_question.strategy &&
          m_question.solution && option.input == m_question.solution->of(input))
        return;  // it has that
      if (effectiveStrategy(option, m_question.problem.context.worldSize) == *m_question.strategy &&
          std::find(needs.begin(), needs.end(), text) == needs.end())
        needs.push_back(std::move(text));
    }
    if (needs.empty()) return;
    say(sentence()
            .text(fmt::format("As {} it needs its input ", m_question.wanted()))
            .value(input)
            .text(fmt::format(" {}.", joined(needs, "or"))));
  }

  Result<WhyNot> withPlan(const Tried& tried) {
    CLEAVE_CHECK(m_question.isIn(*tried.solution), "the pin {} does not bring what it demands", m_pin.text);
    m_answer.pin = m_pin.text;
    if (m_question.engine == Engine::Optimal && m_question.solution) {
      tellCost(tried);
    } else {
      m_answer.answer = WhyNotAnswer::Possible;
      say(subject().text(fmt::format(" can be {}: there is a plan with it. The plan as it is came first in the search.",
                                     m_question.wanted())));
    }
    say(sentence().text(fmt::format("Pin {} to get it.", ticked(m_pin.text))));
    return std::move(m_answer);
  }

  /// What the plan with the pin differs by.
  void tellCost(const Tried& tried) {
    const Figures now = figuresOf(m_question.problem, m_question.solution);
    m_answer.answer = WhyNotAnswer::Costs;
    m_answer.extraFs = tried.figures.femtoseconds - now.femtoseconds;
    m_answer.extraBytes = tried.figures.rankBytes - now.rankBytes;
    const Femtoseconds fs = *m_answer.extraFs;
    const std::int64_t bytes = *m_answer.extraBytes;
    say(subject().text(fmt::format(
        " can be {}, but the plan with it takes {} and {}{}.", m_question.wanted(), longerText(fs), holdsText(bytes),
        fs == 0 && bytes == 0 ? "; of equal plans the first in candidate order is taken" : "")));
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
    return fail(ErrorCode::BadUsage, "`{}` {} has no dimension {}: it cannot be {}.", info.name,
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
    return fail(ErrorCode::BadUsage, "Only layers have strategies: ask for a placement of the value instead.");
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
  if (progress.cancelled()) return progress.cancelledError("looking for what cannot hold together");
  return found;
}

}  // namespace cleave::solve
