#pragma once
/// What a user reads where no plan was found that fits the memory budget. Internal to the room.
#include "solve/optimal/eliminated.h"

namespace cleave::solve::optimal {

/// Of the smallest plan that was found: what it needs, by kind, and what most of that is: weights that stay, or the
/// moment of a step at which the transient peak stands.
std::string overBudgetSentence(const Eliminated& optimum, const Found& found);

}  // namespace cleave::solve::optimal
