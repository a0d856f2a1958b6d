#pragma once
/// Writes JSON incrementally, so that a plan of 10,000 values needs no tree in memory.
///
/// The output is compact, with a line break before every item of the top-level object and of its lists: small files,
/// readable diffs. Strings are always written as valid UTF-8.
///
///     JsonWriter json;
///     json.beginObject();
///     json.key("ranks").value(2);
///     json.endObject();
#include "base/femtoseconds.h"

#include <charconv>
#include <concepts>
#include <span>
#include <string>
#include <string_view>

namespace cleave {

class JsonWriter {
 public:
  JsonWriter() { m_text.reserve(1 << 16); }
  void beginObject() { begin('{'); }
  void endObject() { end('}'); }
  void beginArray() { begin('['); }
  void endArray() { end(']'); }
  JsonWriter& key(std::string_view name) {
    separate();
    appendString(name);
    m_text += ':';
    m_afterKey = true;
    return *this;
  }
  void value(std::string_view text) {
    separate();
    appendString(text);
  }
  void value(const char* text) { value(std::string_view(text)); }
  void value(bool truth) { raw(truth ? "true" : "false"); }
  void value(std::integral auto number) {
    separate();
    char digits[24];
    m_text.append(digits, std::to_chars(digits, digits + sizeof digits, number).ptr);
  }
  /// An integer if 64 bits hold it, as most readers expect, else a real.
  void value(Wide number) {
    const bool isShort = Femtoseconds(number).isShort();
    isShort ? value(static_cast<std::int64_t>(number)) : real(static_cast<double>(number));
  }
  void value(Femtoseconds time) { value(time.count()); }
  /// Shortest text that reads back as the same number; "inf", "-inf" and "nan" as texts.
  void real(double number);
  void hex(std::span<const std::byte> data);
  /// A finite number with three decimals, for milliseconds and the like.
  void milliseconds(double number);
  void null() { raw("null"); }
  /// A text that is JSON already.
  void raw(std::string_view json) {
    separate();
    m_text += json;
  }
  void values(std::span<const std::int64_t> numbers) {
    beginArray();
    for (std::int64_t number : numbers) value(number);
    endArray();
  }
  std::string take() && { return std::move(m_text); }

 private:
  /// Depth up to which each item starts a line.
  static constexpr int kLineDepth = 2;

  void begin(char bracket) {
    separate();
    m_text += bracket;
    ++m_depth;
    m_isEmpty = true;
  }
  void end(char bracket) {
    if (m_depth <= kLineDepth && !m_isEmpty) m_text += '\n';
    m_text += bracket;
    --m_depth;
    m_isEmpty = false;
    if (m_depth == 0) m_text += '\n';
  }
  void separate() {
    if (m_afterKey) {
      m_afterKey = false;
      return;
    }
    if (!m_isEmpty && m_depth > 0) m_text += ',';
    if (m_depth > 0 && m_depth <= kLineDepth) m_text += '\n';
    m_isEmpty = false;
  }
  void appendString(std::string_view text);

  std::string m_text;
  int m_depth = 0;
  bool m_isEmpty = true, m_afterKey = false;
};

}  // namespace cleave
