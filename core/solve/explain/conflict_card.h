#pragma once
/// Explains a conflict of a search, for the conflict card: what the culprits are, which free choices led to them, and
/// where the search continues. Each call costs a few seeks, far less than a frame.
///
///     Cursor cursor(trace);
///     cursor.seek(*cursor.next(EventType::Conflict));
///     for (const Sentence& s : sentencesOf(*conflictAt(cursor))) fmt::print("{}\n", plainText(s));
#include "solve/explain/sentences.h"
#include "solve/trace/cursor.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace cleave::solve {

/// One operand that causes a conflict, and the free choice that led to it.
struct CulpritLine {
  ValueId value;
  Placement placement;
  NodeId chooser;                  ///< nearest layer before it with a choice; invalid: the value comes from an input
  std::optional<StepId> chosenAt;  ///< position just after the layer's Try
  bool hasAlternative = false;     ///< the layer had another candidate at that step
  Sentence sentence;
};

struct ConflictCard {
  StepId step = 0;  ///< position just after the Conflict event
  NodeId node;
  ConflictRecord conflict;
  Sentence headline;  ///< the conflict in one sentence
  std::vector<CulpritLine> culprits;
  std::vector<Sentence> tried;         ///< other choices of this node, and why they fail
  Sentence goesBack;                   ///< where the search continues and how it ends; empty until both are known
  std::optional<NodeId> target;        ///< node that the search goes back to
  std::uint32_t undone = 0;            ///< number of undone assignments
  std::uint32_t undoneUninvolved = 0;  ///< undone layer choices that are unrelated to the conflict
  /// Pins that keep the culprits' layers replicated, as Pin::parse reads them. explain/remedy.h tries each of them
  /// before it is offered.
  std::vector<std::string> pinsToTry;
};
/// The conflict at the cursor's last event, or the conflict before it when that event is its Backtrack; else nullopt.
std::optional<ConflictCard> conflictAt(const Cursor& cursor);
/// The conflict of the event with this index.
std::optional<ConflictCard> conflictAt(const std::shared_ptr<const Trace>& trace, StepId event);
/// All sentences of the card, top to bottom; for tests.
std::vector<Sentence> sentencesOf(const ConflictCard& card);

/// A node at which the search failed, with the number of failures.
struct StuckNode {
  NodeId node;
  std::uint64_t conflicts = 0;
  ConflictId mostFrequent;
  StepId first = 0;  ///< position just after its first conflict
};
/// Nodes with conflicts, the most frequent first; for tests. Reads every event.
std::vector<StuckNode> stuck(const Trace& trace, const Progress& progress = {});

}  // namespace cleave::solve
