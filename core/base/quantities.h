#pragma once
/// How sizes are written, in every program: one spelling for the command line, the window and the core's sentences.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace cleave {

/// Three significant digits, whole multiples without decimals: "1.25 GiB", "64 MiB", "912 B", "-3.50 KiB".
std::string bytesText(std::int64_t bytes);
/// "80 GiB", "80GB", "1.5 TiB", "4096": binary and decimal units, a plain number means bytes. nullopt: no such size, or
/// not positive.
std::optional<std::int64_t> parseBytes(std::string_view text);

}  // namespace cleave
