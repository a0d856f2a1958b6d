#pragma once
/// "Computes the same", decided in one place for runs, bisections, training and tests.
///
/// Two right programs differ by rounding, and by how much depends on the values' type, their size and how rounding
/// grows in this model. So an element may differ from what is expected by
///
///     unit · (|expected| + size)  +  rulersFor(elements) · ruler
///
/// `unit` is what rounding does to one sum in the coarsest type that the value was computed in; `size` is the root mean
/// square of the tensor, without what fills it (Magnitudes); `ruler` is how far the unsplit run itself moves
/// when only the order of its sums changes (graph/reordered_sums.h): the largest difference in this tensor. The ruler
/// is measured when the first term alone does not explain a difference; where it is small or 0 that term decides.
///
/// Where a program chooses (an expert, the largest of equal logits, a threshold), an element jumps when its sums are
/// reordered. Jumps are no ruler for the others. As many elements as jumped there may jump between two right programs,
/// give or take what such a count varies, and as far (Moves).
///
///     const Rounding rounding{.unit = roundingUnit(DType::Float32), .moves = Moves{4.5e-4}, .elements = 4096};
///     rounding.allowed(12.3, 30.1);   // 1.5e-3
///
/// Source of the units: a sum of n products in a type of unit roundoff u has an error of about √n · u (N. J. Higham,
/// Accuracy and Stability of Numerical Algorithms, 2nd ed., sections 2.6 and 3.1), with n about 1000 for types that
/// sum in themselves. Half types sum in float32 and are rounded to a neighbour: two units of the last place.
#include "graph/graph.h"
#include "launch/launcher.h"

#include <map>
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

/// The sizes of a tensor's elements, one added after the other.
class Magnitudes {
 public:
  void add(double element);
  /// Root mean square of the finite ones. Left out is what fills masked places: elements at least 256 times as large as
  /// all others, with nothing between.
  double size() const;

 private:
  struct Bin {
    std::int64_t count = 0;
    double squares = 0;  ///< of elements scaled by 2^-exponent, so that they do not overflow
  };
  std::map<int, Bin> m_bins;  ///< by exponent of 2
  std::int64_t m_zeros = 0;
};

/// How far the elements of one tensor move when only the order of sums changes.
struct Moves {
  double ruler = 0;        ///< the largest move but for jumps
  std::int64_t jumps = 0;  ///< elements that move farther: a choice that was close falls another way
  double largestJump = 0;
  /// That many elements of another right program may jump.
  std::int64_t mostJumps() const;
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
  std::map<int, std::int64_t> m_byExponent;  ///< of moves that are not 0
  std::int64_t m_still = 0, m_moved = 0;
  Magnitudes m_magnitudes;
  std::optional<double> m_size, m_typical;
  Moves m_found;
};

/// What one tensor's elements may differ by. Immutable; any thread.
struct Rounding {
  double unit = 0;                  ///< relative
  std::optional<Moves> moves = {};  ///< absolute, in the tensor's own unit; nullopt: not measured
  std::int64_t elements = 1;        ///< of the tensor
  double allowed(double expected, double size) const;
  /// Whether a difference beyond what is allowed may be a jump.
  bool mayJump(double apart) const;
};

}  // namespace cleave::pipeline
