#include "pipeline/compare/rounding.h"

#include <algorithm>
#include <cmath>

namespace cleave::pipeline {

using graph::DType;

namespace {

/// Factor between the rounding error of a sum of halves over the ranks and that of one rounding.
double roundingsOf(launch::Backend backend, int ranks) {
  return backend == launch::Backend::Nccl && ranks > 2 ? std::sqrt(ranks - 1) : 1;
}

}  // namespace

bool isHalf(DType dtype) { return dtype == DType::BFloat16 || dtype == DType::Float16; }

double unitWithoutRuler(DType dtype, launch::Backend backend, int ranks) {
  const double roundings = roundingsOf(backend, ranks);
  switch (dtype) {
    case DType::BFloat16: return 6e-2 * roundings;
    case DType::Float16: return 1e-2 * roundings;
    case DType::Float64: return 1e-8;
    default: return 1e-4;
  }
}

double roundingUnit(DType dtype, launch::Backend backend, int ranks) {
  const double roundings = roundingsOf(backend, ranks);
  switch (dtype) {
    case DType::BFloat16: return std::ldexp(1, -7) * roundings;
    case DType::Float16: return std::ldexp(1, -10) * roundings;
    case DType::Float32: return std::ldexp(1, -19);
    case DType::Float64: return std::ldexp(1, -48);
    default: return graph::isFloatingPoint(dtype) ? std::ldexp(1, -2) : 0;  // 8 bits
  }
}

double rulersFor(std::int64_t elements) { return 3 + 7 / std::sqrt(std::max<std::int64_t>(1, elements)); }

std::vector<DType> coarsestTypes(const graph::Graph& graph) {
  std::vector<DType> types;
  for (const graph::Value& value : graph.values) types.push_back(value.type.dtype);
  const auto isCoarser = [](DType a, DType b) { return roundingUnit(a) > roundingUnit(b); };
  for (const graph::Node& node : graph.nodes) {
    for (const graph::ValueId result : node.results) {
      DType& own = types[result.index()];
      graph::forEachOperand(node, [&](graph::ValueId operand) {
        if (isCoarser(types[operand.index()], own)) own = types[operand.index()];
      });
    }
  }
  return types;
}

DType coarsestType(const graph::Graph& graph) {
  DType coarsest = DType::Bool;
  for (const graph::Value& value : graph.values) {
    if (roundingUnit(value.type.dtype) > roundingUnit(coarsest)) coarsest = value.type.dtype;
  }
  return coarsest;
}

void Magnitudes::add(double element) {
  if (!std::isfinite(element)) return;
  if (element == 0) {
    ++m_zeros;
    return;
  }
  int exponent = 0;
  const double scaled = std::frexp(element, &exponent);
  Bin& bin = m_bins[exponent];
  ++bin.count;
  bin.squares += scaled * scaled;
}

double Magnitudes::size() const {
  constexpr int kGap = 9;  // between exponents: 2^8 and more between elements
  std::int64_t count = m_zeros;
  double squares = 0;
  std::optional<int> below;
  for (const auto& [exponent, bin] : m_bins) {
    if (below && exponent - *below > kGap) break;
    count += bin.count;
    squares += std::ldexp(bin.squares, 2 * exponent);
    below = exponent;
  }
  return count == 0 ? 0 : std::sqrt(squares / static_cast<double>(count));
}

std::int64_t Moves::maxJumps() const {
  return jumps == 0 ? 0 : static_cast<std::int64_t>(3.0 * static_cast<double>(jumps) + 7 * std::sqrt(jumps));
}

Moves Moves::with(const Moves& other) const {
  return {std::max(ruler, other.ruler), std::max(jumps, other.jumps), std::max(largestJump, other.largestJump)};
}

void MoveFinder::look(double unsplit, double reordered) {
  m_magnitudes.add(unsplit);
  const double move = std::abs(unsplit - reordered);
  if (!std::isfinite(move)) return;
  if (move == 0) {
    ++m_still;
    return;
  }
  ++m_moved;
  ++m_byExponent[std::ilogb(move)];
}

void MoveFinder::measure(double unsplit, double reordered) {
  constexpr double kFarther = 32, kUnits = 8;
  if (!m_size) {
    m_size = m_magnitudes.size();
    // The median move. If most elements do not move at all, each move above rounding is a jump.
    std::int64_t seen = 0;
    m_typical = 0;
    for (const auto& [exponent, count] : m_byExponent) {
      seen += count;
      if (2 * seen < m_moved) continue;
      m_typical = m_still > 3 * m_moved ? 0 : std::ldexp(1, exponent + 1);
      break;
    }
  }
  const double move = std::abs(unsplit - reordered);
  if (!std::isfinite(move)) return;
  const double rounding = kUnits * m_unit * (std::abs(unsplit) + *m_size);
  if (move > std::max(kFarther * *m_typical, rounding)) {
    ++m_found.jumps;
    m_found.largestJump = std::max(m_found.largestJump, move);
  } else {
    m_found.ruler = std::max(m_found.ruler, move);
  }
}

double Rounding::allowed(double expected, double size) const {
  return unit * (std::abs(expected) + size) + rulersFor(elements) * (moves ? moves->ruler : 0);
}

bool Rounding::mayJump(double apart) const {
  return moves && moves->jumps > 0 && apart <= rulersFor(elements) * moves->largestJump;
}

}  // namespace cleave::pipeline
