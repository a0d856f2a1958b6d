#pragma once
/// The tolerance for comparing two runs, in one place for runs, bisections, training and tests.
///
/// Two correct programs differ by rounding. The difference depends on the type and the size of the values, and on how
/// rounding grows in this model. So an element may differ from the expected one by
///
///     unit · (|expected| + size)  +  rulersFor(elements) · ruler
///
/// `unit` is the relative rounding error of one sum in the coarsest type that the value was computed in. `size` is the
/// root mean square of the tensor, without fill values (Magnitudes). `ruler` is the largest change of an element of
/// this tensor when the unsplit run adds its sums in another order (graph/reordered_sums.h). The ruler is measured only
/// if the first term does not explain a difference.
///
/// Where a program chooses (an expert, the largest of equal logits, a threshold), an element jumps when its sums are
/// reordered. Jumps do not count for the ruler. About as many elements may jump between two correct programs as jumped
/// between the unsplit runs, and about as far (Moves).
///
///     const Rounding rounding{.unit = roundingUnit(DType::Float32), .moves = Moves{4.5e-4}, .elements = 4096};
///     rounding.allowed(12.3, 30.1);   // 1.5e-3
///
/// Source of the units: a sum of n products in a type of unit roundoff u has an error of about √n · u (N. J. Higham,
/// Accuracy and Stability of Numerical Algorithms, 2nd ed., sections 2.6 and 3.1). n is about 1000 for float32 and
/// float64. Half types sum in float32 and are rounded once at the end: two units of the last place.
#include "graph/graph.h"
#include "launch/launcher.h"

#include <map>
#include <optional>
#include <vector>

namespace cleave::pipeline {

/// The number of rulers that a difference may reach: 10 for one element, 3 for very many. The largest difference among
/// many elements varies little with the order of sums; that of a single element varies more.
double rulersFor(std::int64_t elements);

/// float64 2^-48, float32 2^-19, float16 2^-10, bfloat16 2^-7; 0 for integers. NCCL sums n ranks in the half type and
/// rounds n - 1 times, so the error grows by √(n - 1); Gloo sums in float32 and rounds once.
double roundingUnit(graph::DType dtype, launch::Backend backend = launch::Backend::Gloo, int ranks = 1);

/// bfloat16 and float16.
bool isHalf(graph::DType dtype);

/// The tolerance if the ruler cannot be measured: float64 1e-8, float32 1e-4, float16 1e-2, bfloat16 6e-2.
double unitWithoutRuler(graph::DType dtype, launch::Backend backend = launch::Backend::Gloo, int ranks = 1);

/// By ValueId: the coarsest type among a value and all values that it was computed from.
std::vector<graph::DType> coarsestTypes(const graph::Graph& graph);
/// The coarsest type of all values.
graph::DType coarsestType(const graph::Graph& graph);

/// Computes the size of a tensor from its elements.
class Magnitudes {
 public:
  void add(double element);
  /// The root mean square of the finite elements, without the fill of masked positions. Fill is at least 256 times as
  /// large as all other elements, with no element between.
  double size() const;

 private:
  struct Bin {
    std::int64_t count = 0;
    double squares = 0;  ///< sum of squares of elements scaled by 2^-exponent, so that it does not overflow
  };
  std::map<int, Bin> m_bins;  ///< by exponent of 2
  std::int64_t m_zeros = 0;
};

/// The changes of the elements of one tensor when only the order of sums changes.
struct Moves {
  double ruler = 0;        ///< largest move that is not a jump
  std::int64_t jumps = 0;  ///< number of elements that move farther, because a close choice changed
  double largestJump = 0;
  /// The number of elements that may jump in another correct program.
  std::int64_t maxJumps() const;
  /// The maximum of two measurements of one tensor.
  Moves with(const Moves& other) const;
};

/// Finds Moves in two passes over the same pairs of elements.
class MoveFinder {
 public:
  explicit MoveFinder(double unit) : m_unit(unit) {}
  void look(double unsplit, double reordered);     ///< first pass
  void measure(double unsplit, double reordered);  ///< second pass
  const Moves& found() const { return m_found; }

 private:
  double m_unit;
  std::map<int, std::int64_t> m_byExponent;  ///< number of moves that are not 0
  std::int64_t m_still = 0, m_moved = 0;
  Magnitudes m_magnitudes;
  std::optional<double> m_size, m_typical;
  Moves m_found;
};

/// The tolerance of one tensor's elements. Immutable; any thread.
struct Rounding {
  double unit = 0;                  ///< relative rounding error
  std::optional<Moves> moves = {};  ///< absolute moves of this tensor; nullopt: not measured
  std::int64_t elements = 1;        ///< number of elements of the tensor
  double allowed(double expected, double size) const;
  /// Returns true if a difference beyond the allowed one may be a jump.
  bool mayJump(double apart) const;
};

}  // namespace cleave::pipeline
