#include "solve/explain/decision.h"

#include "solve/explain/sentences.h"
#include "solve/problem/redistribution.h"
#include "solve/problem/solve_result.h"
#include "solve/problem/strategy_text.h"
#include "solve/problem/wording.h"

#include <algorithm>
#include <array>
#include <map>

namespace cleave::solve {

// ---- sentences
// -------------------------------------------------------------------------------------------------------

std::string plainText(const Sentence& sentence) {
  std::string text;
  for (const SentencePart& part : sentence) text += part.text;
  return text;
}

SentenceBuilder& SentenceBuilder::text(std::string_view text) {
  if (!m_parts.empty() && std::holds_alternative<std::monostate>(m_parts.back().link)) {
    m_parts.back().text += text;
  } else if (!text.empty()) {
    m_parts.push_back({std::string(text), {}});
  }
  return *this;
}

SentenceBuilder& SentenceBuilder::value(ValueId value) {
  m_parts.push_back({ticked(m_graph.value(value).name), value});
  return *this;
}

SentenceBuilder& SentenceBuilder::node(NodeId node) {
  m_parts.push_back({ticked(nameOf(m_graph, node, m_variables.layer(node).has_value())), node});
  return *this;
}

SentenceBuilder& SentenceBuilder::step(StepId position) {
  m_parts.push_back({fmt::format("step {}", withThousands(position)), SeekTo{position}});
  return *this;
}

// ---- questions about a moment
// ----------------------------------------------------------------------------------------

std::optional<std::vector<Placement>> readsAt(const Cursor& cursor, NodeId node) {
  std::vector<Placement> placements;
  for (const Read& read : cursor.trace().variables().reads(node)) {
    auto placement = cursor.placementOf(read.value);
    if (!placement) return std::nullopt;
    placements.push_back(std::move(*placement));
  }
  return placements;
}

std::vector<PastTry> pastTries(const Cursor& cursor, NodeId node) {
  const auto trace = cursor.sharedTrace();
  std::vector<PastTry> tries;
  Cursor past(trace);
  past.seek(cursor.step());
  std::optional<StepId> at = past.assignedAt(node);
  std::optional<StepId> conflictIndex;
  if (!at) {
    // Just gone back to: the event before the Backtrack is the conflict that ended the last try.
    const auto last = cursor.lastEvent();
    if (!last || last->type != EventType::Backtrack || last->target != node.raw() || cursor.step() < 2) return tries;
    conflictIndex = cursor.step() - 2;
    past.seek(cursor.step() - 1);
    at = past.assignedAt(node);
  }
  while (at) {
    Event event;
    if (trace->read(*at, {&event, 1}) != 1 || event.type != EventType::Try) break;
    tries.push_back({event.ordinal, *at, conflictIndex});
    // A try after the first follows Conflict, Backtrack; before that Backtrack the earlier candidate was in force.
    if (*at < 2 || trace->read(*at - 1, {&event, 1}) != 1 || event.type != EventType::Backtrack) break;
    conflictIndex = *at - 2;
    past.seek(*at - 1);
    const auto earlier = past.assignedAt(node);
    if (earlier && *earlier >= *at) break;
    at = earlier;
  }
  std::reverse(tries.begin(), tries.end());
  return tries;
}

std::string nameOf(const Choice& choice, int ranks) {
  if (choice.strategy) return strategyText(*choice.strategy, ranks);
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < choice.results.size(); ++i) texts.push_back(placementText(choice, i));
  return texts.empty() ? "no result" : fmt::format("{}", fmt::join(texts, ", "));
}

std::string_view toText(Fate fate) {
  static constexpr std::array<std::string_view, 8> kNames{
      "chosen", "failed", "open", "does not fit", "removed by a pin", "sizes forbid it", "skipped", "not taken"};
  return kNames[static_cast<std::size_t>(fate)];
}

// ---- one decision
// ----------------------------------------------------------------------------------------------------

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
    tellNamesakesApart();
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
      CandidateFate fate{.name = nameOf(candidates.open[i], m_problem.context.worldSize),
                         .choice = candidates.open[i],
                         .why = candidates.open[i].reason};
      for (const PastTry& past : tries) {
        if (past.ordinal == i) tell(fate, past);
      }
      if (fate.fate == Fate::Open && weighsPlans() && !tries.empty()) fate.fate = Fate::Outweighed;
      if (fate.fate == Fate::Open && isPassedOver(i, tries))
        fate.fate = hasLearned() ? Fate::Skipped : Fate::Outweighed;
      m_decision.candidates.push_back(std::move(fate));
    }
    for (const RuledOut& out : candidates.ruledOut) {
      m_decision.candidates.push_back({.fate = out.pin.empty() ? Fate::DoesNotFit : Fate::Pinned,
                                       .name = nameOf(out.choice, m_problem.context.worldSize),
                                       .choice = out.choice,
                                       .why = out.why,
                                       .pin = out.pin});
    }
    m_conflict = candidates.open.empty() ? candidates.conflict.reason : std::string();
  }

  /// Nothing was shown to fail before the first step back: what is left out then was weighed, not refuted.
  bool hasLearned() const { return m_trace.stats().backtracks > 0; }

  /// The recording tells of one whole plan: each step takes what that has, and nothing was tried beside it.
  bool weighsPlans() const {
    if (m_trace.engine() != Engine::Optimal || hasLearned()) return false;
    return m_trace.conflictCount() == 0 || m_trace.conflict(ConflictId(0)).isOfWholePlan();
  }

  /// Left out without a try.
  bool isPassedOver(std::size_t ordinal, const std::vector<PastTry>& tries) const {
    if (!tries.empty()) return ordinal < tries.back().ordinal;
    const auto last = m_cursor.lastEvent();
    return last && last->type == EventType::Conflict && last->node == m_decision.node.raw();
  }

  void tell(CandidateFate& fate, const PastTry& past) {
    fate.fate = past.conflictIndex ? Fate::Failed : Fate::Chosen;
    fate.triedAt = past.index + 1;
    if (!past.conflictIndex) return;
    fate.failedAt = *past.conflictIndex + 1;
    Event event;
    if (m_trace.read(*past.conflictIndex, {&event, 1}) == 1 && event.type == EventType::Conflict)
      fate.conflict = describe(m_trace, event);
  }

  void addRefusals() {
    if (!m_decision.isLayer) return;
    const auto options = layerStrategiesOf(m_problem, m_variables, m_decision.node);
    for (const rules::Refusal& refusal : options.refused) {
      m_decision.candidates.push_back(
          {.fate = Fate::Refused, .name = std::string(rules::toText(refusal.strategy)), .why = refusal.reason});
    }
  }

  /// Strategies of one name differ by how the result is placed.
  void tellNamesakesApart() {
    if (!m_decision.isLayer) return;
    std::map<std::string, int> uses;
    for (const CandidateFate& fate : m_decision.candidates) ++uses[fate.name];
    for (CandidateFate& fate : m_decision.candidates) {
      if (uses[fate.name] < 2) continue;
      fate.name = fate.choice ? fmt::format("{} as {}", fate.name, fate.choice->results.front().text())
                              : inEqualParts(fate.name, m_problem.context.worldSize);
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
    if (m_decision.candidates.empty() || !readsAt(m_cursor, m_decision.node)) return whereabouts(name);
    const bool hasInputs = !m_variables.reads(m_decision.node).empty();
    s.text(
        fmt::format("The search has not decided about {} yet{}", name, hasInputs ? ": its inputs are placed." : "."));
    return s.finish();
  }

  /// Of a node that the search is not at, from the latest events: looking through millions would cost more than a step.
  Sentence whereabouts(const std::string& name) const {
    constexpr StepId kMostLookedAt = 1 << 16;
    const StepId step = m_cursor.step(), first = step > kMostLookedAt ? step - kMostLookedAt : 0;
    std::vector<Event> latest(step - first);
    latest.resize(m_trace.read(first, latest));
    const auto arrived = std::find_if(latest.rbegin(), latest.rend(), [&](const Event& event) {
      return event.type == EventType::Visit && event.node == m_decision.node.raw();
    });
    SentenceBuilder s(m_trace);
    if (arrived != latest.rend()) {
      s.text(fmt::format("The search has gone back before {}: it last arrived there at ", name));
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
    for (const CandidateFate& fate : m_decision.candidates) {
      if (fate.fate != Fate::Chosen) m_decision.sentences.push_back(fateSentence(fate));
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

  Sentence fateSentence(const CandidateFate& fate) const {
    SentenceBuilder s(m_trace);
    switch (fate.fate) {
      case Fate::Failed:
        s.text(fate.name + " was tried at ").step(*fate.triedAt).text(" and failed");
        if (fate.failedAt) s.text(" at ").step(*fate.failedAt);
        return s.text(fate.conflict.empty() ? "." : ": " + fate.conflict).finish();
      case Fate::Open: {
        const auto last = m_cursor.lastEvent();
        const bool isSolved = last && last->type == EventType::Solution;
        const bool isOver = last && isEnd(last->type);
        return s
            .text(fate.name + (isSolved ? " fits here too; the solution does without it."
                               : isOver ? " was not tried before the search ended."
                                        : " has not been tried yet."))
            .finish();
      }
      case Fate::Skipped:
        return s.text(fmt::format("{} is skipped: under these placements it was shown to fail before.", fate.name))
            .finish();
      case Fate::Outweighed:
        return s
            .text(fmt::format("{} fits here too. The engine compares entire plans, and the one that this shows does "
                              "without it.",
                              fate.name))
            .finish();
      case Fate::Refused: return s.text(fmt::format("{} is impossible: {}.", fate.name, fate.why)).finish();
      case Fate::Pinned: return s.text(fmt::format("{} is {}.", fate.name, fate.why)).finish();
      default: return s.text(fmt::format("{} {}.", fate.name, fate.why)).finish();
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
