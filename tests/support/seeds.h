#pragma once
/// Seed and size of random tests, printed so that any run can be repeated.
///
///     CLEAVE_SEED=17            first seed; default: the same in every run
///     CLEAVE_RANDOM_SCALE=0.1   a tenth of the rounds (sanitizers); 20: twenty times as many; 0: one
///
///     for (const std::uint64_t seed : test::Seeds(1'000)) { ... }   // one model per seed
///     std::mt19937_64 random(test::seed());                         // one stream of numbers
///     for (const ValueId v : values) if (sample.takesNext()) { ... }  // test::Sample: all, unless scaled down
#include <QString>
#include <QtGlobal>
#include <algorithm>
#include <cstdint>
#include <ranges>

namespace cleave::test {

inline std::uint64_t chosenSeed(std::uint64_t otherwise) {
  bool isNumber = false;
  const std::uint64_t chosen = qEnvironmentVariable("CLEAVE_SEED").toULongLong(&isNumber);
  return isNumber ? chosen : otherwise;
}

/// The seed of a stream of random numbers. Prints it.
inline std::uint64_t seed(std::uint64_t otherwise = 1) {
  const std::uint64_t chosen = chosenSeed(otherwise);
  qInfo("CLEAVE_SEED=%llu", static_cast<unsigned long long>(chosen));
  return chosen;
}

/// `full` rounds, scaled; at least one.
inline std::uint64_t rounds(std::uint64_t full) {
  bool isNumber = false;
  const double scale = qEnvironmentVariable("CLEAVE_RANDOM_SCALE").toDouble(&isNumber);
  return isNumber ? std::max<std::uint64_t>(1, static_cast<std::uint64_t>(static_cast<double>(full) * scale)) : full;
}

/// Selects items from a long list: all by default; with a scale of 0.1 the first, the eleventh, ...
class Sample {
 public:
  bool takesNext() { return m_seen++ % m_stride == 0; }
  bool isFull() const { return m_stride == 1; }

 private:
  static constexpr std::uint64_t kOf = 1000;
  std::uint64_t m_seen = 0, m_stride = std::max<std::uint64_t>(1, kOf / rounds(kOf));
};

/// A range of consecutive seeds. Prints the first and the last one.
class Seeds {
 public:
  explicit Seeds(std::uint64_t full, std::uint64_t first = 1)
      : m_first(chosenSeed(first)), m_last(m_first + rounds(full) - 1), m_isFull(count() >= full) {
    qInfo("CLEAVE_SEED=%llu, to %llu", static_cast<unsigned long long>(m_first),
          static_cast<unsigned long long>(m_last));
  }
  std::uint64_t count() const { return m_last - m_first + 1; }
  /// True if the run is not scaled down, so that rare cases must occur.
  bool isFull() const { return m_isFull; }

  auto begin() const { return std::views::iota(m_first, m_last + 1).begin(); }
  auto end() const { return std::views::iota(m_first, m_last + 1).end(); }

 private:
  std::uint64_t m_first, m_last;
  bool m_isFull;
};

}  // namespace cleave::test
