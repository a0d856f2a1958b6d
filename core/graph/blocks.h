#pragma once
/// Where a model repeats itself, by the names of its modules.
#include <string>
#include <string_view>

namespace cleave::graph {

/// The outermost element of a list of modules that a module lies in: "model.layers.3" of "model.layers.3.mlp.up_proj",
/// "0" of "0.linear"; empty: it is in no list.
std::string blockPath(std::string_view module);

}  // namespace cleave::graph
