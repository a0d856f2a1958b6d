#include "solve/explain/decision.h"

#include "solve/candidates/candidates.h"
#include "solve/explain/moment.h"
#include "solve/problem/solve_result.h"
#include "solve/problem/strategy_text.h"
#include "solve/problem/wording.h"

#include <algorithm>
#include <array>
#include <map>

namespace cleave::solve {

std::string_view toText(CandidateState state) {
  static constexpr std::array<std::string_view, 8> kNames{
      "chosen", "failed", "open", "does not fit", "removed by a pin", "sizes forbid it", "skipped", "not taken"};
  return kNames[static_cast<std::size_t>(state)];
}

namespace {

std::string roleText(Role role) {
  switch (role) {
    case Role::LayerInput: return "input";
    case Role::Weight: return "weight";
    case Role::Bias: return "bias";
    case Role::Target: return "labels";
    case Role::Down: return "weight";
    case Role::Routing: return "routing";
    default: return {};
  }
}

class DecisionMaker {
 public:
  DecisionMaker(const Cursor& cursor, NodeId node)
      : m_cursor(cursor), m_trace(cursor.trace()), m_variables(m_trace.variables()), m_problem(*m_trace.problem()) {
    m_decision.node = m_variables.decider(node);
    m_decision.isLayer = m_variables.layer(m_decision.node).has_value();
  }

  Decision run() {
    m_decision.choice = m_cursor.choiceOf(m_decision.node);
    if (const auto index = m_cursor.assignedAt(m_decision.node)) m_decision.setAt = *index + 1;
    addOperands();
    addCandidates();
    addRefusals();
    distinguishEqualNames();
    addSentences();
    return std::move(m_decision);
  }

 private:
  void addOperands() {
    for (const Read& read : m_variables.reads(m_decision.node)) {
      OperandState state{read.value, roleText(read.role), m_cursor.placementOf(read.value), std::nullopt};
      if (const auto index = m_cursor.assignedAt(m_problem.graph->value(read.value).producer)) state.setAt = *index + 1;
      const auto isSame = [&](const OperandState& known) {
        return known.value == state.value && known.role == state.role;
      };
      if (std::none_of(m_decision.operands.begin(), m_decision.operands.end(), isSame))
        m_decision.operands.push_back(std::move(state));
    }
  }

  void addCandidates() {
    const auto reads = readsAt(m_cursor, m_decision.node);
    if (!reads) return;
    const auto tries = pastTries(m_cursor, m_decision.node);
    const Candidates candidates = candidatesOf(m_problem, m_variables, m_decision.node, *reads);
    for (std::size_t i = 0; i < candidates.open.size(); ++i) {
      CandidateEntry entry{.name = nameOf(candidates.open[i], m_problem.context.worldSize),
                           .choice = candidates.open[i],
                           .why = candidates.open[i].reason};
      for (const PastTry& past : tries) {
        if (past.ordinal == i) addTry(entry, past);
      }
      if (entry.state == CandidateState::Open && weighsPlans() && !tries.empty())
        entry.state = CandidateState::Outweighed;
      if (entry.state == CandidateState::Open && isPassedOver(i, tries))
        entry.state = hasLearned() ? CandidateState::Skipped : CandidateState::Outweighed;
      m_decision.candidates.push_back(std::move(entry));
    }
    for (const RuledOut& out : candidates.ruledOut) {
      m_decision.candidates.push_back({.state = out.pin.empty() ? CandidateState::DoesNotFit : CandidateState::Pinned,
                                       .name = nameOf(out.choice, m_problem.context.worldSize),
                                       .choice = out.choice,
                                       .why = out.why,
                                       .pin = out.pin});
    }
    m_conflict = candidates.open.empty() ? candidates.conflict.reason : std::string();
  }

  /// Before the first backtrack nothing was shown to fail: a candidate that is left out was compared, not refuted.
  bool hasLearned() const { return m_trace.stats().backtracks > 0; }

  /// True when the trace records one complete plan: each step takes its choice from that plan and tries nothing else.
  bool weighsPlans() const {
    if (m_trace.engine() != Engine::Optimal || hasLearned()) return false;
    return m_trace.conflictCount() == 0 || m_trace.conflict(ConflictId(0)).isOfWholePlan();
  }

  /// True when the search skipped the candidate without a try.
  bool isPassedOver(std::size_t ordinal, const std::vector<PastTry>& tries) const {
    if (!tries.empty()) return ordinal < tries.back().ordinal;
    const auto last = m_cursor.lastEvent();
    return last && last->type == EventType::Conflict && last->node == m_decision.node.raw();
  }

  void addTry(CandidateEntry& entry, const PastTry& past) {
    entry.state = past.conflictIndex ? CandidateState::Failed : CandidateState::Chosen;
    entry.triedAt = past.index + 1;
    if (!past.conflictIndex) return;
    entry.failedAt = *past.conflictIndex + 1;
    Event event;
    if (m_trace.read(*past.conflictIndex, {&event, 1}) == 1 && event.type == EventType::Conflict)
      entry.conflict = describe(m_trace, event);
  }

  void addRefusals() {
    if (!m_decision.isLayer) return;
    const auto options = layerStrategiesOf(m_problem, m_variables, m_decision.node);
    for (const rules::Refusal& refusal : options.refused) {
      m_decision.candidates.push_back({.state = CandidateState::Refused,
                                       .name = std::string(rules::toText(refusal.strategy)),
                                       .why = refusal.reason});
    }
  }

  /// Strategies with equal names differ in the placement of the result.
  void distinguishEqualNames() {
    if (!m_decision.isLayer) return;
    std::map<std::string, int> uses;
    for (const CandidateEntry& entry : m_decision.candidates) ++uses[entry.name];
    for (CandidateEntry& entry : m_decision.candidates) {
      if (uses[entry.name] < 2) continue;
      entry.name = entry.choice ? fmt::format("{} as {}", entry.name, entry.choice->results.front().text())
                                : inEqualParts(entry.name, m_problem.context.worldSize);
    }
  }

  Sentence title() const {
    SentenceBuilder s(m_trace);
    if (m_decision.choice) {
      Event event;
      if (m_trace.read(*m_decision.setAt - 1, {&event, 1}) == 1) return s.text(describe(m_trace, event)).finish();
    }
    if (!m_conflict.empty()) return s.text(m_conflict).finish();
    const std::string name = ticked(nameOf(*m_problem.graph, m_decision.node, m_decision.isLayer));
    if (m_decision.candidates.empty() || !readsAt(m_cursor, m_decision.node)) return positionText(name);
    const bool hasInputs = !m_variables.reads(m_decision.node).empty();
    s.text(fmt::format("The search has not decided {} yet{}", name, hasInputs ? ". Its inputs are placed." : "."));
    return s.finish();
  }

  /// Describes where the search is relative to a node it is not at. It reads only the latest events, because reading
  /// millions of them would take longer than a step.
  Sentence positionText(const std::string& name) const {
    constexpr StepId kMostLookedAt = 1 << 16;
    const StepId step = m_cursor.step(), first = step > kMostLookedAt ? step - kMostLookedAt : 0;
    std::vector<Event> latest(step - first);
    latest.resize(m_trace.read(first, latest));
    const auto arrived = std::find_if(latest.rbegin(), latest.rend(), [&](const Event& event) {
      return event.type == EventType::Visit && event.node == m_decision.node.raw();
    });
    SentenceBuilder s(m_trace);
    if (arrived != latest.rend()) {
      s.text(fmt::format("The search went back to a node before {}. It last arrived there at ", name));
      return s.step(first + static_cast<StepId>(latest.rend() - arrived)).text(".").finish();
    }
    const bool isWhole = first == 0;
    return s
        .text(isWhole ? fmt::format("The search has not reached {} yet.", name)
                      : fmt::format("The search is not at {} at this step.", name))
        .finish();
  }

  void addSentences() {
    Sentence first = title();
    m_decision.title = plainText(first);
    if (m_decision.setAt) {
      const Sentence when = SentenceBuilder(m_trace).text(" Set at ").step(*m_decision.setAt).text(".").finish();
      first.insert(first.end(), when.begin(), when.end());
    }
    m_decision.sentences.push_back(std::move(first));
    if (const auto from = operandSentence(); !from.empty()) m_decision.sentences.push_back(from);
    for (const CandidateEntry& entry : m_decision.candidates) {
      if (entry.state != CandidateState::Chosen) m_decision.sentences.push_back(candidateSentence(entry));
    }
  }

  Sentence operandSentence() const {
    if (m_decision.operands.empty()) return {};
    SentenceBuilder s(m_trace);
    s.text("It reads ");
    for (std::size_t i = 0; i < m_decision.operands.size(); ++i) {
      const OperandState& operand = m_decision.operands[i];
      if (i > 0)
        s.text(m_decision.operands.size() == 2 ? ", and " : i + 1 == m_decision.operands.size() ? "; and " : "; ");
      s.value(operand.value);
      s.text(operand.placement
                 ? fmt::format(", {}", inWords(*operand.placement, m_problem.graph->shapeOf(operand.value)))
                 : ", not placed yet");
      if (operand.setAt) s.text(" since ").step(*operand.setAt);
    }
    return s.text(".").finish();
  }

  Sentence candidateSentence(const CandidateEntry& entry) const {
    SentenceBuilder s(m_trace);
    switch (entry.state) {
      case CandidateState::Failed:
        s.text(entry.name + " was tried at ").step(*entry.triedAt).text(" and failed");
        if (entry.failedAt) s.text(" at ").step(*entry.failedAt);
        return s.text(entry.conflict.empty() ? "." : ": " + entry.conflict).finish();
      case CandidateState::Open: {
        const auto last = m_cursor.lastEvent();
        const bool isSolved = last && last->type == EventType::Solution;
        const bool isOver = last && isEnd(last->type);
        return s
            .text(entry.name + (isSolved ? " fits here too. The solution does not use it."
                                : isOver ? " was not tried before the search ended."
                                         : " has not been tried yet."))
            .finish();
      }
      case CandidateState::Skipped:
        return s.text(fmt::format("{} is skipped: it was already shown to fail with these placements.", entry.name))
            .finish();
      case CandidateState::Outweighed:
        return s
            .text(
                fmt::format("{} fits here too. The engine compares complete plans, and the plan shown does not use it.",
                            entry.name))
            .finish();
      case CandidateState::Refused: return s.text(fmt::format("{} is impossible: {}.", entry.name, entry.why)).finish();
      case CandidateState::Pinned: return s.text(fmt::format("{} is {}.", entry.name, entry.why)).finish();
      default: return s.text(fmt::format("{} {}.", entry.name, entry.why)).finish();
    }
  }

  const Cursor& m_cursor;
  const Trace& m_trace;
  const Variables& m_variables;
  const Problem& m_problem;
  Decision m_decision;
  std::string m_conflict;
};

}  // namespace

Decision decisionAt(const Cursor& cursor, NodeId node) {
  if (node.index() >= cursor.trace().problem()->graph->nodes.size()) return {};
  return DecisionMaker(cursor, node).run();
}

}  // namespace cleave::solve
