#pragma once
/// The meanings of the dimensions of a model's values. Layers make features and vocabularies, inputs have batch and
/// sequence, and a view of features as (heads, head size) makes heads. The meanings follow operators forwards by their
/// shapes. They are unknown after an operator that mixes dimensions, and are never guessed from a size alone.
/// alone.
///
///     const auto meanings = dimensionMeanings(graph);
///     meanings[value.index()][1] == Meaning::Heads;   // [batch, heads, sequence, head size]
#include "graph/graph.h"

#include <string_view>
#include <vector>

namespace cleave::graph {

enum class Meaning : std::uint8_t { Unknown, Batch, Sequence, Tokens, Heads, HeadSize, Features, Vocabulary, Experts };
inline constexpr int kMeanings = 9;
std::string_view toText(Meaning meaning);  ///< "heads", "head size", "features"...; empty for Unknown

/// By ValueId, one meaning for each dimension. Runs in time linear in the number of operators.
std::vector<std::vector<Meaning>> dimensionMeanings(const Graph& graph);

}  // namespace cleave::graph
