#pragma once
/// The strategies and placements that the user chose in the legend.
#include <cstdint>
#include <optional>

#include "views/graph/model/split_counts.h"

namespace cleave::views {

/// The parts of the drawing shown at full strength. Nothing chosen: all parts.
struct SplitFilter {
  std::uint32_t splits = 0;  ///< bit per LayerSplit
  std::uint32_t tints = 0;   ///< bit per Tint
  bool isOn() const { return splits != 0 || tints != 0; }
  bool has(LayerSplit split) const { return splits & (1u << static_cast<int>(split)); }
  bool has(Tint tint) const { return tints & (1u << static_cast<int>(tint)); }
  /// A layer is shown if its strategy or its result's placement is chosen.
  bool dims(std::optional<LayerSplit> split, Tint tint) const {
    return isOn() && !(split && has(*split)) && !has(tint);
  }
  bool operator==(const SplitFilter&) const = default;
};

}  // namespace cleave::views
