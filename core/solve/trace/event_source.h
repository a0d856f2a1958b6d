#pragma once
/// A readable sequence of events, which may still grow. All functions are safe while one thread appends.
#include "solve/trace/events.h"

#include <cstddef>
#include <span>

namespace cleave::solve {

/// Events to read at a time where all are read in turn.
inline constexpr std::size_t kReadEvents = 1 << 12;

class EventSource {
 public:
  virtual ~EventSource() = default;
  virtual StepId size() const = 0;
  /// Copies events [first, first + out.size()), or as many as there are, and returns their number.
  virtual std::size_t read(StepId first, std::span<Event> out) const = 0;
};

}  // namespace cleave::solve
