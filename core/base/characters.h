#pragma once
/// Classes of ASCII characters. Unlike those of <cctype>, they do not depend on the locale.

#include <algorithm>
#include <string_view>

namespace cleave {

constexpr bool isAsciiDigit(char c) { return c >= '0' && c <= '9'; }
constexpr bool isAsciiLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
constexpr bool isAsciiLetterOrDigit(char c) { return isAsciiLetter(c) || isAsciiDigit(c); }
/// A digit of a hash in lower case.
constexpr bool isHexDigit(char c) { return isAsciiDigit(c) || (c >= 'a' && c <= 'f'); }

/// True if each character of `text` is a letter, a digit or one of `others`; also for an empty text.
constexpr bool hasOnlyLettersDigitsAnd(std::string_view others, std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [&](char c) { return isAsciiLetterOrDigit(c) || others.find(c) != std::string_view::npos; });
}

}  // namespace cleave
