/// Operators that run along some dimensions and keep the others: sums, extrema, softmax, sorts.
#include "rules/axes.h"

#include <algorithm>

namespace cleave::rules {

namespace {

bool contains(const std::vector<int>& dims, int dim) { return std::find(dims.begin(), dims.end(), dim) != dims.end(); }

/// Runs along `dims` of operand 0. They disappear from the results, or stay with size 1.
Verdict reduceOver(Call& call, const std::vector<int>& dims, bool keepsDims, const char* why) {
  Axes axes(call);
  int next = 0;
  for (int d = 0; d < call.rank(0); ++d) {
    const bool isReduced = contains(dims, d);
    const int axis = isReduced ? axes.whole(why) : axes.kept();
    axes.operand(0, d, axis);
    for (int r = 0; !isReduced && r < call.resultCount(); ++r) axes.result(r, next, axis);
    if (!isReduced || keepsDims) ++next;
  }
  return axes.allowPadding().follow();
}

/// An absent or empty list of dimensions means all dimensions.
Verdict reduceDims(Call& call, std::size_t dimsIndex, std::size_t keepIndex, const char* why) {
  std::vector<int> dims = call.dims(dimsIndex, call.rank(0));
  if (dims.empty()) {
    // Some overloads do not reduce for an empty list; the result's shape shows it.
    if (call.rank(0) > 0 && call.resultShape(0) == call.shape(0)) return pointwise(call);
    for (int d = 0; d < call.rank(0); ++d) dims.push_back(d);
  }
  return reduceOver(call, dims, call.flag(keepIndex, false), why);
}

Verdict reduceAll(Call& call, const char* why) {
  std::vector<int> dims;
  for (int d = 0; d < call.rank(0); ++d) dims.push_back(d);
  return reduceOver(call, dims, false, why);
}

Verdict sumAll(Call& c) { return reduceAll(c, "sums over"); }
Verdict extremeAll(Call& c) { return reduceAll(c, "compares along"); }
Verdict spreadAll(Call& c) { return reduceAll(c, "averages over"); }
Verdict sumDims(Call& c) { return reduceDims(c, 1, 2, "sums over"); }
/// Decompositions compute a norm from the mean of squares.
Verdict meanDims(Call& c) {
  const bool isNorm =
      c.operandCount() > 0 && (c.producerOf(0).starts_with("aten::pow") || c.producerOf(0) == "aten::square");
  return reduceDims(c, 1, 2, isNorm ? "normalises over" : "averages over");
}
Verdict productDims(Call& c) { return reduceDims(c, 1, 2, "multiplies along"); }
Verdict extremeDims(Call& c) { return reduceDims(c, 1, 2, "compares along"); }
/// Arguments: dim, unbiased or correction, keepdim.
Verdict spreadDims(Call& c) { return reduceDims(c, 1, 3, "averages over"); }
/// Arguments: order, dim, keepdim.
Verdict normDims(Call& c) { return reduceDims(c, 2, 3, "sums over"); }

/// Runs along one dimension. The results keep its elements (topk: k of them).
Verdict along(Call& call, int dim, const char* why) {
  Axes axes(call);
  for (int d = 0; d < call.rank(0); ++d) {
    const int axis = d == dim ? axes.whole(why) : axes.kept();
    axes.operand(0, d, axis);
    for (int r = 0; d != dim && r < call.resultCount(); ++r) axes.result(r, d, axis);
  }
  return axes.allowPadding().follow();
}

template <std::size_t DimIndex>
Verdict softmax(Call& c) {
  return along(c, c.dim(DimIndex, c.rank(0), -1), "normalises along");
}
template <std::size_t DimIndex>
Verdict scan(Call& c) {
  return along(c, c.dim(DimIndex, c.rank(0), -1), "accumulates along");
}
template <std::size_t DimIndex>
Verdict sortAlong(Call& c) {
  return along(c, c.dim(DimIndex, c.rank(0), -1), "sorts along");
}

/// One dimension, or the index into the flattened tensor if the argument is absent.
Verdict extremeIndex(Call& c) {
  if (!c.has(1)) return reduceAll(c, "compares along");
  return reduceOver(c, {c.dim(1, c.rank(0), 0)}, c.flag(2, false), "compares along");
}

/// Arguments: self, k, dim, keepdim.
Verdict kthValue(Call& c) { return reduceOver(c, {c.dim(2, c.rank(0), -1)}, c.flag(3, false), "sorts along"); }

constexpr Entry kReductionEntries[] = {
    {"aten::_log_softmax", softmax<1>},
    {"aten::_safe_softmax", softmax<1>},
    {"aten::_softmax", softmax<1>},
    {"aten::all", extremeAll},
    {"aten::all.dim", extremeDims},
    {"aten::all.dims", extremeDims},
    {"aten::amax", extremeDims},
    {"aten::amin", extremeDims},
    {"aten::any", extremeAll},
    {"aten::any.dim", extremeDims},
    {"aten::any.dims", extremeDims},
    {"aten::argmax", extremeIndex},
    {"aten::argmin", extremeIndex},
    {"aten::argsort", sortAlong<1>},
    {"aten::count_nonzero.dim_IntList", [](Call& c) { return reduceDims(c, 1, 99, "counts along"); }},
    {"aten::cummax", scan<1>},
    {"aten::cummin", scan<1>},
    {"aten::cumprod", scan<1>},
    {"aten::cumsum", scan<1>},
    {"aten::glu", [](Call& c) { return along(c, c.dim(1, c.rank(0), -1), "halves"); }},
    {"aten::kthvalue", kthValue},
    {"aten::linalg_vector_norm", normDims},
    {"aten::log_softmax.int", softmax<1>},
    {"aten::logcumsumexp", scan<1>},
    {"aten::logsumexp", sumDims},
    {"aten::max", extremeAll},
    {"aten::max.dim", extremeDims},
    {"aten::mean", spreadAll},
    {"aten::mean.dim", meanDims},
    {"aten::median.dim", extremeDims},
    {"aten::min", extremeAll},
    {"aten::min.dim", extremeDims},
    {"aten::nansum", sumDims},
    {"aten::norm.Scalar", sumAll},
    {"aten::norm.ScalarOpt_dim", normDims},
    {"aten::prod", [](Call& c) { return reduceAll(c, "multiplies along"); }},
    {"aten::prod.dim_int", productDims},
    {"aten::softmax.int", softmax<1>},
    {"aten::sort", sortAlong<1>},
    {"aten::sort.stable", sortAlong<2>},
    {"aten::std", spreadAll},
    {"aten::std.correction", spreadDims},
    {"aten::std.dim", spreadDims},
    {"aten::sum", sumAll},
    {"aten::sum.dim_IntList", sumDims},
    {"aten::topk", sortAlong<2>},
    {"aten::var", spreadAll},
    {"aten::var.correction", spreadDims},
    {"aten::var.dim", spreadDims},
    {"aten::var_mean.correction", spreadDims},
    {"aten::var_mean.dim", spreadDims},
};

}  // namespace

FamilyTable reductionFamily() {
  return {"reduction", "the dimensions it runs along must not be split; the other dimensions may be split",
          kReductionEntries};
}

}  // namespace cleave::rules
