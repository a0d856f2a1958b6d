#pragma once
/// Escapes text from untrusted sources for a terminal. Codes that would move the cursor, change colours or hide text
/// are written as `\x1b`. Line ends and tabs stay.
#include <string>
#include <string_view>

namespace cleave {

std::string terminalText(std::string_view text);

}  // namespace cleave
