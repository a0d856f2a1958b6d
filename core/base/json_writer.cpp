#include "base/json_writer.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdint>
#include <iterator>

namespace cleave {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

/// Length of the valid UTF-8 sequence at the start of `text` (Unicode 15, table 3-7); 0: it is not valid.
std::size_t sequenceLength(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<std::uint8_t>(text[i]); };
  const std::uint8_t lead = byte(0);
  if (lead < 0x80) return 1;
  const std::size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || text.size() < length) return 0;
  const std::uint8_t second = byte(1);
  const std::uint8_t lowest = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
  const std::uint8_t highest = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
  if (second < lowest || second > highest) return 0;
  for (std::size_t i = 2; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
  }
  return length;
}

void appendEscaped(std::string& out, char c) {
  switch (c) {
    case '"': out += "\\\""; break;
    case '\\': out += "\\\\"; break;
    case '\n': out += "\\n"; break;
    case '\r': out += "\\r"; break;
    case '\t': out += "\\t"; break;
    default: fmt::format_to(std::back_inserter(out), "\\u{:04x}", static_cast<unsigned char>(c));
  }
}

bool isPlain(char c) {
  return static_cast<unsigned char>(c) >= 0x20 && static_cast<unsigned char>(c) < 0x7F && c != '"' && c != '\\';
}

}  // namespace

void JsonWriter::appendString(std::string_view text) {
  m_text += '"';
  while (!text.empty()) {
    std::size_t plain = 0;
    while (plain < text.size() && isPlain(text[plain])) ++plain;
    m_text += text.substr(0, plain);
    text.remove_prefix(plain);
    if (text.empty()) break;
    const std::size_t length = sequenceLength(text);
    if (length > 1) {
      m_text += text.substr(0, length);
    } else if (length == 1) {
      appendEscaped(m_text, text[0]);
    } else {
      m_text += kReplacement;
    }
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
  m_text += '"';
}

void JsonWriter::milliseconds(double number) { raw(fmt::format("{:.3f}", number)); }

void JsonWriter::real(double number) {
  if (!std::isfinite(number)) return value(std::isnan(number) ? "nan" : number > 0 ? "inf" : "-inf");
  separate();
  char digits[40];
  const std::string_view text(digits, std::to_chars(digits, digits + sizeof digits, number).ptr);
  m_text += text;
  if (text.find_first_of(".e") == std::string_view::npos) m_text += ".0";
}

void JsonWriter::hex(std::span<const std::byte> data) {
  static constexpr char kDigits[] = "0123456789abcdef";
  separate();
  m_text += '"';
  for (std::byte b : data) {
    m_text += kDigits[std::to_integer<int>(b) >> 4];
    m_text += kDigits[std::to_integer<int>(b) & 15];
  }
  m_text += '"';
}

}  // namespace cleave
