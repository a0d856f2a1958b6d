#pragma once
/// Escapes text for Markdown tables. Internal to this room.
#include <string>
#include <string_view>

namespace cleave::exchange {

std::string inCell(std::string_view text);  ///< on one line, with bars escaped so that they do not end the cell
std::string inCode(std::string_view text);

}  // namespace cleave::exchange
