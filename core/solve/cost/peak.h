#pragma once
/// The moment of the transient peak in a step, and the largest parts of the peak, for users who need to reduce it.
/// PlanCost::transientPeak is its size; docs/costs.md defines it.
///
///     const TransientPeak peak = peakOf(problem, variables, solution);
///     fmt::print("{}\n", toText(graph, peak));
///     // "in the backward pass at `lm_head`, where the gradient of the result of `lm_head` takes 31.3 GiB and ..."
#include "solve/cost/cost_model.h"

namespace cleave::solve {

struct PeakPart {
  enum class Kind : std::uint8_t {
    Value,     ///< the value with its placement in the solution
    Gathered,  ///< the gathered parts of a split value
    Gradient,  ///< the value's gradient
    Buffers,   ///< buffers of the operator or collective that computes the value
  };
  ValueId value;
  Kind kind = Kind::Value;
  std::int64_t bytes = 0;
};

struct TransientPeak {
  enum class Phase : std::uint8_t { Forward, Outputs, Backward, GradientSum, Optimizer };
  Phase phase = Phase::Forward;
  ValueId at;  ///< Forward, Backward: the first result of the running operator; Outputs: the gathered output, or
               ///< invalid
  std::vector<PeakPart> parts;  ///< the largest first, without memory that stays for the whole step
};
TransientPeak peakOf(const Problem& problem, const Variables& variables, const Solution& solution);

/// A clause with the moment and the largest parts with their types: "in the forward pass at `view_9`, where the output
/// `logits` f32[8,8192,128256] takes 31.3 GiB".
std::string toText(const Graph& graph, const TransientPeak& peak);

}  // namespace cleave::solve
