#include "solve/trace/events.h"

#include <algorithm>
#include <array>

namespace cleave::solve {
namespace {

constexpr std::array<std::string_view, kEventTypes> kEventNames{"visit",    "try",       "conflict", "backtrack",
                                                                "solution", "exhausted", "stopped",  "ended"};

}  // namespace

std::string_view toText(EventType type) { return kEventNames[static_cast<std::size_t>(type)]; }

std::optional<EventType> parseEventType(std::string_view text) {
  const auto* const found = std::find(kEventNames.begin(), kEventNames.end(), text);
  if (found == kEventNames.end()) return std::nullopt;
  return static_cast<EventType>(found - kEventNames.begin());
}

}  // namespace cleave::solve
