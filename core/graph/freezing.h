#pragma once
/// The parameters that training changes, selected by patterns over their names.
///
///     CLEAVE_TRY_VOID(freeze(graph, {.freeze = {"model.embed_tokens.*"}}));
#include "graph/graph.h"

#include <string>
#include <vector>

namespace cleave::graph {

/// `*` matches any characters. Patterns cannot unfreeze a parameter that the program marks as frozen.
struct Freezing {
  std::vector<std::string> freeze;     ///< parameters that keep their values
  std::vector<std::string> trainOnly;  ///< the only parameters that may change; empty: all may
  bool isAsked() const { return !freeze.empty() || !trainOnly.empty(); }
  bool operator==(const Freezing&) const = default;
};

/// Freezes the parameters of the graph whose names match. A pattern without a match gives BadUsage, and so does a graph
/// without a parameter left to train.
Result<void> freezeParameters(Graph& graph, const Freezing& asked);

}  // namespace cleave::graph
