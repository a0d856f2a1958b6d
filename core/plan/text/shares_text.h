#pragma once
/// Sentences about shares.h.
#include "plan/shares.h"

#include <string>
#include <vector>

namespace cleave::plan {

/// "92.4 %"; "100 %" only for all, "0 %" only for nothing.
std::string percentText(double share);
/// The number that `percentText` shows.
double shownPercent(double share);
/// "Per rank: 50.1 % of the weights and 51.4 % of the FLOPs (even share: 50 %). 224 of 226 layers with weights are
/// split, 2 are gathered after the product."
std::string toText(const Shares& shares);
/// "Largest replicated part: `features.*.block.0`, 21 MiB (75.2 % of the weights). It cannot be split: …"; empty below
/// 1 % of the weights.
std::string largestWholeText(const Shares& shares);
/// "`model.layers.*.self_attn`", "`model.layers.*.self_attn` (1 of 2)": the modules.
std::string modulesText(const ReplicatedWork& work);
/// "`model.layers.*.self_attn` (28 operators: scaled_dot_product_attention, …) takes 1.2 ms of each rank's step and
/// cannot be split: …".
std::string toText(const ReplicatedWork& work);
/// Attention that every rank computes in full because it cannot be split, or not with these settings. The count of
/// split layers does not show it.
std::vector<const ReplicatedWork*> indivisibleHeads(const Shares& shares);

}  // namespace cleave::plan
