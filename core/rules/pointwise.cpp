/// Element-wise operators: dimension i of every input, counted from the right, runs along dimension i of the result.
#include "rules/axes.h"

namespace cleave::rules {

Verdict pointwise(Call& call) {
  Axes axes(call);
  axes.allowPadding();
  const int rank = call.resultRank(0);
  std::vector<int> axisOf(static_cast<std::size_t>(rank));
  for (int d = 0; d < rank; ++d) {
    axisOf[static_cast<std::size_t>(d)] = axes.kept();
    for (int r = 0; r < call.resultCount(); ++r) {
      if (call.resultRank(r) == rank) axes.result(r, d, axisOf[static_cast<std::size_t>(d)]);
    }
  }
  for (int i = 0; i < call.operandCount(); ++i) {
    const int offset = rank - call.rank(i);
    for (int d = 0; d < call.rank(i); ++d) {
      if (d + offset < 0) {
        call.complain("an input has more dimensions than the result");
        continue;
      }
      const std::int64_t size = call.shape(i)[static_cast<std::size_t>(d)];
      const std::int64_t resultSize = call.resultShape(0)[static_cast<std::size_t>(d + offset)];
      if (size == resultSize) axes.operand(i, d, axisOf[static_cast<std::size_t>(d + offset)]);
      if (size != resultSize && size != 1) call.complain("the sizes of the inputs do not broadcast");
    }
  }
  return axes.follow();
}

namespace {

constexpr Entry kPointwiseEntries[] = {
    {"aten::abs", pointwise},
    {"aten::acos", pointwise},
    {"aten::acosh", pointwise},
    {"aten::add.Scalar", pointwise},
    {"aten::add.Tensor", pointwise},
    {"aten::addcdiv", pointwise},
    {"aten::addcmul", pointwise},
    {"aten::asin", pointwise},
    {"aten::asinh", pointwise},
    {"aten::atan", pointwise},
    {"aten::atan2", pointwise},
    {"aten::atanh", pointwise},
    {"aten::bernoulli", pointwise},
    {"aten::bernoulli.p", pointwise},
    {"aten::bitwise_and.Scalar", pointwise},
    {"aten::bitwise_and.Tensor", pointwise},
    {"aten::bitwise_left_shift.Tensor", pointwise},
    {"aten::bitwise_left_shift.Tensor_Scalar", pointwise},
    {"aten::bitwise_not", pointwise},
    {"aten::bitwise_or.Scalar", pointwise},
    {"aten::bitwise_or.Tensor", pointwise},
    {"aten::bitwise_right_shift.Tensor", pointwise},
    {"aten::bitwise_right_shift.Tensor_Scalar", pointwise},
    {"aten::bitwise_xor.Scalar", pointwise},
    {"aten::bitwise_xor.Tensor", pointwise},
    {"aten::ceil", pointwise},
    {"aten::celu", pointwise},
    {"aten::clamp", pointwise},
    {"aten::clamp.Tensor", pointwise},
    {"aten::clamp_max", pointwise},
    {"aten::clamp_max.Tensor", pointwise},
    {"aten::clamp_min", pointwise},
    {"aten::clamp_min.Tensor", pointwise},
    {"aten::cos", pointwise},
    {"aten::cosh", pointwise},
    {"aten::deg2rad", pointwise},
    {"aten::div.Scalar", pointwise},
    {"aten::div.Scalar_mode", pointwise},
    {"aten::div.Tensor", pointwise},
    {"aten::div.Tensor_mode", pointwise},
    {"aten::dropout", pointwise},
    {"aten::elu", pointwise},
    {"aten::eq.Scalar", pointwise},
    {"aten::eq.Tensor", pointwise},
    {"aten::erf", pointwise},
    {"aten::erfc", pointwise},
    {"aten::erfinv", pointwise},
    {"aten::exp", pointwise},
    {"aten::exp2", pointwise},
    {"aten::expm1", pointwise},
    {"aten::fill.Scalar", pointwise},
    {"aten::fill.Tensor", pointwise},
    {"aten::floor", pointwise},
    {"aten::floor_divide", pointwise},
    {"aten::floor_divide.Scalar", pointwise},
    {"aten::fmax", pointwise},
    {"aten::fmin", pointwise},
    {"aten::fmod.Scalar", pointwise},
    {"aten::fmod.Tensor", pointwise},
    {"aten::frac", pointwise},
    {"aten::ge.Scalar", pointwise},
    {"aten::ge.Tensor", pointwise},
    {"aten::gelu", pointwise},
    {"aten::gt.Scalar", pointwise},
    {"aten::gt.Tensor", pointwise},
    {"aten::hardsigmoid", pointwise},
    {"aten::hardswish", pointwise},
    {"aten::hardtanh", pointwise},
    {"aten::hypot", pointwise},
    {"aten::isfinite", pointwise},
    {"aten::isinf", pointwise},
    {"aten::isnan", pointwise},
    {"aten::le.Scalar", pointwise},
    {"aten::le.Tensor", pointwise},
    {"aten::leaky_relu", pointwise},
    {"aten::lerp.Scalar", pointwise},
    {"aten::lerp.Tensor", pointwise},
    {"aten::log", pointwise},
    {"aten::log10", pointwise},
    {"aten::log1p", pointwise},
    {"aten::log2", pointwise},
    {"aten::log_sigmoid", pointwise},
    {"aten::logaddexp", pointwise},
    {"aten::logical_and", pointwise},
    {"aten::logical_not", pointwise},
    {"aten::logical_or", pointwise},
    {"aten::logical_xor", pointwise},
    {"aten::logit", pointwise},
    {"aten::lt.Scalar", pointwise},
    {"aten::lt.Tensor", pointwise},
    {"aten::masked_fill.Scalar", pointwise},
    {"aten::masked_fill.Tensor", pointwise},
    {"aten::maximum", pointwise},
    {"aten::minimum", pointwise},
    {"aten::mish", pointwise},
    {"aten::mul.Scalar", pointwise},
    {"aten::mul.Tensor", pointwise},
    {"aten::nan_to_num", pointwise},
    {"aten::native_dropout", pointwise},
    {"aten::ne.Scalar", pointwise},
    {"aten::ne.Tensor", pointwise},
    {"aten::neg", pointwise},
    {"aten::pow.Scalar", pointwise},
    {"aten::pow.Tensor_Scalar", pointwise},
    {"aten::pow.Tensor_Tensor", pointwise},
    {"aten::reciprocal", pointwise},
    {"aten::relu", pointwise},
    {"aten::relu6", pointwise},
    {"aten::remainder.Scalar", pointwise},
    {"aten::remainder.Scalar_Tensor", pointwise},
    {"aten::remainder.Tensor", pointwise},
    {"aten::round", pointwise},
    {"aten::round.decimals", pointwise},
    {"aten::rsqrt", pointwise},
    {"aten::rsub.Scalar", pointwise},
    {"aten::rsub.Tensor", pointwise},
    {"aten::sigmoid", pointwise},
    {"aten::sign", pointwise},
    {"aten::silu", pointwise},
    {"aten::sin", pointwise},
    {"aten::sinh", pointwise},
    {"aten::softplus", pointwise},
    {"aten::sqrt", pointwise},
    {"aten::square", pointwise},
    {"aten::sub.Scalar", pointwise},
    {"aten::sub.Tensor", pointwise},
    {"aten::tan", pointwise},
    {"aten::tanh", pointwise},
    {"aten::trunc", pointwise},
    {"aten::where.Scalar", pointwise},
    {"aten::where.ScalarOther", pointwise},
    {"aten::where.ScalarSelf", pointwise},
    {"aten::where.self", pointwise},
    {"aten::xlogy.Tensor", pointwise},
};

constexpr Entry kCopies[] = {
    {"aten::_to_copy", pointwise},        {"aten::alias", pointwise},    {"aten::clone", pointwise},
    {"aten::contiguous", pointwise},      {"aten::copy", pointwise},     {"aten::detach", pointwise},
    {"aten::lift_fresh_copy", pointwise}, {"aten::positive", pointwise}, {"aten::to.dtype", pointwise},
    {"aten::to.dtype_layout", pointwise}, {"aten::type_as", pointwise},
};

}  // namespace

FamilyTable pointwiseFamily() {
  return {"pointwise", "element-wise with broadcasting: all inputs split alike, except dimensions of size 1",
          kPointwiseEntries};
}

FamilyTable copyFamily() { return {"copies", "copies, casts and aliases keep the placement", kCopies}; }

}  // namespace cleave::rules
