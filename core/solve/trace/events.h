#pragma once
/// What an engine reports while it searches: events of 16 bytes, to a sink that it was handed.
#include "solve/problem/solve_result.h"

#include <cstdint>
#include <optional>
#include <string_view>

namespace cleave::solve {

enum class EventType : std::uint8_t {
  Visit,      ///< the search arrives at `node`; `count` candidates are open
  Try,        ///< `node` takes candidate `ordinal`; `detail` is a ChoiceId
  Conflict,   ///< no (further) candidate of `node` holds; `detail` is a ConflictId
  Backtrack,  ///< all nodes after `target` (in order), and the choice of `target`, are undone; `count` decisions undone
  Solution,   ///< every node has a choice
  Exhausted,  ///< no candidate is left anywhere: there is no solution
  Stopped,    ///< the user stopped the search here
  Ended,      ///< the search ended at its limits: no solution was found, and that there is none was not shown
};
inline constexpr std::size_t kEventTypes = 8;
/// The last event of a search.
constexpr bool isEnd(EventType type) {
  return type == EventType::Solution || type == EventType::Exhausted || type == EventType::Stopped ||
         type == EventType::Ended;
}
std::string_view toText(EventType type);  ///< "visit", "try", ...
std::optional<EventType> parseEventType(std::string_view text);

/// Only Try and Backtrack change what is assigned; after Exhausted the last attempt stays, to be looked at.
struct Event {
  EventType type = EventType::Visit;
  std::uint8_t reserved = 0;
  std::uint16_t ordinal = 0;  ///< Try: position among the node's candidates
  std::uint32_t node = 0;     ///< NodeId
  std::uint32_t detail = 0;   ///< Try: ChoiceId; Conflict: ConflictId; Visit: candidates; Backtrack: decisions undone
  std::uint32_t target = 0;   ///< Backtrack: NodeId gone back to (its next candidate is tried); else 0
  bool operator==(const Event&) const = default;
};
static_assert(sizeof(Event) == 16);

using StepId = std::uint64_t;  ///< index of an event

/// Where an engine reports to. Called from the engine's thread. `false` from `onEvent` stops the search.
class TraceSink {
 public:
  virtual ~TraceSink() = default;
  /// The engine that was asked, before anything else.
  virtual void onStart(Engine) {}
  virtual ChoiceId internChoice(Choice choice) = 0;
  virtual ConflictId internConflict(ConflictRecord conflict) = 0;
  virtual bool onEvent(const Event& event) = 0;
};

}  // namespace cleave::solve
