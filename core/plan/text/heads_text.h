#pragma once
#include "graph/attention.h"
#include "rules/strategies.h"

#include <string>

namespace cleave::plan {

/// "28 heads do not divide by 8 ranks", "4 KV heads do not divide by 8 ranks"; empty: they divide.
std::string headsText(const graph::Heads& heads, int ranks);
/// True if the KV heads need not divide by the ranks, because ranks can have copies of them.
bool sharesKvHeads(const graph::Heads& heads, const rules::StrategyContext& context);

}  // namespace cleave::plan
