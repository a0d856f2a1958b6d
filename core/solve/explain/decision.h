#pragma once
/// Why a node is as it is at one moment of a search, and what a conflict means: the decision panel and the conflict
/// card.
///
/// Sentences are made of parts; a part that speaks of a value, a node or a moment carries a link, so that a view can
/// make it clickable and a terminal can print it plainly. Written for a reader who is new to tensor parallelism. Reads
/// a trace that may still grow; asks the rules again for what was left out. Each call costs a few seeks: well under a
/// frame.
///
///     Cursor cursor(trace);
///     cursor.seek(*cursor.next(EventType::Conflict));
///     for (const Sentence& s : sentencesOf(*conflictAt(cursor))) fmt::print("{}\n", plainText(s));
#include "solve/trace/cursor.h"

#include <variant>

namespace cleave::solve {

/// Where a part of a sentence leads: to a value, to a node, or to a position for Cursor::seek.
struct SeekTo {
  StepId step = 0;
  bool operator==(const SeekTo&) const = default;
};
struct SentencePart {
  std::string text;
  std::variant<std::monostate, ValueId, NodeId, SeekTo> link;
};
using Sentence = std::vector<SentencePart>;
std::string plainText(const Sentence& sentence);

// ---- one decision
// ----------------------------------------------------------------------------------------------------

enum class Fate : std::uint8_t {
  Chosen,      ///< in force at this moment
  Failed,      ///< tried since the search last arrived here, and given up
  Open,        ///< not tried yet
  DoesNotFit,  ///< its operands are not placed as it needs them
  Pinned,      ///< removed by a pin
  Refused,     ///< the sizes forbid it (layers)
  Skipped,     ///< not tried: a search that learns has shown before that it fails under these placements
  Outweighed,  ///< not tried: it fits here; the engine compares whole plans, and took one without it or found none with
               ///< it
};
std::string_view toText(Fate fate);  ///< "chosen", "failed", "open", "does not fit", "removed by a pin", "sizes forbid
                                     ///< it", "skipped", "not taken"

struct CandidateFate {
  Fate fate = Fate::Open;
  std::string name;                ///< "column", or "S(2)" where the node is no layer
  std::optional<Choice> choice;    ///< nullopt: Refused
  std::string why;                 ///< its reason, or why it was left out
  std::optional<StepId> triedAt;   ///< Chosen, Failed: position just after its Try
  std::optional<StepId> failedAt;  ///< Failed: position just after the last conflict under it
  std::string conflict;            ///< Failed: that conflict
  std::string pin;                 ///< Pinned: text of the pin
};

struct OperandState {
  ValueId value;
  std::string role;                    ///< "input", "weight", "labels"; "" for an ordinary operand
  std::optional<Placement> placement;  ///< nullopt: not assigned at this moment
  std::optional<StepId> setAt;         ///< position just after the Try that placed it
};

struct Decision {
  NodeId node;
  bool isLayer = false;
  std::string title;  ///< "`lm_head` is column: ..." in one line
  std::optional<ChoiceId> choice;
  std::optional<StepId> setAt;            ///< position just after its Try
  std::vector<CandidateFate> candidates;  ///< in the order of the search; then what was left out
  std::vector<OperandState> operands;
  std::vector<Sentence> sentences;  ///< what was decided, from what, what else there was
};
/// The decision about `node` at the cursor's position. For a parameter that a layer owns: the layer's decision; for a
/// node that the graph does not have: nothing.
Decision decisionAt(const Cursor& cursor, NodeId node);

// ---- one conflict
// ----------------------------------------------------------------------------------------------------

/// One operand that causes a conflict, and the free choice behind it.
struct CulpritLine {
  ValueId value;
  Placement placement;
  NodeId chooser;                  ///< nearest layer before it that decides; invalid: none, it comes from an input
  std::optional<StepId> chosenAt;  ///< position just after the layer's Try
  bool hasAlternative = false;     ///< the layer had another candidate there
  Sentence sentence;
};

struct ConflictCard {
  StepId step = 0;  ///< position just after the Conflict event
  NodeId node;
  ConflictRecord conflict;
  Sentence headline;  ///< what cannot be, in one sentence
  std::vector<CulpritLine> culprits;
  std::vector<Sentence> tried;         ///< what this node could have been otherwise
  Sentence goesBack;                   ///< where the search continues, and how it ends; empty while it is not known yet
  std::optional<NodeId> target;        ///< node gone back to
  std::uint32_t undone = 0;            ///< assignments taken back
  std::uint32_t undoneUninvolved = 0;  ///< of these, layers' choices that have nothing to do with the conflict
  /// Pins under which the culprits' layers leave replicated what they split, as Pin::parse reads them. What they bring
  /// has to be tried before it is offered (explain/remedy.h).
  std::vector<std::string> pinsToTry;
};
/// The conflict that the cursor just applied (or, right after its Backtrack, the one before); nullopt elsewhere.
std::optional<ConflictCard> conflictAt(const Cursor& cursor);
/// The conflict whose event has this index.
std::optional<ConflictCard> conflictAt(const std::shared_ptr<const Trace>& trace, StepId event);
/// The whole card, top to bottom; for tests, which compare it with what is written.
std::vector<Sentence> sentencesOf(const ConflictCard& card);

// ---- a search as a whole
// ---------------------------------------------------------------------------------------------

/// A node at which the search failed, and how often.
struct StuckNode {
  NodeId node;
  std::uint64_t conflicts = 0;
  ConflictId mostFrequent;
  StepId first = 0;  ///< position just after its first conflict
};
/// Nodes with conflicts, most often first; for tests. Reads every event.
std::vector<StuckNode> stuck(const Trace& trace, const Progress& progress = {});

}  // namespace cleave::solve
