#pragma once
/// Words and limits that the writer and the reader of plan files share. Internal to this room.
#include "plan/plan.h"

#include <optional>
#include <string_view>

namespace cleave::plan {

inline constexpr std::string_view kPlanSchema = "cleave.plan/1";

/// Limits on foreign plan files.
inline constexpr std::size_t kMaxPlanBytes = std::size_t{1} << 30;
inline constexpr int kMaxPlanDepth = 32;
inline constexpr int kMaxRanks = 4096;
inline constexpr std::size_t kMaxParameters = 1'000'000;

std::string_view kindText(graph::LayerKind kind);  ///< "linear", "embedding", "cross_entropy"
std::optional<graph::LayerKind> parseKind(std::string_view text);
std::string_view sourceText(graph::NodeKind kind);  ///< "input", "parameter", "constant"; "call"

}  // namespace cleave::plan
