#pragma once
/// Explains the decision about a node at one moment of a search, for the decision panel. The functions read a trace
/// that may still grow, and apply the rules again to explain candidates that were left out. Each call costs a few
/// seeks, far less than a frame.
///
///     for (const Sentence& s : decisionAt(cursor, node).sentences) fmt::print("{}\n", plainText(s));
#include "solve/explain/sentences.h"
#include "solve/trace/cursor.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace cleave::solve {

enum class CandidateState : std::uint8_t {
  Chosen,      ///< in force at this moment
  Failed,      ///< tried since the search last arrived here, then failed
  Open,        ///< not tried yet
  DoesNotFit,  ///< its operands have other placements than it needs
  Pinned,      ///< removed by a pin
  Refused,     ///< the sizes forbid it (layers)
  Skipped,     ///< not tried: a learning search already showed that it fails with these placements
  Outweighed,  ///< not tried, although it fits: the engine compares complete plans and chose one without it, or found
               ///< no plan with it
};
std::string_view toText(CandidateState state);  ///< "chosen", "failed", "open", "does not fit", "removed by a pin",
                                                ///< "sizes forbid it", "skipped", "not taken"

struct CandidateEntry {
  CandidateState state = CandidateState::Open;
  std::string name;                ///< "column", or "S(2)" for a node that is not a layer
  std::optional<Choice> choice;    ///< nullopt: Refused
  std::string why;                 ///< reason of the candidate, or why it was left out
  std::optional<StepId> triedAt;   ///< Chosen, Failed: position just after its Try
  std::optional<StepId> failedAt;  ///< Failed: position just after the last conflict under it
  std::string conflict;            ///< Failed: text of that conflict
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
  std::optional<StepId> setAt;             ///< position just after its Try
  std::vector<CandidateEntry> candidates;  ///< in the order of the search, then those that were left out
  std::vector<OperandState> operands;
  std::vector<Sentence> sentences;  ///< the decision, its operands, the other candidates
};
/// The decision about `node` at the cursor's position. A parameter that a layer owns gets the layer's decision. The
/// result is empty for a node that the graph does not have.
Decision decisionAt(const Cursor& cursor, NodeId node);

}  // namespace cleave::solve
