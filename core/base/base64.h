#pragma once
/// Bytes as text (RFC 4648, with padding).
#include <optional>
#include <string>
#include <string_view>

namespace cleave {

std::string toBase64(std::string_view bytes);
/// nullopt for text that `toBase64` never writes, so that each byte string has one text.
std::optional<std::string> fromBase64(std::string_view text);

}  // namespace cleave
