#pragma once
/// What is told of a plan before all else, in words: its time and how many of its layers are whole on every rank, for
/// which causes. The command line and the window say it with these words, so that they cannot differ.
///
///     fmt::print("predicted: {}\n{}\n", predictedText(plan), wholeText(wholeLayers(plan)));
#include "plan/plan.h"

namespace cleave::plan {

/// "51.5 µs a training step on 8 × h100 (49.1 µs of it collectives)".
std::string predictedText(const Plan& plan);

/// "The plan's 650 KiB per rank also count what one forward pass does not keep: 64 KiB KV cache."; empty: they count
/// nothing more.
std::string notKeptText(const Plan& plan);

/// Where sequence parallelism is on and the plan splits no sequence: that, and why where it is known. Else empty.
std::string idleSequenceText(const Plan& plan);

/// The kinds of Standing; what is not asked for, by settings or because the engine takes the first plan that it finds.
enum class WholeCause : std::uint8_t {
  Cannot,
  CannotAsRead,
  OverBudget,
  DoesNotPay,
  NotAskedFor,
  FirstFound,
  NotKnown
};

/// Of what is not split.
WholeCause causeOf(const Standing& standing);

/// Layers with weights that every rank holds whole, for causes of one kind.
struct WholeLayers {
  WholeCause why = WholeCause::NotKnown;
  std::size_t count = 0;
  NodeId first;  ///< in graph order
};
/// In the order of WholeCause; empty when all layers are split, and on one rank.
std::vector<WholeLayers> wholeLayers(const Plan& plan);

/// "3 cannot be split", "1 does not pay to split".
std::string toText(const WholeLayers& layers);
/// "4 layers are replicated on every rank: 3 cannot be split, 1 does not pay to split"; empty: none is.
std::string wholeText(const std::vector<WholeLayers>& layers);

}  // namespace cleave::plan
