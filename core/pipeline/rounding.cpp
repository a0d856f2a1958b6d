#include "pipeline/rounding.h"

#include <algorithm>
#include <cmath>

namespace cleave::pipeline {

using graph::DType;

namespace {

/// By how much more sums of halves over the ranks round than one rounding does.
double roundingsOf(launch::Backend backend, int ranks) {
  return backend == launch::Backend::Nccl && ranks > 2 ? std::sqrt(ranks - 1) : 1;
}

}  // namespace

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

double Rounding::allowed(double expected, double size) const {
  return unit * (std::abs(expected) + size) + rulersFor(elements) * ruler.value_or(0);
}

}  // namespace cleave::pipeline
