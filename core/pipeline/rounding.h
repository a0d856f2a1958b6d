#pragma once
/// "Computes the same", decided in one place for runs, bisections, training and tests.
///
/// Two right programs differ by rounding, and by how much depends on the values' type, their size and how rounding
/// grows in this model. So an element may differ from what is expected by
///
///     unit · (|expected| + size)  +  rulersFor(elements) · ruler
///
/// `unit` is what rounding does to one sum in the coarsest type that the value was computed in; `size` is the root mean
/// square of the expected tensor; `ruler` is how far the unsplit run itself moves when only the order of its sums
/// changes (graph/reordered_sums.h): the largest difference in this tensor. The ruler is measured when the first term
/// alone does not explain a difference; where it is small or 0 that term decides.
///
///     const Rounding rounding{.unit = roundingUnit(DType::Float32), .ruler = 4.5e-4, .elements = 4096};
///     rounding.allowed(12.3, 30.1);   // 1.5e-3
///
/// Source of the units: a sum of n products in a type of unit roundoff u has an error of about √n · u (N. J. Higham,
/// Accuracy and Stability of Numerical Algorithms, 2nd ed., sections 2.6 and 3.1), with n about 1000 for types that
/// sum in themselves. Half types sum in float32 and are rounded to a neighbour: two units of the last place.
#include "graph/graph.h"
#include "launch/launcher.h"

#include <optional>
#include <vector>

namespace cleave::pipeline {

/// The number of rulers that a difference may reach: 10 for one element, 3 for very many. The largest difference of
/// many elements varies little from one order of sums to the next; that of a single element varies more.
double rulersFor(std::int64_t elements);

/// float64 2^-48, float32 2^-19, float16 2^-10, bfloat16 2^-7; 0 for integers. NCCL sums n ranks in a half type itself
/// and rounds n - 1 times, whose errors grow by √(n - 1); Gloo sums in float32 and rounds once.
double roundingUnit(graph::DType dtype, launch::Backend backend = launch::Backend::Gloo, int ranks = 1);

/// What is allowed where the ruler cannot be measured: float64 1e-8, float32 1e-4, float16 1e-2, bfloat16 6e-2.
double unitWithoutRuler(graph::DType dtype, launch::Backend backend = launch::Backend::Gloo, int ranks = 1);

/// By ValueId: the coarsest floating type among a value's own and those that it was computed in; for integers the type
/// of what they were computed from. A parameter counts from where it is cast.
std::vector<graph::DType> coarsestTypes(const graph::Graph& graph);
/// The coarsest of all.
graph::DType coarsestType(const graph::Graph& graph);

/// What one tensor's elements may differ by. Immutable; any thread.
struct Rounding {
  double unit = 0;                   ///< relative
  std::optional<double> ruler = {};  ///< absolute, in the tensor's own unit; nullopt: not measured
  std::int64_t elements = 1;         ///< of the tensor
  double allowed(double expected, double size) const;
};

}  // namespace cleave::pipeline
