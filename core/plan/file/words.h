#pragma once
/// Texts that the writer and the reader of plan files share. Internal to this room.
#include "plan/plan.h"

#include <optional>
#include <string_view>

namespace cleave::plan {

std::string_view kindText(graph::LayerKind kind);  ///< "linear", "embedding", "cross_entropy"
std::optional<graph::LayerKind> parseKind(std::string_view text);
std::string_view changeText(solve::ChangeKind kind);  ///< "add_pin"
std::optional<solve::ChangeKind> parseChange(std::string_view text);
std::string_view fitText(BudgetFit fit);  ///< "fits"
std::optional<BudgetFit> parseFit(std::string_view text);
std::string_view sourceText(graph::NodeKind kind);  ///< "input", "parameter", "constant"; "call"

}  // namespace cleave::plan
