#pragma once
/// What the dimensions of a model's values mean, where its operators tell: layers make features and vocabularies,
/// inputs bring batch and sequence, and cutting features into (heads, head size) makes heads. Followed forwards through
/// operators by their shapes; what an operator mixes is unknown from there on, and nothing is guessed from a size
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

/// By ValueId, one for each dimension. Linear in operators.
std::vector<std::vector<Meaning>> dimensionMeanings(const Graph& graph);

}  // namespace cleave::graph
