#pragma once
/// Text for a terminal, in which names of strangers may stand: what would move its cursor, change its colours or hide a
/// part of the text is written out as `\x1b`. Line ends and tabs stay.
#include <string>
#include <string_view>

namespace cleave {

std::string terminalText(std::string_view text);

}  // namespace cleave
