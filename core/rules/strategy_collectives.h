#pragma once
/// Which collective a strategy owns (the table in strategies.h): for the options of layers, and for who draws a
/// strategy without one.
#include "rules/strategies.h"

namespace cleave::rules {

/// Of its input, before the layer.
std::optional<CollectiveKind> collectiveBefore(Strategy strategy);
/// Of its result, after the layer; of a vocabulary-parallel loss, inside it.
std::optional<CollectiveKind> collectiveAfter(Strategy strategy);

}  // namespace cleave::rules
