#include "solve/explain/conflict_card.h"

#include "solve/candidates/candidates.h"
#include "solve/explain/moment.h"
#include "solve/problem/wording.h"

#include <algorithm>
#include <queue>
#include <set>

namespace cleave::solve {
namespace {

class CardMaker {
 public:
  /// `cursor` is just after the Conflict event.
  CardMaker(const Cursor& cursor, const Event& event)
      : m_cursor(cursor),
        m_trace(cursor.trace()),
        m_variables(m_trace.variables()),
        m_problem(*m_trace.problem()),
        m_graph(*m_problem.graph) {
    m_card.step = cursor.step();
    m_card.node = NodeId(event.node);
    m_card.conflict = m_trace.conflict(ConflictId(event.detail));
  }

  ConflictCard run() {
    addHeadline();
    for (ValueId culprit : m_card.conflict.culprits) addCulprit(culprit);
    if (!m_card.conflict.isOfWholePlan()) addTried();
    addGoesBack();
    if (!m_card.conflict.isOfWholePlan()) addPinsToTry();
    return std::move(m_card);
  }

 private:
  SentenceBuilder sentence() const { return SentenceBuilder(m_trace); }
  bool isLayer(NodeId n) const { return m_variables.layer(n).has_value(); }
  NodeId deciderOf(ValueId v) const { return m_variables.decider(m_graph.value(v).producer); }

  void addHeadline() {
    auto s = sentence();
    if (m_card.conflict.isOfWholePlan()) {
      m_card.headline = s.text(m_card.conflict.reason).finish();
      return;
    }
    const std::string own = ticked(nameOf(m_graph, m_card.node, isLayer(m_card.node)));
    const std::string& reason = m_card.conflict.reason;
    if (reason.starts_with(own)) {
      s.node(m_card.node).text(std::string_view(reason).substr(own.size()));
    } else {
      const std::string& scope = m_graph.scope(m_graph.node(m_card.node).scope).path;
      s.node(m_card.node).text(scope.empty() ? ": " : fmt::format(" in {}: ", scope)).text(reason);
    }
    m_card.headline = s.finish();
  }

  std::size_t candidateCount(NodeId n) const {
    const auto reads = readsAt(m_cursor, n);
    return reads ? candidatesOf(m_problem, m_variables, n, *reads).open.size() : 0;
  }

  /// Layers before `value`, the latest first. The walk goes from operand to operand and stops at layers. If an operand
  /// is split, the walk follows only split operands, because the split comes from them.
  std::vector<NodeId> layersBefore(ValueId value) const {
    std::priority_queue<std::uint32_t> queue;
    std::set<std::uint32_t> seen;
    const auto push = [&](NodeId n) {
      if (seen.insert(n.raw()).second) queue.push(n.raw());
    };
    push(deciderOf(value));
    std::vector<NodeId> layers;
    while (!queue.empty()) {
      const NodeId n(queue.top());
      queue.pop();
      if (isLayer(n)) {
        layers.push_back(n);
        continue;
      }
      const auto isSplit = [&](const Read& read) {
        const auto placement = m_cursor.placementOf(read.value);
        return placement && placement->isSplit();
      };
      const auto reads = m_variables.reads(n);
      const bool anySplit = std::any_of(reads.begin(), reads.end(), isSplit);
      for (const Read& read : reads) {
        if (!anySplit || isSplit(read)) push(deciderOf(read.value));
      }
    }
    return layers;
  }

  /// The layer to report: the latest with another candidate, else the latest.
  NodeId chooserOf(const std::vector<NodeId>& layers, bool& hasAlternative) const {
    for (NodeId n : layers) {
      if (candidateCount(n) > 1) {
        hasAlternative = true;
        return n;
      }
    }
    return layers.empty() ? NodeId() : layers.front();
  }

  void addCulprit(ValueId value) {
    const auto placement = m_cursor.placementOf(value);
    if (!placement) return;
    CulpritLine line{.value = value, .placement = *placement};
    line.chooser = chooserOf(layersBefore(value), line.hasAlternative);
    if (line.chooser.isValid()) {
      if (const auto index = m_cursor.assignedAt(line.chooser)) line.chosenAt = *index + 1;
    }
    line.sentence = culpritSentence(line);
    m_card.culprits.push_back(std::move(line));
  }

  Sentence culpritSentence(const CulpritLine& line) const {
    auto s = sentence();
    s.value(line.value).text(fmt::format(" is {}", inWords(line.placement, m_graph.shapeOf(line.value))));
    if (!line.chooser.isValid() || !line.chosenAt)
      return s.text(": it comes from inputs and constants, which are replicated.").finish();
    const bool isDirect = line.chooser == deciderOf(line.value);
    s.text(isDirect ? ": " : ". It follows from ").node(line.chooser);
    if (const auto id = m_cursor.choiceOf(line.chooser)) {
      const Choice& choice = m_trace.choice(*id);
      s.text(fmt::format("{} chose {} ({}) at ", isDirect ? "" : ", which", nameOf(choice, m_problem.context.worldSize),
                         choice.reason));
    }
    s.step(*line.chosenAt);
    const std::size_t count = candidateCount(line.chooser);
    if (count <= 1) return s.text(", its only candidate.").finish();
    const auto tries = pastTries(m_cursor, line.chooser);
    const std::size_t ordinal = tries.empty() ? 0 : tries.back().ordinal;
    return s.text(fmt::format(", candidate {} of {}.", ordinal + 1, count)).finish();
  }

  void addTried() {
    const auto reads = readsAt(m_cursor, m_card.node);
    if (!reads) return;
    std::vector<std::string> pinned;
    for (const RuledOut& out : candidatesOf(m_problem, m_variables, m_card.node, *reads).ruledOut) {
      if (out.pin.empty()) {
        m_card.tried.push_back(
            sentence().text(fmt::format("{} {}.", nameOf(out.choice, m_problem.context.worldSize), out.why)).finish());
      } else {
        pinned.push_back(nameOf(out.choice, m_problem.context.worldSize));
      }
    }
    if (!pinned.empty()) {
      m_card.tried.push_back(
          sentence()
              .text(fmt::format("{} {} removed by a pin.", joined(pinned, "and"), pinned.size() == 1 ? "is" : "are"))
              .finish());
    }
    if (!isLayer(m_card.node)) return;
    const auto options = layerStrategiesOf(m_problem, m_variables, m_card.node);
    for (const rules::Refusal& refusal : options.refused) {
      m_card.tried.push_back(
          sentence()
              .text(fmt::format("{} is impossible: {}.", rules::toText(refusal.strategy), refusal.reason))
              .finish());
    }
  }

  /// Every step from `first` on that the conflict depends on.
  std::set<std::uint32_t> involvedSince(NodeId first) const {
    std::set<std::uint32_t> involved;
    std::vector<NodeId> open;
    const auto push = [&](ValueId v) {
      const NodeId n = deciderOf(v);
      if (n >= first && involved.insert(n.raw()).second) open.push_back(n);
    };
    for (ValueId v : m_card.conflict.culprits) push(v);
    while (!open.empty()) {
      const NodeId n = open.back();
      open.pop_back();
      for (const Read& read : m_variables.reads(n)) push(read.value);
    }
    return involved;
  }

  /// Why the search goes back to that decision, if the trace names its engine. Backtracks in a trace of `optimal` come
  /// from `learning`, which explains why there is no plan.
  std::string_view whyThere() const {
    const auto engine = m_trace.engine();
    if (!engine) return " and";
    return engine == Engine::Reference
               ? ", its latest decision with a candidate left, and"
               : ", the latest decision that affects this conflict and has a candidate not known to fail, and";
  }

  void addGoesBack() {
    Event event;
    if (m_trace.read(m_card.step, {&event, 1}) != 1) return;
    if (event.type == EventType::Exhausted) {
      m_card.goesBack =
          sentence()
              .text("No earlier decision that affects this conflict has a candidate left, so there is no solution.")
              .finish();
      return;
    }
    if (event.type != EventType::Backtrack) return;
    m_card.target = NodeId(event.target);
    m_card.undone = event.detail;
    const auto involved = involvedSince(*m_card.target);
    std::uint32_t layers = 0;
    for (NodeId n : m_variables.deciders()) {
      if (n < *m_card.target || n >= m_card.node || !isLayer(n)) continue;
      ++layers;
      m_card.undoneUninvolved += !involved.contains(n.raw());
    }
    auto s = sentence();
    s.text("The search goes back to ").node(*m_card.target);
    s.text(fmt::format("{} undoes {} assignment{}", whyThere(), withThousands(m_card.undone),
                       m_card.undone == 1 ? "" : "s"));
    if (m_card.undoneUninvolved == layers && layers > 0) {
      s.text(". No layer among them affects this conflict");
    } else if (m_card.undoneUninvolved > 0) {
      s.text(fmt::format(". {} of the {} layers among them {} not affect this conflict", m_card.undoneUninvolved,
                         layers, m_card.undoneUninvolved == 1 ? "does" : "do"));
    }
    s.text(".");
    if (endsSolved()) s.text(" The search resolves this conflict on its own.");
    m_card.goesBack = s.finish();
  }

  /// Finds layers that split a value which should be replicated, and that could have kept it replicated.
  void addPinsToTry() {
    for (const CulpritLine& line : m_card.culprits) {
      if (!line.placement.isSplit() || !line.hasAlternative) continue;
      const auto reads = readsAt(m_cursor, line.chooser);
      const auto now = m_cursor.choiceOf(line.chooser);
      if (!reads || !now) continue;
      for (const Choice& choice : candidatesOf(m_problem, m_variables, line.chooser, *reads).open) {
        if (!choice.strategy || !choice.results.front().isReplicated() || choice == m_trace.choice(*now)) continue;
        std::string pin = demandFor(graph::layerName(m_graph, line.chooser), choice.strategy->strategy);
        auto& pins = m_card.pinsToTry;
        if (std::find(pins.begin(), pins.end(), pin) == pins.end()) pins.push_back(std::move(pin));
        break;
      }
    }
  }

  bool endsSolved() const {
    Event last;
    return m_trace.size() > 0 && m_trace.read(m_trace.size() - 1, {&last, 1}) == 1 && last.type == EventType::Solution;
  }

  const Cursor& m_cursor;
  const Trace& m_trace;
  const Variables& m_variables;
  const Problem& m_problem;
  const Graph& m_graph;
  ConflictCard m_card;
};

}  // namespace

std::optional<ConflictCard> conflictAt(const std::shared_ptr<const Trace>& trace, StepId event) {
  Event found;
  if (trace->read(event, {&found, 1}) != 1 || found.type != EventType::Conflict ||
      found.detail >= trace->conflictCount())
    return std::nullopt;
  Cursor cursor(trace);
  cursor.seek(event + 1);
  return CardMaker(cursor, found).run();
}

std::optional<ConflictCard> conflictAt(const Cursor& cursor) {
  const auto last = cursor.lastEvent();
  if (!last) return std::nullopt;
  const bool isAfter =
      last->type == EventType::Backtrack || last->type == EventType::Exhausted || last->type == EventType::Ended;
  if (isAfter && cursor.step() >= 2) return conflictAt(cursor.sharedTrace(), cursor.step() - 2);
  return conflictAt(cursor.sharedTrace(), cursor.step() - 1);
}

std::vector<Sentence> sentencesOf(const ConflictCard& card) {
  std::vector<Sentence> all{card.headline};
  for (const CulpritLine& line : card.culprits) all.push_back(line.sentence);
  all.insert(all.end(), card.tried.begin(), card.tried.end());
  if (!card.goesBack.empty()) all.push_back(card.goesBack);
  return all;
}

std::vector<StuckNode> stuck(const Trace& trace, const Progress& progress) {
  struct Count {
    std::uint64_t conflicts = 0;
    StepId first = 0;
  };
  std::vector<Count> byConflict;
  std::vector<Event> buffer(1 << 12);
  for (StepId at = 0; !progress.cancelled();) {
    const std::size_t got = trace.read(at, buffer);
    if (got == 0) break;
    for (std::size_t i = 0; i < got; ++i) {
      if (buffer[i].type != EventType::Conflict) continue;
      if (buffer[i].detail >= byConflict.size()) byConflict.resize(buffer[i].detail + 1);
      Count& count = byConflict[buffer[i].detail];
      if (count.conflicts++ == 0) count.first = at + i + 1;
    }
    at += got;
  }
  std::unordered_map<std::uint32_t, std::size_t> byNode;
  std::vector<StuckNode> nodes;
  std::vector<std::uint64_t> most;
  for (std::size_t i = 0; i < byConflict.size() && i < trace.conflictCount(); ++i) {
    const Count& count = byConflict[i];
    if (count.conflicts == 0) continue;
    const NodeId node = trace.conflict(ConflictId(i)).node;
    const auto [place, isNew] = byNode.try_emplace(node.raw(), nodes.size());
    if (isNew) {
      nodes.push_back({node, 0, ConflictId(i), count.first});
      most.push_back(0);
    }
    StuckNode& known = nodes[place->second];
    known.conflicts += count.conflicts;
    known.first = std::min(known.first, count.first);
    if (count.conflicts > most[place->second]) {
      most[place->second] = count.conflicts;
      known.mostFrequent = ConflictId(i);
    }
  }
  std::stable_sort(nodes.begin(), nodes.end(),
                   [](const StuckNode& a, const StuckNode& b) { return a.conflicts > b.conflicts; });
  return nodes;
}

}  // namespace cleave::solve
