#pragma once
/// The repeated blocks of a model, from the names of its modules.
#include <string>
#include <string_view>

namespace cleave::graph {

/// The outermost element of a module list that contains the module: "model.layers.3" for "model.layers.3.mlp.up_proj",
/// "0" for "0.linear". Empty if no list contains it.
std::string blockPath(std::string_view module);

}  // namespace cleave::graph
