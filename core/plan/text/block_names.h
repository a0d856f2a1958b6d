#pragma once
/// One name for equal parts of repeated blocks: "model.layers.{0-2,5}.mlp.up_proj".
#include <string>
#include <utility>
#include <vector>

namespace cleave::plan {

/// "model.layers.7.mlp.up_proj" → "model.layers.#.mlp.up_proj" and 7; -1 if no part is a number. Only the first number
/// is replaced.
std::pair<std::string, int> foldIndex(const std::string& name);

/// "model.layers.#.mlp.up_proj" and {0, 1, 2, 5} → "model.layers.{0-2,5}.mlp.up_proj".
std::string foldedName(std::string pattern, const std::vector<int>& indices);

}  // namespace cleave::plan
