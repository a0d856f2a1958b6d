#pragma once
/// Layers of a stack by one name: "model.layers.*.mlp.up_proj" for those that a library treats alike.
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace cleave::exchange {

/// What is said of a module or parameter, in the order of the model: {"model.layers.0.mlp.up_proj", "colwise"}.
using Said = std::vector<std::pair<std::string, std::string>>;

/// For readers that know numbers too: equal ones as `*`, the others by number.
Said foldedByNumber(const Said& said);

/// For readers that know `*` alone. Where layers of a stack differ, all are what most of them are: equal blocks can be.
struct FoldedByMost {
  Said said;
  /// What is given up: stack "model.layers.*", and the numbers of the layers that the plan has otherwise.
  std::vector<std::pair<std::string, std::vector<int>>> others;
};
FoldedByMost foldedByMost(const Said& said);

}  // namespace cleave::exchange
