#pragma once
#include "solve/problem/choice.h"

namespace cleave::plan {

/// True if no rank has the full weight of the layer, or the full logits of a loss.
bool splitsWeight(const solve::Choice& choice, int ranks);
/// True if no rank computes the full result.
bool splitsWork(const solve::Choice& choice, int ranks);

}  // namespace cleave::plan
