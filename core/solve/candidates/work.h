#pragma once
/// How much an explanation may do. Work is counted and not timed, so that a busy machine gives the same answer as an
/// idle one.
#include "base/progress.h"

#include <algorithm>

namespace cleave::solve {

/// What is known when work ends: an answer of three, never "no" for "not found in time".
enum class Answer : std::uint8_t { Holds, Fails, Unknown };

/// One unit is one event of a search, or one way to place what a node reads: some tenths of a microsecond.
inline constexpr std::uint64_t kDefaultWork = 20'000'000;

/// What is left to do; one thread. Over as well when the user asks to stop.
class Work {
 public:
  Work(std::uint64_t units, const Progress& progress) : m_all(units), m_left(units), m_progress(progress) {}
  bool isOver() const { return m_left == 0 || m_progress.cancelled(); }
  void spend(std::uint64_t units) { m_left -= std::min(units, m_left); }
  std::uint64_t left() const { return m_left; }
  std::uint64_t spent() const { return m_all - m_left; }
  const Progress& progress() const { return m_progress; }

 private:
  const std::uint64_t m_all;
  std::uint64_t m_left;
  const Progress& m_progress;
};

}  // namespace cleave::solve
