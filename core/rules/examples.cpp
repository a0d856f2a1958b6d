#include "rules/examples.h"

#include <fmt/format.h>

#include <array>

namespace cleave::rules {

namespace {

using Names = std::vector<std::string_view>;

/// Operators that take nothing but one tensor of floats.
const Names kUnary = {
    "abs", "acos", "acosh", "asin", "asinh", "atan", "atanh", "ceil", "cos", "cosh", "deg2rad", "erf", "erfc", "erfinv", "exp",
    "exp2", "expm1", "floor", "frac", "hardsigmoid", "hardswish", "isfinite", "isinf", "isnan", "log", "log10", "log1p", "log2",
    "log_sigmoid", "logical_not", "mish", "neg", "reciprocal", "relu", "relu6", "round", "rsqrt", "sigmoid", "sign", "silu", "sin",
    "sinh", "sqrt", "square", "tan", "tanh", "trunc", "gelu", "celu", "elu", "leaky_relu", "hardtanh", "nan_to_num", "softplus",
    "clone", "alias", "detach", "contiguous", "positive", "lift_fresh_copy", "_to_copy",
    "ones_like", "zeros_like"};
constexpr std::array kUnaryRows = {"f32[a,b,c]", "f32[a]", "f32[a,1,b]"};

/// Operators of two tensors of floats that broadcast.
const Names kBinary = {"add.Tensor", "atan2", "div.Tensor", "floor_divide", "fmax", "fmin", "fmod.Tensor", "ge.Tensor",
                       "gt.Tensor", "hypot", "le.Tensor", "logaddexp", "lt.Tensor",
                       "maximum", "minimum", "mul.Tensor", "pow.Tensor_Tensor", "remainder.Tensor", "rsub.Tensor",
                       "sub.Tensor", "xlogy.Tensor"};
constexpr std::array kBinaryRows = {"f32[a,b,c], f32[a,b,c]", "f32[a,b,c], f32[c]",      "f32[a,b], f32[]",
                                    "f32[a,1,c], f32[a,b,1]", "f32[b,1], f32[a,b,c]", "f32[a,b], f32[1,b]"};

const Names kIntegerBinary = {"bitwise_and.Tensor", "bitwise_or.Tensor", "bitwise_xor.Tensor", "bitwise_left_shift.Tensor",
                              "bitwise_right_shift.Tensor", "eq.Tensor", "ne.Tensor", "logical_and", "logical_or",
                              "logical_xor"};
constexpr std::array kIntegerBinaryRows = {"i64[a,b]<2>, i64[a,b]<2>", "i64[a,b,c]<9>, i64[b,1]<9>"};

/// A tensor of floats and a number.
const Names kWithNumber = {"add.Scalar", "sub.Scalar", "mul.Scalar", "div.Scalar", "eq.Scalar", "ne.Scalar", "lt.Scalar", "le.Scalar",
                           "gt.Scalar", "ge.Scalar", "fmod.Scalar", "remainder.Scalar", "pow.Tensor_Scalar", "fill.Scalar",
                           "clamp_max", "clamp_min", "rsub.Scalar", "floor_divide.Scalar", "full_like"};
constexpr std::array kWithNumberRows = {"f32[a,b,c], 2", "f32[a,b], 0.5"};

const Names kIntegerWithNumber = {"bitwise_and.Scalar", "bitwise_or.Scalar", "bitwise_xor.Scalar", "bitwise_left_shift.Tensor_Scalar",
                                  "bitwise_right_shift.Tensor_Scalar"};

/// Reductions with (dims, keepdim), with one dim, and along a dim that stays.
const Names kReduceDims = {"sum.dim_IntList", "mean.dim", "amax", "amin", "logsumexp", "nansum"};
constexpr std::array kReduceDimsRows = {
    "f32[a,b,c], [1]", "f32[a,b,c], [-1], true", "f32[a,b,c], [0,2], false", "f32[a,b,c], [-2,0], true",
    "f32[a,b,c], [0,1,2]", "f32[a,b], [-2]", "f32[a,1,b], [1]", "f32[a], [0]", "f32[a,b], [0], true"};
const Names kReduceDim = {"max.dim", "min.dim", "prod.dim_int", "argmax", "argmin", "median.dim"};
constexpr std::array kReduceDimRows = {"f32[a,b,c], 1", "f32[a,b,c], -1, true", "f32[a,b,c], 0, false", "f32[a,b], -2", "f32[a,1,b], 1"};
const Names kReduceAll = {"sum", "mean", "max", "min", "prod", "argmax", "argmin", "var", "std"};
constexpr std::array kReduceAllRows = {"f32[a,b]", "f32[a]", "f32[a,1]"};
const Names kAlong = {"cumsum", "cumprod", "cummax", "cummin", "logcumsumexp", "softmax.int", "log_softmax.int", "_safe_softmax", "sort", "argsort"};
constexpr std::array kAlongRows = {"f32[a,b,c], 1", "f32[a,b,c], -1", "f32[a,b,c], 0", "f32[a,b], -2", "f32[a,1,b], 1"};

const std::vector<std::string_view> kOthers = {
    // pointwise with particular arguments
    "add.Tensor(f32[a,b], f32[a,b], 2)", "sub.Tensor(f32[a,b], f32[b], 0.5)", "add.Tensor(i64[a,b]<9>, f32[a,b])",
    "addcmul(f32[a,b], f32[a,b], f32[b])", "addcdiv(f32[a,b], f32[a,1], f32[a,b])",
    "bernoulli(f32[a,b]<2>)", "bernoulli.p(f32[a,b], 1.0)", "bitwise_not(i64[a,b]<9>)", "bitwise_not(bool[a,b])",
    "clamp(f32[a,b], -0.5, 0.5)", "clamp(f32[a,b,c], 0.0)", "clamp(f32[a], None, 0.0)", "clamp.Tensor(f32[a,b], f32[b], None)",
    "clamp.Tensor(f32[a,b], f32[a,b], f32[a,b])", "clamp_max.Tensor(f32[a,b], f32[a,b])", "clamp_min.Tensor(f32[a,b], f32[b])",
    "div.Scalar_mode(f32[a,b], 2, \"floor\")", "div.Tensor_mode(f32[a,b], f32[a,b], \"trunc\")", "div.Tensor_mode(f32[a,b], f32[b], None)",
    "dropout(f32[a,b], 0.5, false)", "native_dropout(f32[a,b,c], 0.0, true)", "elu(f32[a,b], 0.5, 1.0, 1.0)",
    "fill.Tensor(f32[a,b], f32[])", "gelu(f32[a,b], \"tanh\")", "hardtanh(f32[a,b], 0.0, 6.0)", "isnan(i64[a,b]<9>)",
    "leaky_relu(f32[a,b], 0.2)", "lerp.Scalar(f32[a,b], f32[b], 0.5)", "lerp.Tensor(f32[a,b], f32[a,b], f32[a,1])",
    "masked_fill.Scalar(f32[a,b,c], bool[b,c], 0.5)", "masked_fill.Scalar(f32[a,b], bool[a,b], -inf)",
    "masked_fill.Tensor(f32[a,b,c], bool[a,1,c], f32[])", "pow.Scalar(2, f32[a,b])", "remainder.Scalar_Tensor(3, f32[a,b])",
    "relu(i64[a,b]<9>)", "round.decimals(f32[a,b], 1)", "where.self(bool[a,b], f32[a,b], f32[b])",
    "where.self(bool[a,1], f32[b], f32[])", "where.self(bool[a,b,c], f32[a,b,c], f32[a,b,c])", "where.Scalar(bool[a,b], 1.0, 0.0)",
    "where.ScalarOther(bool[a,b], f32[a,b], 0.5)", "where.ScalarSelf(bool[a,b], 0.5, f32[b])", "logical_not(bool[a,b])",
    // copies
    "_to_copy(f32[a,b], :f64)", "_to_copy(i64[a,b]<9>, :f32)", "to.dtype(f32[a,b,c], :bf16)", "to.dtype_layout(f32[a,b], :f64)",
    "clone(f32[a,b,c], 0)", "copy(f32[a,b], f32[a,b])", "copy(f32[a,b,c], f32[c])", "copy(f32[a,b], f32[])", "copy(i64[a,b]<9>, f32[a,1])",
    "type_as(f32[a,b], i64[])",
    // creation
    "arange(a, :i64)", "arange.start(1, a+1)", "arange.start_step(0, 2*a, 2)", "eye(a)", "eye.m(a, b)", "full([a,b], 0.5)",
    "full([a], 1, :i64)", "full([a,b], 0.5, :f32)", "linspace(0, 1, a)", "ones([a,b])", "zeros([a,b,c])", "scalar_tensor(0.5)",
    "tril_indices(a, b)", "triu_indices(a, b)", "new_full(f32[a,b], [a,b], 0.5)", "new_full(f32[a,b], [c], 0.5)",
    "new_ones(f32[a,b], [a,b])", "new_ones(f32[a,b], [b,a])", "new_zeros(f32[a,b], [a,b])", "new_zeros(f32[a], [a,b])",
    // reduction with particular arguments
    "sum.dim_IntList(f32[a,b,c], [])", "sum.dim_IntList(f32[a,b], None, true)", "sum.dim_IntList(f32[a,b,c], [1], false, :f64)",
    "sum.dim_IntList(bool[a,b], [1])", "mean.dim(f32[a,b], None)", "amax(f32[a,b])", "amax(f32[a,b], [])", "any.dims(bool[a,b], [1])",
    "any.dims(bool[a,b])", "all.dims(bool[a,b], [-1], true)", "all.dims(bool[a,b,c], [0,2])", "any.dims(bool[a,b,c], [-2])", "any.dim(bool[a,b,c], -2)", "all.dim(bool[a,b,c], 0)", "any(bool[a,b])", "all(bool[a,b])",
    "argmax(f32[a,b], None, false)", "count_nonzero.dim_IntList(i64[a,b,c]<2>, [1])", "count_nonzero.dim_IntList(i64[a,b,c]<2>, [0,2])",
    "glu(f32[a,2*b], -1)", "glu(f32[2*a,b], 0)", "kthvalue(f32[a,b], 1, -1)", "kthvalue(f32[a,b], 1, 0, true)",
    "linalg_vector_norm(f32[a,b,c], 2, [1])", "linalg_vector_norm(f32[a,b,c], 2, [-1], true)", "linalg_vector_norm(f32[a,b], 1)",
    "norm.Scalar(f32[a,b])", "norm.ScalarOpt_dim(f32[a,b,c], 2, [1], true)", "norm.ScalarOpt_dim(f32[a,b], 2, [-2])",
    "_softmax(f32[a,b,c], 1, false)", "_softmax(f32[a,b,c], -1, false)", "_log_softmax(f32[a,b,c], 0, false)",
    "_log_softmax(f32[a,b,c], -1, false)", "softmax.int(f32[a,b], -1, :f64)", "sort(f32[a,b])", "sort.stable(f32[a,b,c], true, 1, false)",
    "sort.stable(f32[a,b,c], false, -1, true)", "topk(f32[a,b,c], 1)", "topk(f32[a,b,c+1], 2, -1)", "topk(f32[a,b+1,c], 2, 1, false)",
    "std.correction(f32[a,b,c], [1])", "std.dim(f32[a,b,c], [-1], true, true)", "var.correction(f32[a,b,c], [0], 1, true)",
    "var.correction(f32[a,b,c], [1,2])", "var.correction(f32[a,b])", "var.dim(f32[a,b,c], [1], false)", "var.dim(f32[a,b,c], [-1], true, false)",
    "var_mean.correction(f32[a,b,c], [-1], 0, true)", "var_mean.dim(f32[a,b,c], [0], true)", "cumsum(i64[a,b]<9>, 1)",
    // view
    "view(f32[a,b*c], [a,b,c])", "view(f32[a*b,c], [a,b,c])", "view(f32[a,b,c], [a,b*c])", "view(f32[a,b,c], [a*b,c])",
    "view(f32[a,b,c], [a*b*c])", "view(f32[a,b,c], [-1])", "view(f32[a*b*c], [a,b,c])", "view(f32[a,b], [a,1,b])", "view(f32[1,a,b], [a,b])",
    "view(f32[a,b*c,d], [a,b,c,d])", "view(f32[a,b,c,d], [a,b*c,d])", "view(f32[a,b,c,d], [a*b,c*d])", "view(f32[a*b,c*d], [a,b,c,d])",
    "view(f32[a,b*c], [a*b,c])", "view(f32[a*b,c], [a,b*c])", "view(f32[a,b,c], [-1,c])", "view(f32[1,a,b*c], [1,a,-1,c])",
    "view(f32[a,b,c], [a,b,c])", "view(f32[a,1,b,1,c], [a,b,c])", "view(f32[a,b], [a,b,1,1])", "view(f32[a,b,1,c], [1,a,b*c])",
    "view(f32[a,3*b*c], [a,3,b,c])", "view(f32[a,b,3,c], [a,b*3*c])", "view(f32[a*b], [b,a])", "view(f32[a,b,c], [c,a,b])",
    "view(f32[2*a,b], [a,2*b])", "view(f32[6,2*a], [4,3*a])", "reshape(f32[a,b*c], [a,b,c])", "reshape(f32[a,b,c], [-1,c])",
    "_unsafe_view(f32[a,b,c], [a*b,c])", "_unsafe_view(f32[a*b,c], [a,b,c])", "_reshape_alias(f32[a,b], [a*b], [1])",
    "flatten.using_ints(f32[a,b,c])", "flatten.using_ints(f32[a,b,c], 1)", "flatten.using_ints(f32[a,b,c], 0, 1)",
    "flatten.using_ints(f32[a,b,c], -2, -1)", "ravel(f32[a,b])", "unflatten.int(f32[a,b*c], 1, [b,c])", "unflatten.int(f32[a*b,c], 0, [a,-1])",
    "unflatten.int(f32[a,b*c], -1, [b,c])",
    // permute, squeeze, unsqueeze
    "permute(f32[a,b,c], [0,2,1])", "permute(f32[a,b,c], [2,0,1])", "permute(f32[a,b,c,d], [0,2,1,3])", "permute(f32[a,b,c], [-1,0,-2])",
    "transpose.int(f32[a,b,c], 1, 2)", "transpose.int(f32[a,b,c], -1, 0)", "transpose.int(f32[a,b], 0, 1)", "t(f32[a,b])", "t(f32[a])",
    "mT(f32[a,b,c])", "adjoint(f32[a,b,c])", "matrix_H(f32[a,b])", "numpy_T(f32[a,b])", "swapaxes(f32[a,b,c], 0, -1)",
    "swapdims(f32[a,b,c], 1, 0)", "movedim.int(f32[a,b,c], 0, -1)", "movedim.int(f32[a,b,c], 2, 0)",
    "movedim.intlist(f32[a,b,c], [0,1], [-1,0])", "unsqueeze(f32[a,b], 0)", "unsqueeze(f32[a,b], -1)", "unsqueeze(f32[a,b], 1)",
    "unsqueeze(f32[a,b], -2)", "unsqueeze(f32[a], 1)", "squeeze(f32[a,1,b])", "squeeze(f32[1,a])", "squeeze(f32[a,b])",
    "squeeze.dim(f32[a,1,b], 1)", "squeeze.dim(f32[a,b], 0)", "squeeze.dim(f32[a,b,1], -1)", "squeeze.dims(f32[a,1,b,1], [1,-1])",
    "squeeze.dims(f32[a,1,b], [0,1])",
    // slice, split, select, pad, flip, roll, triangles
    "slice.Tensor(f32[a,b,c])", "slice.Tensor(f32[a,b,c], 1)", "slice.Tensor(f32[a,b], 0, 0, 9223372036854775807)",
    "slice.Tensor(f32[a,b+1], 1, 0, b)", "slice.Tensor(f32[a,b+1], -1, 1)", "slice.Tensor(f32[a,2*b], -1, 0, b)",
    "slice.Tensor(f32[a,2*b], -1, b, 9223372036854775807)", "slice.Tensor(f32[a,b,c], 1, -1)", "slice.Tensor(f32[a,b], 1, 0, b, 1)",
    "slice.Tensor(f32[a,2*b], 1, 0, 9223372036854775807, 2)", "slice.Tensor(f32[a,2*b], 1, 1, 9223372036854775807, 2)",
    "slice.Tensor(f32[a,b], 1, 0, b, 3)", "slice.Tensor(f32[3*a,b], 0, 2, 3*a, 3)", "slice.Tensor(f32[a,b], 0, None, None)",
    "slice.Tensor(f32[a,b], 0, 0, 0-1)", "slice.Tensor(f32[2*a,b], 0, 0, 2*a-1, 2)", "slice.Tensor(f32[a,b+2], 1, 2, b+2)",
    "narrow(f32[a,b+1], 1, 1, b)", "narrow(f32[a,b], 0, 0, a)", "narrow(f32[a,2*b], -1, -b, b)", "select.int(f32[a,b,c], 1, 0)",
    "select.int(f32[a,b,c], -1, -1)", "select.int(f32[a,b,c], 0, 0)", "split.Tensor(f32[a,2*b], b, 1)", "split.Tensor(f32[a,b], b, -1)",
    "split.Tensor(f32[3*a,b], a)", "split.Tensor(f32[a,b+1], b, 1)", "split.sizes(f32[a,b+c], [b,c], 1)", "split_with_sizes(f32[a,b+c+d], [b,c,d], -1)",
    "split_with_sizes(f32[a,b], [a])", "chunk(f32[a,3*b], 3, -1)", "chunk(f32[2*a,b], 2)", "unsafe_chunk(f32[a,2*b], 2, 1)",
    "unsafe_split.Tensor(f32[a,2*b], b, 1)", "unsafe_split_with_sizes(f32[a,b+c], [b,c], 1)", "unbind.int(f32[a,b])", "unbind.int(f32[a,b,c], -1)",
    "constant_pad_nd(f32[a,b], [1,2])", "constant_pad_nd(f32[a,b,c], [0,0,1,0], 0.5)", "constant_pad_nd(f32[a,b], [0,0])",
    "constant_pad_nd(f32[a,b+1], [0,-1])", "pad(f32[a,b,c], [0,1])", "flip(f32[a,b,c], [1])", "flip(f32[a,b], [0,-1])", "flip(f32[a,b], [])",
    "roll(f32[a,b], [1], [0])", "roll(f32[a,b], [1,-1], [-1,0])", "roll(f32[a,b], [2])", "roll(f32[a,b], [b], [1])", "tril(f32[a,b])",
    "tril(f32[a,b,c], -1)", "triu(f32[a,b,c,d])",
    // join
    "cat([f32[a,b], f32[a,c]], 1)", "cat([f32[a,b], f32[a,c]], -1)", "cat([f32[a,b], f32[c,b]])", "cat([f32[a,b]], 1)",
    "cat([f32[a,b], f32[a,b], f32[a,c]], 1)", "cat([f32[0], f32[a,b]], 1)", "concat([f32[a,b], f32[a,b]], 0)",
    "concatenate([f32[a,b], f32[a,c]], 1)", "stack([f32[a,b], f32[a,b]])", "stack([f32[a,b], f32[a,b]], -1)", "stack([f32[a,b], f32[a,b]], 1)",
    // expand and repeat
    "expand(f32[a,1], [a,b])", "expand(f32[a,1,c], [a,b,c])", "expand(f32[a,b], [c,a,b])", "expand(f32[a,1], [-1,b])",
    "expand(f32[a,b,1,c], [a,b,d,c])", "expand(f32[1,a], [b,-1])", "expand(f32[], [a,b])", "expand(f32[a,1,1,c], [a,b,d,c])",
    "broadcast_to(f32[a,1], [a,b])", "expand_as(f32[a,1], f32[a,b])", "expand_as(f32[b], f32[a,b])", "repeat(f32[a,b], [1,1])",
    "repeat(f32[a,b], [2,1])", "repeat(f32[a,b], [1,3])", "repeat(f32[a,b], [c,1,1])", "repeat(f32[a,b,1,c], [1,1,d,1])", "tile(f32[a,b], [2])",
    "tile(f32[a,b], [2,1])", "repeat_interleave.self_int(f32[a,b], 2, 0)", "repeat_interleave.self_int(f32[a,b,c], 3, -2)",
    "repeat_interleave.self_int(f32[a,b], 4, 1)", "repeat_interleave.self_int(f32[a,b], 2)", "repeat_interleave.self_int(f32[a], 2, 0, 2*a)",
    "repeat_interleave.self_int(f32[1,a], 2)",
    // index
    "gather(f32[a,b], 1, i64[a,c]<b>)", "gather(f32[a,b,c], 1, i64[a,d,c]<b>)", "gather(f32[a+1,b], 1, i64[a,c]<b>)", "gather(f32[a,b], -1, i64[a,1]<b>)",
    "gather(f32[a,b], 0, i64[c,b]<a>)", "index.Tensor(f32[a,b], [i64[c]<a>])", "index.Tensor(f32[a,b], [None, i64[c]<b>])",
    "index.Tensor(f32[a,b,c], [i64[d]<a>, i64[d]<b>])", "index.Tensor(f32[a,b,c], [i64[d]<a>, None, i64[d]<c>])",
    "index.Tensor(f32[a,b,c], [None, i64[d,1]<b>, i64[1,a]<c>])", "index.Tensor(f32[a,b,c], [None, i64[d,a]<b>])",
    "index.Tensor(f32[a,b], [i64[]<a>])", "index.Tensor(f32[a,b], [bool[a]])", "index.Tensor(f32[a,b,c], [i64[1]<a>, i64[d]<b>])",
    "index_put(f32[a,b], [i64[]<a>], f32[b])", "index_put(f32[a,b], [None, i64[1]<b>], f32[a,1])", "index_put(f32[a,b], [None, i64[]<b>], f32[])",
    "index_put(f32[a,b], [i64[c]<a>], f32[c,b], true)", "index_put(f32[a,b,c], [None, i64[d]<b>], f32[d,c], true)", "index_put(f32[a,b], [bool[a,b]], f32[])",
    "index_select(f32[a,b], 0, i64[c]<a>)", "index_select(f32[a,b,c], -1, i64[d]<c>)", "index_select(f32[a,b,c], 1, i64[d]<b>)",
    "embedding(f32[a,b], i64[c,d]<a>)", "embedding(f32[a,b], i64[c]<a>, 0)", "one_hot(i64[a,b]<c>, c)", "one_hot(i64[a]<3>, -1)",
    "masked_select(f32[a,b], bool[a,b])", "nonzero(i64[a,b]<2>)", "scatter.value(f32[a,b], 1, i64[a,c]<b>, 0.5)",
    "scatter.value(f32[a,b,c], -1, i64[a,b,1]<c>, 0.5)", "scatter.value(f32[a+1,b], 1, i64[a,1]<b>, 0.5)",
    "scatter.src(f32[a,b], 1, i64[a,1]<b>, f32[a,1])", "scatter.src(f32[a,b], 0, i64[1,b]<a>, f32[1,b])", "scatter.src(f32[a,b], 1, i64[a,1]<b>, f32[a+1,b])",
    "scatter_add(f32[a,b], 1, i64[a,c]<b>, f32[a,c])", "scatter_add(f32[a,b,c], 0, i64[d,b,c]<a>, f32[d,b,c])",
    // contraction
    "mm(f32[a,b], f32[b,c])", "bmm(f32[a,b,c], f32[a,c,d])", "addmm(f32[c], f32[a,b], f32[b,c])", "addmm(f32[a,c], f32[a,b], f32[b,c], 0.5, 2.0)",
    "addmm(f32[a,1], f32[a,b], f32[b,c])", "addmv(f32[a], f32[a,b], f32[b])", "baddbmm(f32[a,b,d], f32[a,b,c], f32[a,c,d])",
    "baddbmm(f32[1,d], f32[a,b,c], f32[a,c,d])", "matmul(f32[a,b,c], f32[c,d])", "matmul(f32[a,b,c,d], f32[a,b,d,c])", "matmul(f32[a,1,c,d], f32[b,d,c])",
    "matmul(f32[a], f32[a])", "matmul(f32[a,b], f32[b])", "matmul(f32[a], f32[b,a,c])", "matmul(f32[a,b,c], f32[c])", "matmul(f32[a,b], f32[c,b,d])",
    "dot(f32[a], f32[a])", "vdot(f32[a], f32[a])", "mv(f32[a,b], f32[b])", "ger(f32[a], f32[b])", "outer(f32[a], f32[b])",
    "linear(f32[a,b,c], f32[d,c])", "linear(f32[a,c], f32[d,c], f32[d])", "linear(f32[a,b,c], f32[d,c], f32[d])", "linear(f32[c], f32[d,c], f32[d])",
    "einsum(\"ab,bc->ac\", [f32[a,b], f32[b,c]])", "einsum(\"bij,bjk->bik\", [f32[a,b,c], f32[a,c,d]])", "einsum(\"i,j->ij\", [f32[a], f32[b]])",
    "einsum(\"bhld,bhsd->bhls\", [f32[a,b,c,d], f32[a,b,c,d]])", "einsum(\"ab->ba\", [f32[a,b]])", "einsum(\"...ab->...ba\", [f32[a,b,c]])",
    "einsum(\"aa->a\", [f32[a,a]])", "einsum(\"ab,ab->a\", [f32[a,1], f32[a,b]])",
    // attention
    "scaled_dot_product_attention(f32[a,b,c,d], f32[a,b,c,d], f32[a,b,c,d])", "scaled_dot_product_attention(f32[a,b,c,d], f32[a,b,c,d], f32[a,b,c,d], None, 0.0, true)",
    "scaled_dot_product_attention(f32[a,b,c,d], f32[a,b,e,d], f32[a,b,e,d], f32[a,b,c,e])", "scaled_dot_product_attention(f32[a,b,c,d], f32[a,b,e,d], f32[a,b,e,d], f32[c,e])",
    "scaled_dot_product_attention(f32[a,b,c,d], f32[a,b,e,d], f32[a,b,e,d], f32[a,1,1,e])", "scaled_dot_product_attention(f32[a,b,c,d], f32[a,b,e,d], f32[a,b,e,d], f32[1,b,c,e])",
    "scaled_dot_product_attention(f32[a,b*e,c,d], f32[a,b,c,d], f32[a,b,c,d], None, 0.0, true, None, true)",
    "scaled_dot_product_attention(f32[a,b*4,c,d], f32[a,b,c,d], f32[a,b,c,d], None, 0.0, false, 0.5, true)",
    "scaled_dot_product_attention(f32[a,4*b,c,d], f32[a,b,e,d], f32[a,b,e,d], f32[a,1,c,e], 0.0, false, None, true)",
    "scaled_dot_product_attention(f32[a,b,c,d], f32[a,b,c,d], f32[a,b,c,2*d])", "scaled_dot_product_attention(f32[a,c,d], f32[a,e,d], f32[a,e,d])",
    // normalisation
    "native_layer_norm(f32[a,b,c], [c], f32[c], f32[c], 1e-5)", "native_layer_norm(f32[a,b,c], [b,c], None, None, 1e-5)", "layer_norm(f32[a,b,c], [c], f32[c], f32[c])",
    "layer_norm(f32[a,b], [b])", "rms_norm(f32[a,b,c], [c], f32[c])", "rms_norm(f32[a,b,c,d], [d], None, 1e-6)", "_fused_rms_norm(f32[a,b,c], [c], f32[c], 1e-6)",
    "native_group_norm(f32[a,2*b,c], f32[2*b], f32[2*b], a, 2*b, c, b, 1e-5)", "native_group_norm(f32[a,b,c,d], None, None, a, b, c*d, 1, 1e-5)",
    "group_norm(f32[a,2*b,c], b, f32[2*b], f32[2*b])", "group_norm(f32[a,4*b,c], 4, None, None)",
    "_native_batch_norm_legit_no_training(f32[a,b,c], f32[b], f32[b], f32[b], f32[b]<9>, 0.1, 1e-5)", "batch_norm(f32[a,b,c], f32[b], f32[b], f32[b], f32[b]<9>, false, 0.1, 1e-5, false)",
    "native_batch_norm(f32[a,b,c+1], f32[b], f32[b], None, None, true, 0.1, 1e-5)", "native_batch_norm(f32[a,b,c], None, None, f32[b], f32[b]<9>, false, 0.1, 1e-5)",
    // loss
    "nll_loss_forward(f32[a,b], i64[a]<b>, None, 1, -100)", "nll_loss_forward(f32[a,b], i64[a]<b>, f32[b]<9>, 0, 1)", "nll_loss_forward(f32[a,b], i64[a]<b>, None, 2, -100)",
    "nll_loss(f32[a,b], i64[a]<b>, None, 0)", "nll_loss_nd(f32[a,b], i64[a]<b>)", "nll_loss_nd(f32[a,b,c], i64[a,c]<b>, None, 0)",
    "nll_loss2d_forward(f32[a,b,c,d], i64[a,c,d]<b>, None, 0, -100)", "cross_entropy_loss(f32[a,b], i64[a]<b>)", "cross_entropy_loss(f32[a,b], i64[a]<b>, None, 0, -100, 0.0)",
    "cross_entropy_loss(f32[a,b], f32[a,b], None, 0)", "cross_entropy_loss(f32[a,b,c], i64[a,c]<b>, f32[b]<9>, 0)", "cross_entropy_loss(f32[a,b], i64[a]<b>, None, 2, -100, 0.1)",
    "mse_loss(f32[a,b], f32[a,b])", "mse_loss(f32[a,b], f32[a,b], 0)", "l1_loss(f32[a,b], f32[a,b], 0)", "smooth_l1_loss(f32[a,b], f32[a,b], 0)", "huber_loss(f32[a,b], f32[a,b], 2)",
    "binary_cross_entropy_with_logits(f32[a,b], f32[a,b], None, None, 0)", "binary_cross_entropy(f32[a,b]<2>, f32[a,b]<2>, None, 0)",
};

const std::vector<std::string_view> kRandom = {"empty.memory_format([a,b])", "empty_like(f32[a,b])", "empty_strided([a,b], [b,1])", "new_empty(f32[a,b], [a,b])",
                                               "rand([a,b])", "randn([a,b,c])", "rand_like(f32[a,b])", "randn_like(f32[a,b,c])"};

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
  for (const std::string_view call : kOthers) out.push_back({fmt::format("aten::{}", call), false});
  for (const std::string_view call : kRandom) out.push_back({fmt::format("aten::{}", call), true});
  return out;
}

}  // namespace

const std::vector<Example>& examples() {
  static const std::vector<Example> all = makeExamples();
  return all;
}

}  // namespace cleave::rules
