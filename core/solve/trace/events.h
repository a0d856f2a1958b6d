#pragma once
/// The events that an engine reports to a sink while it searches, 16 bytes each.
#include "solve/problem/solve_result.h"

#include <cstdint>
#include <optional>
#include <string_view>

namespace cleave::solve {

enum class EventType : std::uint8_t {
  Visit,      ///< the search arrives at `node`; `detail` is the number of candidates
  Try,        ///< `node` tries candidate `ordinal`; `detail` is a ChoiceId
  Conflict,   ///< `node` has no candidate left; `detail` is a ConflictId
  Backtrack,  ///< the choices of `target` and of all later nodes are undone; `detail` is their number
  Solution,   ///< every node has a choice
  Exhausted,  ///< no candidate is left at any node: there is no solution
  Stopped,    ///< the user or the sink stopped the search
  Ended,      ///< the search stopped at its limits without a solution, so one may still exist
};
inline constexpr std::size_t kEventTypes = 8;
/// The last event of a search.
constexpr bool isEnd(EventType type) {
  return type == EventType::Solution || type == EventType::Exhausted || type == EventType::Stopped ||
         type == EventType::Ended;
}
std::string_view toText(EventType type);  ///< "visit", "try", ...
std::optional<EventType> parseEventType(std::string_view text);

/// Only Try and Backtrack change assignments. After Exhausted the last assignments remain, so that they can be
/// inspected.
struct Event {
  EventType type = EventType::Visit;
  std::uint8_t reserved = 0;
  std::uint16_t ordinal = 0;  ///< Try: index of the candidate
  std::uint32_t node = 0;     ///< NodeId
  std::uint32_t detail = 0;   ///< Try: ChoiceId; Conflict: ConflictId; Visit: candidates; Backtrack: decisions undone
  std::uint32_t target = 0;   ///< Backtrack: NodeId whose next candidate is tried; else 0
  bool operator==(const Event&) const = default;
};
static_assert(sizeof(Event) == 16);

using StepId = std::uint64_t;  ///< index of an event

/// Receives the events of an engine on the engine's thread. `false` from `onEvent` stops the search.
class TraceSink {
 public:
  virtual ~TraceSink() = default;
  /// Reports the requested engine before all other calls.
  virtual void onStart(Engine) {}
  virtual ChoiceId internChoice(Choice choice) = 0;
  virtual ConflictId internConflict(ConflictRecord conflict) = 0;
  virtual bool onEvent(const Event& event) = 0;
};

}  // namespace cleave::solve
