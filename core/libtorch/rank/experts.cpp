#include "libtorch/rank/experts.h"

#include "base/quantities.h"

#include <ATen/ATen.h>

#include <optional>

namespace cleave::torch_rank {
namespace {

std::optional<at::Tensor> activated(const at::Tensor& x, std::string_view activation) {
  if (activation == "silu") return at::silu(x);
  if (activation == "gelu") return at::gelu(x);
  if (activation == "gelu_tanh") return at::gelu(x, "tanh");
  if (activation == "relu") return at::relu(x);
  return std::nullopt;
}

}  // namespace

Result<at::Tensor> runExperts(const ExpertsCall& call) {
  const at::Tensor isOutside = (call.ids < 0) | (call.ids >= call.experts);
  if (isOutside.any().item<bool>()) {
    return fail(ErrorCode::BadInput, "expert {} is outside the {}.",
                call.ids.masked_select(isOutside)[0].item<std::int64_t>(), counted(call.experts, "expert"));
  }
  at::Tensor result = at::zeros_like(call.hidden);
  for (std::int64_t held = 0; held < call.gateUp.size(0); ++held) {
    const at::Tensor places = (call.ids == call.first + held).nonzero();
    const at::Tensor tokens = places.select(1, 0), slots = places.select(1, 1);
    const auto halves = at::linear(call.hidden.index_select(0, tokens), call.gateUp[held]).chunk(2, -1);
    const auto gate = activated(halves[0], call.activation);
    if (!gate) {
      return fail(ErrorCode::BadInput, "activation \"{}\" is none of silu, gelu, gelu_tanh and relu.",
                  call.activation.substr(0, 40));
    }
    const at::Tensor out = at::linear(gate->mul(halves[1]), call.down[held]);
    const at::Tensor share = call.shares.index({tokens, slots}).unsqueeze(-1);
    result.index_add_(0, tokens, out.mul(share.to(out.scalar_type())));
  }
  return result;
}

}  // namespace cleave::torch_rank
