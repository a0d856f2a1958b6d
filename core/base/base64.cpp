#include "base/base64.h"

#include <array>
#include <cstdint>

namespace cleave {
namespace {

constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr std::uint8_t kNoDigit = 0xFF;

constexpr std::array<std::uint8_t, 256> kValues = [] {
  std::array<std::uint8_t, 256> values{};
  values.fill(kNoDigit);
  for (std::size_t i = 0; i < kDigits.size(); ++i)
    values[static_cast<unsigned char>(kDigits[i])] = static_cast<std::uint8_t>(i);
  return values;
}();

std::uint32_t byteAt(std::string_view bytes, std::size_t at) {
  return at < bytes.size() ? static_cast<unsigned char>(bytes[at]) : 0;
}

}  // namespace

std::string toBase64(std::string_view bytes) {
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t at = 0; at < bytes.size(); at += 3) {
    const std::uint32_t three = byteAt(bytes, at) << 16 | byteAt(bytes, at + 1) << 8 | byteAt(bytes, at + 2);
    for (const int shift : {18, 12, 6, 0}) text += kDigits[three >> shift & 63];
  }
  const std::size_t padding = (3 - bytes.size() % 3) % 3;
  text.replace(text.size() - padding, padding, padding, '=');
  return text;
}

std::optional<std::string> fromBase64(std::string_view text) {
  if (text.size() % 4 != 0) return std::nullopt;
  const std::size_t padding = text.ends_with("==") ? 2 : text.ends_with('=') ? 1 : 0;
  std::string bytes;
  bytes.reserve(text.size() / 4 * 3);
  std::uint32_t four = 0;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const bool isPadding = at >= text.size() - padding;
    const std::uint8_t value = isPadding ? 0 : kValues[static_cast<unsigned char>(text[at])];
    if (value == kNoDigit) return std::nullopt;
    four = four << 6 | value;
    if (at % 4 != 3) continue;
    for (const int shift : {16, 8, 0}) bytes += static_cast<char>(four >> shift & 0xFF);
    four = 0;
  }
  // Unused bits after the last byte must be 0.
  for (std::size_t i = 0; i < padding; ++i) {
    if (bytes.back() != 0) return std::nullopt;
    bytes.pop_back();
  }
  return bytes;
}

}  // namespace cleave
