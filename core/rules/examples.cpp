#include "rules/examples.h"

#include "rules/example_calls.h"

#include <fmt/format.h>

#include <array>

namespace cleave::rules {

namespace {

using Names = std::vector<std::string_view>;

/// Operators with one tensor of floats as their only argument.
const Names kUnary = {"abs",      "acos",        "acosh",      "asin",       "asinh",       "atan",
                      "atanh",    "ceil",        "cos",        "cosh",       "deg2rad",     "erf",
                      "erfc",     "erfinv",      "exp",        "exp2",       "expm1",       "floor",
                      "frac",     "hardsigmoid", "hardswish",  "isfinite",   "isinf",       "isnan",
                      "log",      "log10",       "log1p",      "log2",       "log_sigmoid", "logical_not",
                      "mish",     "neg",         "reciprocal", "relu",       "relu6",       "round",
                      "rsqrt",    "sigmoid",     "sign",       "silu",       "sin",         "sinh",
                      "sqrt",     "square",      "tan",        "tanh",       "trunc",       "gelu",
                      "celu",     "elu",         "leaky_relu", "hardtanh",   "nan_to_num",  "softplus",
                      "clone",    "alias",       "detach",     "contiguous", "positive",    "lift_fresh_copy",
                      "_to_copy", "ones_like",   "zeros_like", "logit"};
constexpr std::array kUnaryRows = {"f32[a,b,c]", "f32[a]", "f32[a,1,b]"};

/// Operators on two tensors of floats that broadcast.
const Names kBinary = {"add.Tensor",
                       "atan2",
                       "div.Tensor",
                       "floor_divide",
                       "fmax",
                       "fmin",
                       "fmod.Tensor",
                       "ge.Tensor",
                       "gt.Tensor",
                       "hypot",
                       "le.Tensor",
                       "logaddexp",
                       "lt.Tensor",
                       "maximum",
                       "minimum",
                       "mul.Tensor",
                       "pow.Tensor_Tensor",
                       "remainder.Tensor",
                       "rsub.Tensor",
                       "sub.Tensor",
                       "xlogy.Tensor"};
constexpr std::array kBinaryRows = {"f32[a,b,c], f32[a,b,c]", "f32[a,b,c], f32[c]",   "f32[a,b], f32[]",
                                    "f32[a,1,c], f32[a,b,1]", "f32[b,1], f32[a,b,c]", "f32[a,b], f32[1,b]"};

const Names kIntegerBinary = {"bitwise_and.Tensor",
                              "bitwise_or.Tensor",
                              "bitwise_xor.Tensor",
                              "bitwise_left_shift.Tensor",
                              "bitwise_right_shift.Tensor",
                              "eq.Tensor",
                              "ne.Tensor",
                              "logical_and",
                              "logical_or",
                              "logical_xor"};
constexpr std::array kIntegerBinaryRows = {"i64[a,b]<2>, i64[a,b]<2>", "i64[a,b,c]<9>, i64[b,1]<9>"};

/// Operators on a tensor of floats and a number.
const Names kWithNumber = {"add.Scalar",  "sub.Scalar",       "mul.Scalar",          "div.Scalar",  "eq.Scalar",
                           "ne.Scalar",   "lt.Scalar",        "le.Scalar",           "gt.Scalar",   "ge.Scalar",
                           "fmod.Scalar", "remainder.Scalar", "pow.Tensor_Scalar",   "fill.Scalar", "clamp_max",
                           "clamp_min",   "rsub.Scalar",      "floor_divide.Scalar", "full_like"};
constexpr std::array kWithNumberRows = {"f32[a,b,c], 2", "f32[a,b], 0.5"};

const Names kIntegerWithNumber = {"bitwise_and.Scalar", "bitwise_or.Scalar", "bitwise_xor.Scalar",
                                  "bitwise_left_shift.Tensor_Scalar", "bitwise_right_shift.Tensor_Scalar"};

/// Reductions with (dims, keepdim), with one dim, and along a dim that stays.
const Names kReduceDims = {"sum.dim_IntList", "mean.dim", "amax", "amin", "logsumexp", "nansum"};
constexpr std::array kReduceDimsRows = {
    "f32[a,b,c], [1]",     "f32[a,b,c], [-1], true", "f32[a,b,c], [0,2], false", "f32[a,b,c], [-2,0], true",
    "f32[a,b,c], [0,1,2]", "f32[a,b], [-2]",         "f32[a,1,b], [1]",          "f32[a], [0]",
    "f32[a,b], [0], true"};
const Names kReduceDim = {"max.dim", "min.dim", "prod.dim_int", "argmax", "argmin", "median.dim"};
constexpr std::array kReduceDimRows = {"f32[a,b,c], 1", "f32[a,b,c], -1, true", "f32[a,b,c], 0, false", "f32[a,b], -2",
                                       "f32[a,1,b], 1"};
const Names kReduceAll = {"sum", "mean", "max", "min", "prod", "argmax", "argmin", "var", "std"};
constexpr std::array kReduceAllRows = {"f32[a,b]", "f32[a]", "f32[a,1]"};
const Names kAlong = {"cumsum",      "cumprod",         "cummax",        "cummin", "logcumsumexp",
                      "softmax.int", "log_softmax.int", "_safe_softmax", "sort",   "argsort"};
constexpr std::array kAlongRows = {"f32[a,b,c], 1", "f32[a,b,c], -1", "f32[a,b,c], 0", "f32[a,b], -2", "f32[a,1,b], 1"};

template <class Rows>
void cross(std::vector<Example>& out, const Names& names, const Rows& rows) {
  for (const std::string_view name : names) {
    for (const auto& row : rows) out.push_back({fmt::format("aten::{}({})", name, row), false});
  }
}

std::vector<Example> makeExamples() {
  std::vector<Example> out;
  cross(out, kUnary, kUnaryRows);
  cross(out, kBinary, kBinaryRows);
  cross(out, kIntegerBinary, kIntegerBinaryRows);
  cross(out, kWithNumber, kWithNumberRows);
  cross(out, kIntegerWithNumber, std::array{"i64[a,b]<9>, 2"});
  cross(out, kReduceDims, kReduceDimsRows);
  cross(out, kReduceDim, kReduceDimRows);
  cross(out, kReduceAll, kReduceAllRows);
  cross(out, kAlong, kAlongRows);
  for (const std::string_view call : ownExamples()) out.push_back({fmt::format("aten::{}", call), false});
  for (const std::string_view call : randomExamples()) out.push_back({fmt::format("aten::{}", call), true});
  return out;
}

}  // namespace

const std::vector<Example>& examples() {
  static const std::vector<Example> all = makeExamples();
  return all;
}

}  // namespace cleave::rules
