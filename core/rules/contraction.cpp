/// Products. The dimension that is summed over must not be split: each rank would have a partial sum, and only a
/// row-parallel layer may complete one. Batch, row and column dimensions may be split.
#include "rules/axes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>

namespace cleave::rules {

namespace {

constexpr const char* kSums = "sums over";

/// Binds the dimensions of `operand`, from the right, to the result's axes in `resultAxes`. Size 1 broadcasts.
void bindBroadcast(Axes& axes, const Call& call, int operand, const std::vector<int>& resultAxes) {
  const int offset = static_cast<int>(resultAxes.size()) - call.rank(operand);
  for (int d = 0; d < call.rank(operand); ++d) {
    const auto at = static_cast<std::size_t>(std::max(0, d + offset));
    const bool isBroadcast = call.shape(operand)[static_cast<std::size_t>(d)] == 1 && call.resultShape(0)[at] != 1;
    if (d + offset < 0) call.complain("an input has more dimensions than the result");
    if (!isBroadcast) axes.operand(operand, d, resultAxes[at]);
  }
}

/// [..., m, k] x [..., k, n] with NumPy's rules for vectors and batch dimensions. `added` broadcasts to the result.
Verdict product(Call& call, int left, int right, int added = -1) {
  if (left < 0 || right < 0 || call.rank(left) < 1 || call.rank(right) < 1)
    return call.complain("a factor is missing"), claimOf({}, {});
  Axes axes(call);
  const bool hasRows = call.rank(left) >= 2, hasColumns = call.rank(right) >= 2;
  const int rank = call.resultRank(0);
  const int batchRank = rank - (hasRows ? 1 : 0) - (hasColumns ? 1 : 0);
  if (batchRank < 0) return call.complain("the result has too few dimensions"), claimOf({}, {});
  std::vector<int> resultAxes;
  for (int d = 0; d < rank; ++d) {
    resultAxes.push_back(axes.kept());
    axes.result(0, d, resultAxes.back());
  }
  const int summed = axes.whole(kSums);
  const auto bindBatch = [&](int operand, int matrixRank) {
    const int count = call.rank(operand) - matrixRank;
    for (int d = 0; d < count; ++d) {
      const int at = d + batchRank - count;
      if (at < 0) return call.complain("a factor has more batch dimensions than the result");
      const auto size = call.shape(operand)[static_cast<std::size_t>(d)];
      if (size == call.resultShape(0)[static_cast<std::size_t>(at)])
        axes.operand(operand, d, resultAxes[static_cast<std::size_t>(at)]);
    }
  };
  bindBatch(left, hasRows ? 2 : 1);
  bindBatch(right, hasColumns ? 2 : 1);
  axes.operand(left, call.rank(left) - 1, summed);
  axes.operand(right, std::max(0, call.rank(right) - 2), summed);
  if (hasRows) axes.operand(left, call.rank(left) - 2, resultAxes[static_cast<std::size_t>(batchRank)]);
  if (hasColumns) axes.operand(right, call.rank(right) - 1, resultAxes.back());
  if (added >= 0) bindBroadcast(axes, call, added, resultAxes);
  return axes.follow();
}

Verdict plainProduct(Call& call) { return product(call, call.operand(0), call.operand(1)); }
/// Arguments: added, left, right.
Verdict addedProduct(Call& call) { return product(call, call.operand(1), call.operand(2), call.operand(0)); }

/// Arguments: input [..., in], weight [out, in], bias [out]. Applies if the weight is not a parameter but computed or a
/// view.
Verdict linear(Call& call) {
  const int input = call.operand(0), weight = call.operand(1), bias = call.operand(2);
  if (input < 0 || weight < 0 || call.rank(weight) != 2 || call.rank(input) < 1)
    return call.complain("the weight is not a matrix"), claimOf({}, {});
  Axes axes(call);
  axes.name(input, "the input").name(weight, "the weight").name(bias, "the bias");
  const int last = call.rank(input) - 1;
  for (int d = 0; d < last; ++d) {
    const int axis = axes.kept();
    axes.operand(input, d, axis).result(0, d, axis);
  }
  const int in = axes.whole(kSums), out = axes.kept();
  axes.operand(input, last, in).operand(weight, 1, in).operand(weight, 0, out).result(0, last, out);
  if (bias >= 0 && call.shape(bias) == Shape{call.shape(weight)[0]}) axes.operand(bias, 0, out);
  return axes.follow();
}

Verdict outer(Call& call) {
  Axes axes(call);
  const int rows = axes.kept(), columns = axes.kept();
  axes.operand(0, 0, rows).operand(1, 0, columns).result(0, 0, rows).result(0, 1, columns);
  return axes.follow();
}

/// Arguments: equation, tensors. Each letter is an axis, and letters that the result lacks are summed over. Terms with
/// an ellipsis or a repeated letter support replicated inputs only.
Verdict einsum(Call& call) {
  std::string equation = call.text(0);
  equation.erase(std::remove(equation.begin(), equation.end(), ' '), equation.end());
  const auto arrow = equation.find("->");
  const std::vector<int> tensors = call.operandList(1);
  const bool isReadable = arrow != std::string::npos && equation.find('.') == std::string::npos;
  const std::string output = isReadable ? equation.substr(arrow + 2) : std::string();
  Axes axes(call);
  std::array<int, 256> axisOf;
  axisOf.fill(-1);
  bool isPlain = isReadable;
  std::size_t begin = 0;
  for (std::size_t i = 0; isPlain && i < tensors.size(); ++i) {
    const std::size_t end = std::min(equation.find(',', begin), arrow);
    const std::string term = equation.substr(begin, end - begin);
    begin = end + 1;
    isPlain = static_cast<int>(term.size()) == call.rank(tensors[i]);
    for (std::size_t d = 0; isPlain && d < term.size(); ++d) {
      const auto letter = static_cast<unsigned char>(term[d]);
      isPlain = std::isalpha(letter) != 0 && term.find(term[d]) == d;
      int& axis = axisOf[letter];
      if (axis < 0) axis = output.find(term[d]) == std::string::npos ? axes.whole(kSums) : axes.kept();
      // A size of 1 broadcasts against the other terms.
      const auto size = call.shape(tensors[i])[d];
      const auto at = output.find(term[d]);
      const bool isBroadcast =
          size == 1 && at != std::string::npos && at < call.resultShape(0).size() && call.resultShape(0)[at] != 1;
      if (!isBroadcast) axes.operand(tensors[i], static_cast<int>(d), axis);
    }
  }
  for (std::size_t d = 0; isPlain && d < output.size(); ++d) {
    axes.result(0, static_cast<int>(d), axisOf[static_cast<unsigned char>(output[d])]);
  }
  if (isPlain) return axes.follow();
  return declined(call, fmt::format("`einsum` with the equation {} supports replicated inputs only. Its rule needs "
                                    "an arrow, and no ... or repeated letters.",
                                    call.text(0)));
}

constexpr Entry kContractionEntries[] = {
    {"aten::addmm", addedProduct}, {"aten::addmv", addedProduct}, {"aten::baddbmm", addedProduct},
    {"aten::bmm", plainProduct},   {"aten::dot", plainProduct},   {"aten::einsum", einsum},
    {"aten::ger", outer},          {"aten::linear", linear},      {"aten::matmul", plainProduct},
    {"aten::mm", plainProduct},    {"aten::mv", plainProduct},    {"aten::outer", outer},
    {"aten::vdot", plainProduct},
};

}  // namespace

FamilyTable contractionFamily() {
  return {"contraction", "batch, row and column dimensions may be split; the summed dimension may not",
          kContractionEntries};
}

}  // namespace cleave::rules
