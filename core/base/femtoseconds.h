#pragma once
/// Predicted times as integers, so that sums do not depend on their order and equal times compare equal.
#include <fmt/format.h>

#include <compare>
#include <concepts>
#include <cstdint>
#include <limits>
#include <string>

namespace cleave {

__extension__ using Wide = __int128;

class Femtoseconds {
 public:
  constexpr Femtoseconds() = default;
  constexpr Femtoseconds(std::integral auto count) : m_count(count) {}
  constexpr Femtoseconds(Wide count) : m_count(count) {}
  Femtoseconds(double) = delete;
  /// Rounds to the nearest femtosecond. Times from 10^13 seconds on, and NaN, become 10^13 seconds, so that sums of
  /// millions of them fit.
  static Femtoseconds ofSeconds(double seconds);

  constexpr Wide count() const { return m_count; }
  explicit constexpr operator double() const { return static_cast<double>(m_count); }
  /// True if 64 bits hold it.
  constexpr bool isShort() const {
    return m_count >= std::numeric_limits<std::int64_t>::min() && m_count <= std::numeric_limits<std::int64_t>::max();
  }

  constexpr Femtoseconds& operator+=(Femtoseconds other) { return m_count += other.m_count, *this; }
  constexpr Femtoseconds operator-() const { return Femtoseconds(-m_count); }
  friend constexpr Femtoseconds operator+(Femtoseconds a, Femtoseconds b) {
    return Femtoseconds(a.m_count + b.m_count);
  }
  friend constexpr Femtoseconds operator-(Femtoseconds a, Femtoseconds b) {
    return Femtoseconds(a.m_count - b.m_count);
  }
  friend constexpr bool operator==(Femtoseconds a, Femtoseconds b) { return a.m_count == b.m_count; }
  friend constexpr auto operator<=>(Femtoseconds a, Femtoseconds b) {
    return a.m_count < b.m_count   ? std::strong_ordering::less
           : a.m_count > b.m_count ? std::strong_ordering::greater
                                   : std::strong_ordering::equal;
  }

 private:
  Wide m_count = 0;
};

/// All digits, without rounding.
std::string toText(Femtoseconds time);

/// Value for a JSON tree: an integer if 64 bits hold it, else a real.
template <class Json>
Json jsonOf(Femtoseconds time) {
  return time.isShort() ? Json(static_cast<std::int64_t>(time.count())) : Json(static_cast<double>(time));
}

}  // namespace cleave

template <>
struct fmt::formatter<cleave::Femtoseconds> : fmt::formatter<std::string> {
  template <class Context>
  auto format(cleave::Femtoseconds time, Context& context) const {
    return fmt::formatter<std::string>::format(cleave::toText(time), context);
  }
};
