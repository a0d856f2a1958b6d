#pragma once
/// Why a value is placed as it is in the plan, and what its other choices cost more: rich text for the decision panel.
#include "solve/explain/explain.h"
#include "views/base/rich_text.h"

namespace cleave::views {

/// The chain from a value back to the choice that decided it.
QString whyChain(const std::vector<solve::WhyLink>& chain, const graph::Graph& graph, const TextColors& colors);
/// Every choice with what the best plan with it costs more, each with a "why not?" link.
QString regretTable(const std::vector<solve::Regret>& regrets, int ranks, double slackPercent,
                    const TextColors& colors);

}  // namespace cleave::views
