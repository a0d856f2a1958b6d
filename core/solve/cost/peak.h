#pragma once
/// Where in a step the transient peak stands and what makes it, for people who have to make it smaller.
/// PlanCost::transientPeak has the bytes; cost_model.h says what counts.
///
///     const TransientPeak peak = peakOf(problem, variables, solution);
///     fmt::print("{}\n", toText(graph, peak));
///     // "backward at `lm_head`, where the gradient of the result of `lm_head` takes 31.3 GiB and ..."
#include "solve/cost/cost_model.h"

namespace cleave::solve {

struct PeakPart {
  enum class Kind : std::uint8_t {
    Value,     ///< the value, as the solution places it
    Gathered,  ///< all parts of a split value
    Gradient,  ///< the value's gradient
    Buffers,   ///< what the operator or collective that makes the value works in
  };
  ValueId value;
  Kind kind = Kind::Value;
  std::int64_t bytes = 0;
};

struct TransientPeak {
  enum class Phase : std::uint8_t { Forward, Outputs, Backward, GradientSum, Optimizer };
  Phase phase = Phase::Forward;
  ValueId at;  ///< Forward, Backward: the first result of the operator that runs; Outputs: what is gathered, or invalid
  std::vector<PeakPart> parts;  ///< the largest first; what stays for the whole step is not among them
};
TransientPeak peakOf(const Problem& problem, const Variables& variables, const Solution& solution);

/// A clause: when, and the largest parts with their types: "forward at `view_9`, where the output `logits`
/// f32[8,8192,128256] takes 31.3 GiB".
std::string toText(const Graph& graph, const TransientPeak& peak);

}  // namespace cleave::solve
