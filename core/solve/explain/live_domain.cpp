#include "solve/explain/live_domain.h"

#include "base/quantities.h"
#include "solve/candidates/domains.h"
#include "solve/explain/impossible.h"
#include "solve/explain/moment.h"
#include "solve/explain/sentences.h"
#include "solve/problem/strategy_text.h"
#include "solve/problem/wording.h"

#include <algorithm>
#include <map>

namespace cleave::solve {
namespace {

constexpr std::uint32_t kUndecided = Reach::kUndecided;
constexpr std::size_t kMostOperands = 3;       ///< operands that a reason names
constexpr std::size_t kMostPlacements = 4;     ///< placements named per operand
constexpr std::size_t kMostDemandsTried = 16;  ///< demands tried one by one

/// The assignments at the cursor.
class Assigned {
 public:
  Assigned(const Cursor& cursor, CandidateTable& table)
      : m_variables(cursor.trace().variables()), m_graph(*cursor.trace().problem()->graph) {
    for (const NodeId node : m_variables.deciders()) {
      if (!cursor.choiceOf(node)) break;
      ++m_count;
    }
    m_now.assign(m_graph.values.size(), kUndecided);
    for (std::size_t i = 0; i < m_count; ++i) {
      for (const ValueId v : m_variables.writes(m_variables.deciders()[i])) {
        if (const auto placement = v.isValid() ? cursor.placementOf(v) : std::nullopt)
          m_now[v.index()] = table.intern(*placement);
      }
    }
  }

  std::size_t count() const { return m_count; }
  bool has(ValueId value) const { return m_now[value.index()] != kUndecided; }
  NodeId step(std::size_t index) const { return m_variables.deciders()[index]; }
  /// The assignments of the first `count` steps.
  IdTuple upTo(std::size_t count) const {
    IdTuple decided(m_now.size(), kUndecided);
    for (std::size_t i = 0; i < count; ++i) {
      for (const ValueId v : m_variables.writes(step(i))) {
        if (v.isValid()) decided[v.index()] = m_now[v.index()];
      }
    }
    return decided;
  }

 private:
  const Variables& m_variables;
  const Graph& m_graph;
  std::size_t m_count = 0;
  IdTuple m_now;  ///< by ValueId
};

}  // namespace

struct LiveDomains::Tables {
  Tables(const Trace& trace, Work& work)
      : problem(*trace.problem()),
        variables(trace.variables()),
        domains(problem, std::make_shared<CandidateTable>(), work),
        reach({problem, variables}, domains.table()) {}

  const Problem& problem;
  const Variables& variables;
  Domains domains;
  Reach reach;  ///< under the problem's demands
};

namespace {

/// Finds the live domain of one value at one moment.
class LiveDomainSearch {
 public:
  LiveDomainSearch(const Cursor& cursor, const Problem& problem, const Variables& variables, Domains& domains,
                   Reach& reach, ValueId value, Work& work)
      : m_cursor(cursor),
        m_trace(cursor.trace()),
        m_problem(problem),
        m_variables(variables),
        m_domains(domains),
        m_table(domains.table()),
        m_reach(reach),
        m_work(work),
        m_assigned(cursor, m_table),
        m_value(value),
        m_decider(variables.decider(problem.graph->value(value).producer)) {
    m_domain.value = value;
    m_domain.isAssigned = m_assigned.has(value);
  }

  LiveDomain run() {
    const IdTuple live = possibleAfter(m_assigned.count());
    for (const PlacementId id : live) m_domain.open.push_back(m_table.placement(id));
    findTries();
    for (const PlacementId id : universe()) {
      if (contains(live, id)) continue;
      if (m_work.isOver()) m_domain.isComplete = false;
      if (!m_domain.isComplete) break;
      if (auto gone = whyGone(id)) m_domain.gone.push_back(*std::move(gone));
    }
    return std::move(m_domain);
  }

 private:
  const Graph& graph() const { return *m_problem.graph; }

  /// Possible placements of the value after the first `count` assignments.
  const IdTuple& possibleAfter(std::size_t count) {
    const auto [known, isNew] = m_possible.try_emplace(count);
    if (isNew) {
      m_reach.followTo(m_value, m_work, m_assigned.upTo(count));
      m_domain.isComplete = m_domain.isComplete && m_reach.isComplete(m_value);
      known->second = m_reach.of(m_value);
    }
    return known->second;
  }
  bool isPossibleAfter(std::size_t count, PlacementId id) { return contains(possibleAfter(count), id); }

  /// All placements to report on: R, every even split, those of the adjacent layers, and the domain.
  IdTuple universe() {
    IdTuple all{kReplicated};
    for (int dim = 0; dim < static_cast<int>(graph().shapeOf(m_value).size()); ++dim)
      addOnce(all, m_table.intern(Placement::split(dim)));
    for (const PlacementId id : m_domains.widened(m_value)) addOnce(all, id);
    return all;
  }

  std::optional<GonePlacement> whyGone(PlacementId id) {
    GonePlacement gone{.placement = m_table.placement(id)};
    if (!contains(m_domains.of(m_value), id)) {
      if (!m_domains.isComplete(m_value)) return std::nullopt;
      gone.why = whyNever(gone.placement);
      return gone;
    }
    if (!isPossibleAfter(0, id)) {
      gone.by = RemovedBy::Demand;
      gone.why = SentenceBuilder(graph(), m_variables).text(whichDemand(id)).finish();
      return gone;
    }
    if (explainTry(gone)) return gone;
    std::size_t possible = 0, impossible = m_assigned.count();  // numbers of steps
    while (impossible - possible > 1) {
      const std::size_t middle = possible + (impossible - possible) / 2;
      (isPossibleAfter(middle, id) ? possible : impossible) = middle;
      if (m_work.isOver()) return std::nullopt;
    }
    explainStep(gone, possible);
    return gone;
  }

  Sentence whyNever(const Placement& placement) {
    SentenceBuilder sentence(graph(), m_variables);
    if (const auto never = whyImpossible(m_problem, m_variables, m_domains, m_work, m_value, placement))
      return sentence.text(never->text).finish();
    // The step has a strategy for it, but no operand can have the placement that the strategy needs.
    sentence.text("No strategy and no rule before ").node(m_decider);
    sentence.text(fmt::format(" gives the inputs that {} needs: ", placement.text()));
    return operandsAfter(sentence, m_domains).text(".").finish();
  }

  /// Appends the possible placements of each operand in `from`: "`a` can be R or S(1), `b` can be R".
  template <class Possible>
  SentenceBuilder& operandsAfter(SentenceBuilder& sentence, const Possible& from) {
    std::vector<ValueId> named;
    for (const Read& read : m_variables.reads(m_decider)) {
      if (std::find(named.begin(), named.end(), read.value) != named.end()) continue;
      if (named.size() == kMostOperands) {
        sentence.text(" and more");
        break;
      }
      if (!named.empty()) sentence.text(", ");
      named.push_back(read.value);
      std::vector<std::string> texts;
      for (const PlacementId id : from.of(read.value)) texts.push_back(m_table.placement(id).text());
      if (texts.size() > kMostPlacements) {
        const std::size_t more = texts.size() - kMostPlacements;
        texts.resize(kMostPlacements);
        texts.push_back(counted(static_cast<std::int64_t>(more), "other"));
      }
      sentence.value(read.value).text(texts.empty() ? " has no possible placement" : " can be " + joined(texts, "or"));
    }
    return sentence;
  }

  std::string whichDemand(PlacementId id) {
    const std::size_t pins = m_problem.pins.size(), all = pins + m_problem.rulesOff.size();
    for (std::size_t i = 0; i < all && all <= kMostDemandsTried; ++i) {
      Problem alone = m_problem;
      alone.pins.clear();
      alone.rulesOff.clear();
      i < pins ? alone.pins.push_back(m_problem.pins[i]) : alone.rulesOff.push_back(m_problem.rulesOff[i - pins]);
      const Variables variables(alone);
      Reach reach({alone, variables}, m_table);
      reach.followTo(m_value, m_work);
      if (!reach.isComplete(m_value) || reach.has(m_value, id)) continue;
      if (i >= pins)
        return fmt::format("Switching off the rule of {} removes it.", ticked(m_problem.rulesOff[i - pins]));
      return fmt::format("Your pin {} removes it{}.", ticked(m_problem.pins[i].text), lackingInput(alone, reach, id));
    }
    return "Several of your demands together remove it.";
  }

  /// Names the input that a pinned layer's strategy for the placement lacks; empty if the layer has no such strategy.
  std::string lackingInput(const Problem& pinned, Reach& reach, PlacementId id) {
    const auto& layer = m_variables.layer(m_decider);
    const auto& results = graph().node(m_decider).results;
    if (!layer || results.empty() || results.front() != m_value) return {};
    for (const rules::LayerStrategy& option : layerStrategiesOf(pinned, m_variables, m_decider).offered) {
      const Choice choice{{option.result}, option, {}};
      if (option.result != m_table.placement(id) || !admits(pinned, m_variables, 0, m_decider, choice)) continue;
      if (!reach.isComplete(layer->input) || reach.has(layer->input, m_table.intern(option.input))) continue;
      std::vector<std::string> possible;
      for (const PlacementId input : reach.of(layer->input)) possible.push_back(m_table.placement(input).text());
      return fmt::format(": {} gives it, but needs {} {}, which can only be {}",
                         rules::toText(effectiveStrategy(option, pinned.context.worldSize)),
                         ticked(graph().value(layer->input).name), inWords(option.input, graph().shapeOf(layer->input)),
                         joined(possible, "or"));
    }
    return {};
  }

  void findTries() {
    for (const PastTry& past : pastTries(m_cursor, m_decider)) {
      if (past.conflictIndex) m_tries.push_back(past);
    }
  }

  /// True if the value's own step tried the placement since the search arrived there.
  bool explainTry(GonePlacement& gone) {
    for (const PastTry& past : m_tries) {
      Event event;
      if (m_trace.read(past.index, {&event, 1}) != 1) continue;
      if (placedBy(m_trace.choice(ChoiceId(event.detail))) != gone.placement) continue;
      gone.by = RemovedBy::Conflict;
      gone.node = m_decider;
      gone.at = past.index + 1;
      SentenceBuilder sentence(graph(), m_variables);
      sentence.text("Tried at ").step(past.index + 1).text(" and failed at ").step(*past.conflictIndex + 1);
      gone.why = sentence.text(".").finish();
      return true;
    }
    return false;
  }

  std::optional<Placement> placedBy(const Choice& choice) const {
    const auto writes = m_variables.writes(m_decider);
    const auto placed = placementsOf(choice);
    for (std::size_t i = 0; i < writes.size(); ++i) {
      if (writes[i] == m_value) return placed[i];
    }
    return std::nullopt;
  }

  /// The placement is possible after `count` steps and impossible after the next step.
  void explainStep(GonePlacement& gone, std::size_t count) {
    gone.by = RemovedBy::Step;
    gone.node = m_assigned.step(count);
    if (const auto index = m_cursor.assignedAt(gone.node)) gone.at = *index + 1;
    SentenceBuilder sentence(graph(), m_variables);
    sentence.node(gone.node).text(" chose ");
    const auto choice = m_cursor.choiceOf(gone.node);
    sentence.text(choice ? nameOf(m_trace.choice(*choice), m_problem.context.worldSize) : "its choice");
    if (gone.at) sentence.text(" at ").step(*gone.at);
    if (gone.node != m_decider) {
      m_reach.followTo(m_value, m_work, m_assigned.upTo(count + 1));
      sentence.text(". The inputs of ").node(m_decider).text(" are then limited: ");
      operandsAfter(sentence, m_reach);
    }
    gone.why = sentence.text(".").finish();
  }

  const Cursor& m_cursor;
  const Trace& m_trace;
  const Problem& m_problem;
  const Variables& m_variables;
  Domains& m_domains;
  CandidateTable& m_table;
  Reach& m_reach;
  Work& m_work;
  const Assigned m_assigned;
  const ValueId m_value;
  const NodeId m_decider;
  std::map<std::size_t, IdTuple> m_possible;  ///< possibleAfter
  std::vector<PastTry> m_tries;               ///< failed tries of the value's step
  LiveDomain m_domain;
};

}  // namespace

LiveDomains::LiveDomains(std::shared_ptr<const Trace> trace) : m_trace(std::move(trace)) {}
LiveDomains::~LiveDomains() = default;

LiveDomain LiveDomains::at(const Cursor& cursor, ValueId value, const Progress& progress) {
  Work work(kDefaultWork, progress);
  if (value.index() >= m_trace->problem()->graph->values.size()) return {};
  if (!m_tables) {
    m_tables = std::make_unique<Tables>(*m_trace, work);
    if (!m_tables->domains.isComplete() && progress.cancelled()) m_tables.reset();
    if (!m_tables) return {.value = value, .isComplete = false};
  }
  return LiveDomainSearch(cursor, m_tables->problem, m_tables->variables, m_tables->domains, m_tables->reach, value,
                          work)
      .run();
}

}  // namespace cleave::solve
