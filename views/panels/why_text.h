#pragma once
/// Why a value has its placement in the plan, and the extra cost of its other choices: rich text for the decision
/// panel.
#include "solve/explain/explain.h"
#include "views/base/rich_text.h"

namespace cleave::views {

/// The chain from a value back to the choice that decided it.
QString whyChain(const std::vector<solve::WhyLink>& chain, const graph::Graph& graph, const TextColors& colors);
/// Every choice with the extra cost of its best plan, each with a "why not?" link.
QString regretTable(const std::vector<solve::Regret>& regrets, int ranks, double slackPercent,
                    const TextColors& colors);

}  // namespace cleave::views
