#pragma once
/// What a choice may become when the user lets its values change their placement (Problem::redistributable).
///
/// A value computed as a plain even split may be gathered (S(d) to R, an all-gather), a whole one cut along any
/// dimension that divides (R to S(d), no traffic). Nothing else: no other change is one collective with the same
/// program on all ranks.
#include "solve/problem/choice.h"
#include "solve/problem/variables.h"

namespace cleave::solve {

/// Placements that readers of a value may see when it is computed as `computed`, other than that one.
std::vector<Placement> redistributed(const Placement& computed, const graph::Shape& shape, int ranks);

/// `plain`, then every way to redistribute those results of `node` that may be, plain choice by plain choice; at most
/// kMostRedistributions of them.
inline constexpr std::size_t kMostRedistributions = 1024;
std::vector<Choice> withRedistributions(const Problem& problem, const Variables& variables, NodeId node,
                                        std::vector<Choice> plain);

/// "S(2)", or "S(2), then gathered (R)" and "R, then cut (S(1))" for a redistributed result.
std::string placementText(const Placement& computed, const Placement& seen);
std::string placementText(const Choice& choice, std::size_t result);

}  // namespace cleave::solve
