#pragma once
/// Bytes as text (RFC 4648, with padding).
#include <optional>
#include <string>
#include <string_view>

namespace cleave {

std::string toBase64(std::string_view bytes);
/// nullopt for what `toBase64` does not write, so that no bytes have two texts.
std::optional<std::string> fromBase64(std::string_view text);

}  // namespace cleave
