#pragma once
/// The text for the user if the engine found no plan within the memory budget. Internal to the room.
#include "solve/optimal/eliminated.h"

namespace cleave::solve::optimal {

/// Describes the smallest plan found: its memory by part, then its largest weights, its transient peak, or both.
std::string overBudgetSentence(const Eliminated& optimum, const Found& found);

}  // namespace cleave::solve::optimal
