#include "solve/cost/operator_costs.h"

#include "graph/operators.h"

#include <algorithm>
#include <array>

/// What is saved follows PyTorch's tools/autograd/derivatives.yaml.

namespace cleave::solve {
namespace {

struct Row {
  std::string_view name;  ///< without namespace and overload
  Work work = Work::Elementwise;
  Saves saves = Saves::Nothing;
  bool stopsGradient = false;
};

constexpr Row products(std::string_view name) { return {name, Work::Product, Saves::Factors}; }
constexpr Row keeps(std::string_view name, Saves saves) { return {name, Work::Elementwise, saves}; }
constexpr Row constant(std::string_view name) { return {name, Work::Elementwise, Saves::Nothing, true}; }

constexpr std::array kRows{
    products("addmm"), products("addmv"), products("baddbmm"), products("bmm"), products("dot"), products("einsum"),
    products("linear"), products("matmul"), products("mm"), products("mv"), products("vdot"),
    Row{"convolution", Work::Convolution, Saves::Factors}, Row{"conv1d", Work::Convolution, Saves::Factors},
    Row{"conv2d", Work::Convolution, Saves::Factors}, Row{"conv3d", Work::Convolution, Saves::Factors},

    Row{"scaled_dot_product_attention", Work::Attention, Saves::Attention},
    Row{"_scaled_dot_product_attention_math", Work::Attention, Saves::Attention},
    Row{"_scaled_dot_product_cudnn_attention", Work::Attention, Saves::Attention},
    Row{"_scaled_dot_product_efficient_attention", Work::Attention, Saves::Attention},
    Row{"_scaled_dot_product_flash_attention", Work::Attention, Saves::Attention},
    Row{"_scaled_dot_product_flash_attention_for_cpu", Work::Attention, Saves::Attention},
    Row{"_scaled_dot_product_fused_attention_overrideable", Work::Attention, Saves::Attention},

    Row{"embedding", Work::Lookup, Saves::Discrete}, Row{"gather", Work::Lookup, Saves::Discrete},
    Row{"index", Work::Lookup, Saves::Discrete}, Row{"index_select", Work::Lookup, Saves::Discrete},
    Row{"masked_select", Work::Lookup, Saves::Discrete},
    keeps("index_put", Saves::Discrete), keeps("masked_fill", Saves::Discrete), keeps("scatter", Saves::Discrete),
    keeps("scatter_add", Saves::Discrete), keeps("where", Saves::Discrete),

    keeps("addcdiv", Saves::Operands), keeps("addcmul", Saves::Factors), keeps("atan2", Saves::Operands),
    keeps("hypot", Saves::Operands), keeps("ger", Saves::Factors), keeps("lerp", Saves::Operands),
    keeps("mul", Saves::Factors), keeps("outer", Saves::Factors), keeps("xlogy", Saves::Operands),
    keeps("div", Saves::Quotient), keeps("fmax", Saves::Operands), keeps("fmin", Saves::Operands),
    keeps("maximum", Saves::Operands), keeps("minimum", Saves::Operands), keeps("logaddexp", Saves::Operands),

    keeps("_log_softmax", Saves::Result), keeps("_safe_softmax", Saves::Result), keeps("_softmax", Saves::Result),
    keeps("exp", Saves::Result), keeps("exp2", Saves::Result), keeps("expm1", Saves::Result),
    keeps("log_softmax", Saves::Result), keeps("reciprocal", Saves::Result), keeps("relu", Saves::Result),
    keeps("rsqrt", Saves::Result), keeps("sigmoid", Saves::Result), keeps("softmax", Saves::Result),
    keeps("sqrt", Saves::Result), keeps("tan", Saves::Result), keeps("tanh", Saves::Result),
    keeps("hardsigmoid", Saves::First),

    keeps("abs", Saves::First), keeps("acos", Saves::First), keeps("acosh", Saves::First), keeps("asin", Saves::First),
    keeps("asinh", Saves::First), keeps("atan", Saves::First), keeps("atanh", Saves::First), keeps("celu", Saves::First),
    keeps("clamp", Saves::First), keeps("clamp_max", Saves::First), keeps("clamp_min", Saves::First),
    keeps("cos", Saves::First), keeps("cosh", Saves::First), keeps("elu", Saves::First), keeps("erf", Saves::First),
    keeps("erfc", Saves::First), keeps("erfinv", Saves::FirstAndResult), keeps("gelu", Saves::First),
    keeps("glu", Saves::First), keeps("hardswish", Saves::First), keeps("hardtanh", Saves::First),
    keeps("leaky_relu", Saves::First), keeps("log", Saves::First), keeps("log10", Saves::First),
    keeps("log1p", Saves::First), keeps("log2", Saves::First), keeps("log_sigmoid", Saves::First),
    keeps("mish", Saves::First), keeps("nan_to_num", Saves::First), keeps("pow", Saves::First),
    keeps("relu6", Saves::First), keeps("silu", Saves::First), keeps("sin", Saves::First), keeps("sinh", Saves::First),
    keeps("softplus", Saves::First), keeps("square", Saves::First), keeps("std", Saves::FirstAndResult),
    keeps("var", Saves::First), keeps("var_mean", Saves::First),

    keeps("_fused_rms_norm", Saves::Operands), keeps("_native_batch_norm_legit_no_training", Saves::Operands),
    keeps("batch_norm", Saves::Operands), keeps("group_norm", Saves::Operands), keeps("layer_norm", Saves::Operands),
    keeps("native_batch_norm", Saves::Operands), keeps("native_group_norm", Saves::Operands),
    keeps("native_layer_norm", Saves::Operands), keeps("rms_norm", Saves::Operands),

    keeps("amax", Saves::FirstAndResult), keeps("amin", Saves::FirstAndResult), keeps("cumprod", Saves::FirstAndResult),
    keeps("linalg_vector_norm", Saves::FirstAndResult), keeps("logcumsumexp", Saves::FirstAndResult),
    keeps("logsumexp", Saves::FirstAndResult), keeps("norm", Saves::FirstAndResult), keeps("prod", Saves::FirstAndResult),

    Row{"moe_experts", Work::Product, Saves::Experts},
    keeps("cross_entropy_loss", Saves::Loss), keeps("binary_cross_entropy", Saves::Operands),
    keeps("binary_cross_entropy_with_logits", Saves::Operands), keeps("huber_loss", Saves::Operands),
    keeps("l1_loss", Saves::Operands), keeps("mse_loss", Saves::Operands), keeps("nll_loss", Saves::Discrete),
    keeps("nll_loss2d_forward", Saves::Discrete), keeps("nll_loss_forward", Saves::Discrete),
    keeps("nll_loss_nd", Saves::Discrete), keeps("smooth_l1_loss", Saves::Operands),
    keeps("dropout", Saves::Mask), keeps("native_dropout", Saves::Discrete),

    keeps("_reshape_alias", Saves::Nothing), keeps("_to_copy", Saves::Nothing), keeps("_unsafe_view", Saves::Nothing),
    keeps("add", Saves::Nothing), keeps("adjoint", Saves::Nothing), keeps("broadcast_to", Saves::Nothing),
    keeps("cat", Saves::Nothing), keeps("ceil", Saves::Nothing), keeps("clone", Saves::Nothing),
    keeps("concat", Saves::Nothing), keeps("concatenate", Saves::Nothing), keeps("constant_pad_nd", Saves::Nothing),
    keeps("contiguous", Saves::Nothing), keeps("copy", Saves::Nothing), keeps("cumsum", Saves::Nothing),
    keeps("deg2rad", Saves::Nothing), keeps("expand_as", Saves::Nothing), keeps("flatten", Saves::Nothing),
    keeps("flip", Saves::Nothing), keeps("floor", Saves::Nothing), keeps("fmod", Saves::Nothing),
    keeps("frac", Saves::Nothing), keeps("lift_fresh_copy", Saves::Nothing), keeps("mT", Saves::Nothing),
    keeps("matrix_H", Saves::Nothing), keeps("mean", Saves::Nothing), keeps("movedim", Saves::Nothing),
    keeps("nansum", Saves::Nothing), keeps("neg", Saves::Nothing), keeps("numpy_T", Saves::Nothing),
    keeps("pad", Saves::Nothing), keeps("positive", Saves::Nothing), keeps("ravel", Saves::Nothing),
    keeps("remainder", Saves::Nothing), keeps("repeat", Saves::Nothing), keeps("repeat_interleave", Saves::Nothing),
    keeps("reshape", Saves::Nothing), keeps("roll", Saves::Nothing), keeps("round", Saves::Nothing),
    keeps("rsub", Saves::Nothing), keeps("sign", Saves::Nothing), keeps("stack", Saves::Nothing),
    keeps("sub", Saves::Nothing), keeps("sum", Saves::Nothing), keeps("swapaxes", Saves::Nothing),
    keeps("swapdims", Saves::Nothing), keeps("tile", Saves::Nothing), keeps("to", Saves::Nothing),
    keeps("tril", Saves::Nothing), keeps("triu", Saves::Nothing), keeps("trunc", Saves::Nothing),
    keeps("type_as", Saves::Nothing), keeps("unflatten", Saves::Nothing), keeps("unsafe_chunk", Saves::Nothing),
    keeps("unsafe_split", Saves::Nothing), keeps("unsafe_split_with_sizes", Saves::Nothing),
    keeps("max", Saves::Discrete), keeps("min", Saves::Discrete), keeps("median", Saves::Discrete),
    keeps("sort", Saves::Discrete), keeps("topk", Saves::Discrete), keeps("kthvalue", Saves::Discrete),

    constant("arange"), constant("bernoulli"), constant("empty"), constant("empty_like"), constant("empty_strided"),
    constant("eye"), constant("fill"), constant("full"), constant("full_like"), constant("linspace"),
    constant("new_empty"), constant("new_full"), constant("new_ones"), constant("new_zeros"), constant("ones"),
    constant("ones_like"), constant("rand"), constant("rand_like"), constant("randn"), constant("randn_like"),
    constant("scalar_tensor"), constant("zeros"), constant("zeros_like"),
};

std::string_view baseName(std::string_view op) {
  const auto colons = op.rfind("::");
  if (colons != std::string_view::npos) op.remove_prefix(colons + 2);
  return op.substr(0, op.find('.'));
}

}  // namespace

OperatorCosts operatorCosts(std::string_view op) {
  if (graph::isAliasing(op)) return {Work::Nothing, Saves::Nothing, op == "aten::detach"};
  const std::string_view base = baseName(op);
  const auto row = std::find_if(kRows.begin(), kRows.end(), [&](const Row& candidate) { return candidate.name == base; });
  return row == kRows.end() ? OperatorCosts{} : OperatorCosts{row->work, row->saves, row->stopsGradient};
}

}  // namespace cleave::solve
