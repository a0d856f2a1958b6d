#pragma once
/// The work limit of an explanation. It counts work instead of time, so that the answer does not depend on the load of
/// the machine.
#include "base/progress.h"

#include <algorithm>

namespace cleave::solve {

/// An answer under a work limit. Unknown means that the limit was reached.
enum class Answer : std::uint8_t { Holds, Fails, Unknown };

/// One unit is one event of a search, or one combination of operand placements: a few tenths of a microsecond.
inline constexpr std::uint64_t kDefaultWork = 20'000'000;

/// The remaining work. It also ends when the user cancels. Use it from one thread.
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
