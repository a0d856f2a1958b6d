#pragma once
/// Graphviz text as a picture. Graphviz runs as a process of its own (`dot`, looked for in PATH): it can neither be
/// interrupted nor trusted with graphs of any size.
#include "base/progress.h"
#include "base/result.h"

#include <string>
#include <string_view>

namespace cleave::exchange {

/// `format`: "svg", "pdf" or "png". Environment where there is no Graphviz, or it fails; Cancelled.
Result<std::string> drawn(std::string_view dot, std::string_view format, const Progress& progress);

}  // namespace cleave::exchange
