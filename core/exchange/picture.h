#pragma once
/// Renders Graphviz text as a picture. Graphviz (`dot` in PATH) runs in a separate process, because it cannot be
/// interrupted and may fail on large graphs.
#include "base/progress.h"
#include "base/result.h"

#include <string>
#include <string_view>

namespace cleave::exchange {

/// `format`: "svg", "pdf" or "png". Environment if Graphviz is missing or fails; Cancelled.
Result<std::string> drawn(std::string_view dot, std::string_view format, const Progress& progress);

}  // namespace cleave::exchange
