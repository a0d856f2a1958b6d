#pragma once
/// Names for layers of a stack: "model.layers.*.mlp.up_proj" for those with the same style.
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace cleave::exchange {

/// Style or other text for each module or parameter, in the order of the model: {"model.layers.0.mlp.up_proj",
/// "colwise"}.
using NamedStyles = std::vector<std::pair<std::string, std::string>>;

/// For readers that support numbers: equal entries as `*`, the others by number.
NamedStyles foldedByNumber(const NamedStyles& said);

/// For readers that support only `*`. If the layers of a stack differ, all get the style of the majority; that is
/// always possible for equal blocks.
struct FoldedByMost {
  NamedStyles said;
  /// The loss of information: stack "model.layers.*", and the numbers of the layers that differ in the plan.
  std::vector<std::pair<std::string, std::vector<int>>> others;
};
FoldedByMost foldedByMost(const NamedStyles& said);

}  // namespace cleave::exchange
