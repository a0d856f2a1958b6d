#pragma once
/// Choices with redistributed results, for values that the user allows to be redistributed (Problem::redistributable).
///
/// A value computed as a plain even split may be gathered (S(d) to R, an all-gather). A replicated value may be cut
/// along any dimension that divides (R to S(d), no traffic). Other changes are not allowed, because they are not one
/// collective with the same program on all ranks.
#include "solve/problem/choice.h"
#include "solve/problem/variables.h"

namespace cleave::solve {

/// Placements after redistribution of a value with the placement `computed`.
std::vector<Placement> redistributed(const Placement& computed, const graph::Shape& shape, int ranks);

/// The choices `plain`, then every redistribution of them in the same order; at most kMostRedistributions choices.
inline constexpr std::size_t kMostRedistributions = 1024;
std::vector<Choice> withRedistributions(const Problem& problem, const Variables& variables, NodeId node,
                                        std::vector<Choice> plain);

/// "S(2)", or "S(2), then gathered (R)" and "R, then cut (S(1))" for a redistributed result.
std::string placementText(const Placement& computed, const Placement& seen);
std::string placementText(const Choice& choice, std::size_t result);

}  // namespace cleave::solve
