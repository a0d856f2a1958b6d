#include "base/quantities.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <iterator>

namespace cleave {

std::string counted(std::int64_t count, std::string_view one, std::string_view many) {
  if (count == 1) return fmt::format("1 {}", one);
  return many.empty() ? fmt::format("{} {}s", count, one) : fmt::format("{} {}", count, many);
}

std::string bytesText(std::int64_t bytes) {
  static constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  double size = static_cast<double>(bytes);
  std::size_t unit = 0;
  // Chooses the unit after rounding: 1023.9 KiB is 1 MiB, never "1024 KiB".
  while (std::abs(size) >= (unit == 0 ? 1024 : 1023.5) && unit + 1 < std::size(kUnits)) size /= 1024, ++unit;
  const double magnitude = std::abs(size);
  const bool isWhole = size == std::floor(size);
  const int decimals = unit == 0 || isWhole || magnitude >= 99.95 ? 0 : magnitude >= 9.995 ? 1 : 2;
  return fmt::format("{:.{}f} {}", size, decimals, kUnits[unit]);
}

std::optional<std::int64_t> parseBytes(std::string_view text) {
  struct Unit {
    std::string_view name;
    double bytes;
  };
  static constexpr std::array kUnits{Unit{"", 1},         Unit{"b", 1},       Unit{"k", 0x1p10},   Unit{"kb", 1e3},
                                     Unit{"kib", 0x1p10}, Unit{"m", 0x1p20},  Unit{"mb", 1e6},     Unit{"mib", 0x1p20},
                                     Unit{"g", 0x1p30},   Unit{"gb", 1e9},    Unit{"gib", 0x1p30}, Unit{"t", 0x1p40},
                                     Unit{"tb", 1e12},    Unit{"tib", 0x1p40}};
  std::string plain;
  for (const char c : text) {
    if (!std::isspace(static_cast<unsigned char>(c)))
      plain += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  double number = 0;
  const auto [rest, error] = std::from_chars(plain.data(), plain.data() + plain.size(), number);
  if (error != std::errc() || !std::isfinite(number) || number <= 0) return std::nullopt;
  const std::string_view name(rest, static_cast<std::size_t>(plain.data() + plain.size() - rest));
  const auto unit = std::find_if(kUnits.begin(), kUnits.end(), [&](const Unit& u) { return u.name == name; });
  if (unit == kUnits.end()) return std::nullopt;
  const double bytes = std::round(number * unit->bytes);
  if (bytes < 1 || bytes >= 0x1p62) return std::nullopt;
  return static_cast<std::int64_t>(bytes);
}

}  // namespace cleave
