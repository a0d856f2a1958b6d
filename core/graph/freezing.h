#pragma once
/// Which parameters training changes, as patterns over their names.
///
///     CLEAVE_TRY_VOID(freeze(graph, {.freeze = {"model.embed_tokens.*"}}));
#include "graph/graph.h"

#include <string>
#include <vector>

namespace cleave::graph {

/// `*` matches any characters. What a program marks as frozen stays so, whatever the patterns say.
struct Freezing {
  std::vector<std::string> freeze;     ///< parameters that keep their values
  std::vector<std::string> trainOnly;  ///< the only ones that may change; empty: any may
  bool isAsked() const { return !freeze.empty() || !trainOnly.empty(); }
  bool operator==(const Freezing&) const = default;
};

/// Freezes parameters of the graph by any of their names. BadUsage, a sentence, for a pattern that matches no
/// parameter, or when no parameter is left to train.
Result<void> freezeParameters(Graph& graph, const Freezing& asked);

}  // namespace cleave::graph
