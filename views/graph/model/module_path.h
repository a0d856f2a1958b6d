#pragma once
/// The parts of a module's path, "model.layers.3.self_attn".
#include <string_view>

namespace cleave::views {

/// "q_proj" of "model.layers.3.self_attn.q_proj".
std::string_view lastPart(std::string_view path);
/// The index that a part of a path is: 3 for "3"; -1: it is a name.
int listIndexOf(std::string_view part);

}  // namespace cleave::views
