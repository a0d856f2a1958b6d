#pragma once
/// The collective that belongs to a strategy (the table in strategy.h). Used for the options of layers, and to draw a
/// strategy without its option.
#include "rules/strategy.h"

namespace cleave::rules {

/// The collective on the layer's input, before the layer.
std::optional<CollectiveKind> collectiveBefore(Strategy strategy);
/// The collective on the layer's result, after the layer. A vocabulary-parallel loss runs it inside.
std::optional<CollectiveKind> collectiveAfter(Strategy strategy);

}  // namespace cleave::rules
