#include "base/terminal_text.h"

#include <fmt/format.h>

namespace cleave {

std::string terminalText(std::string_view text) {
  std::string safe;
  safe.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    // U+0080 to U+009F in UTF-8: the same control codes as single characters.
    const bool isC1 = byte == 0xC2 && i + 1 < text.size() && static_cast<unsigned char>(text[i + 1]) < 0xA0;
    const bool isC0 = (byte < 0x20 && byte != '\n' && byte != '\t') || byte == 0x7F;
    if (isC1)
      safe += fmt::format("\\x{:02x}", static_cast<unsigned char>(text[++i]));
    else if (isC0)
      safe += fmt::format("\\x{:02x}", byte);
    else
      safe += text[i];
  }
  return safe;
}

}  // namespace cleave
