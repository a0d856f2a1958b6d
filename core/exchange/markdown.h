#pragma once
/// Text for tables of Markdown. Internal to this room.
#include <string>
#include <string_view>

namespace cleave::exchange {

std::string inCell(std::string_view text);  ///< on one line, with no bar that ends the cell
std::string inCode(std::string_view text);

}  // namespace cleave::exchange
