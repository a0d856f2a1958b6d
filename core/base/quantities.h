#pragma once
/// Texts for sizes and counts: one spelling for the command line, the window and the core's messages.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace cleave {

/// "1 rank", "2 ranks", "0 tries"; `many` is the plural if it is not one plus "s".
std::string counted(std::int64_t count, std::string_view one, std::string_view many = {});
/// Three significant digits, whole multiples without decimals: "1.25 GiB", "64 MiB", "912 B", "-3.50 KiB".
std::string bytesText(std::int64_t bytes);
/// "80 GiB", "80GB", "1.5 TiB", "4096": binary and decimal units; a plain number is in bytes. nullopt: not a size, or
/// not positive.
std::optional<std::int64_t> parseBytes(std::string_view text);

}  // namespace cleave
