#include "libtorch/bridge/experts.h"

#include "base/quantities.h"
#include "graph/operators.h"

#include <ATen/ATen.h>
#include <torch/library.h>

namespace cleave::bridge {
namespace {

std::optional<at::Tensor> activated(const at::Tensor& x, std::string_view activation) {
  if (activation == "silu") return at::silu(x);
  if (activation == "gelu") return at::gelu(x);
  if (activation == "gelu_tanh") return at::gelu(x, "tanh");
  if (activation == "relu") return at::relu(x);
  return std::nullopt;
}

bool isClamped(const ExpertsCall& call) { return call.activation == graph::kClampedSwiglu; }

/// gate · sigmoid(alpha · gate) · (up + 1), where gate and up are in turn and held within the limit.
at::Tensor clampedSwiglu(const ExpertsCall& call, const at::Tensor& gateUp) {
  const at::Tensor gate = gateUp.slice(-1, 0, gateUp.size(-1), 2).clamp_max(call.limit);
  const at::Tensor up = gateUp.slice(-1, 1, gateUp.size(-1), 2).clamp(-call.limit, call.limit);
  return up.add(1).mul(gate.mul(gate.mul(call.alpha).sigmoid()));
}

/// One expert on the tokens that chose it.
Result<at::Tensor> runExpert(const ExpertsCall& call, std::int64_t held, const at::Tensor& tokens) {
  if (isClamped(call)) {
    const at::Tensor product = tokens.matmul(call.gateUp[held]);
    const at::Tensor gateUp = call.gateUpBias ? product.add((*call.gateUpBias)[held]) : product;
    return clampedSwiglu(call, gateUp).matmul(call.down[held]);
  }
  std::optional<at::Tensor> bias;
  if (call.gateUpBias) bias = (*call.gateUpBias)[held];
  const auto halves = at::linear(tokens, call.gateUp[held], bias).chunk(2, -1);
  const auto gate = activated(halves[0], call.activation);
  if (gate) return at::linear(gate->mul(halves[1]), call.down[held]);
  return fail(ErrorCode::BadInput, "activation \"{}\" is none of silu, gelu, gelu_tanh, relu and {}.",
              call.activation.substr(0, 40), graph::kClampedSwiglu);
}

at::Tensor moeExperts(const at::Tensor& hidden, const at::Tensor& ids, const at::Tensor& shares,
                      const at::Tensor& gateUp, const at::Tensor& down, c10::string_view activation,
                      const std::optional<at::Tensor>& gateUpBias, double alpha, double limit) {
  auto result = runExperts({hidden, ids, shares, gateUp, down, activation, gateUpBias, alpha, limit, gateUp.size(0)});
  TORCH_CHECK(result.has_value(), result.error().message);
  return *std::move(result);
}

using MoeExperts = at::Tensor(const at::Tensor&, const at::Tensor&, const at::Tensor&, const at::Tensor&,
                              const at::Tensor&, c10::string_view, const std::optional<at::Tensor>&, double, double);

const c10::TypedOperatorHandle<MoeExperts>& registered() {
  // Lives as long as the process: unregistering while the dispatcher is torn down would be out of order.
  static const auto* const handle = [] {
    auto* library = new torch::Library(torch::Library::FRAGMENT, "cleave", std::nullopt, __FILE__, __LINE__);
    library->def(
        "moe_experts(Tensor hidden, Tensor topk_ids, Tensor topk_weights, Tensor gate_up, Tensor down, "
        "str activation, Tensor? gate_up_bias, float alpha, float limit) -> Tensor",
        torch::dispatch(c10::DispatchKey::CompositeImplicitAutograd, TORCH_FN(moeExperts)));
    const auto found = c10::Dispatcher::singleton().findSchemaOrThrow("cleave::moe_experts", "");
    return new c10::TypedOperatorHandle<MoeExperts>(found.typed<MoeExperts>());
  }();
  return *handle;
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
    const at::Tensor tokens = places.select(1, 0), choices = places.select(1, 1);
    CLEAVE_TRY(const at::Tensor out, runExpert(call, held, call.hidden.index_select(0, tokens)));
    const at::Tensor share = call.shares.index({tokens, choices}).unsqueeze(-1);
    result.index_add_(0, tokens, out.mul(share.to(out.scalar_type())));
  }
  return result;
}

at::Tensor callExperts(const ExpertsCall& call) {
  return registered().call(call.hidden, call.ids, call.shares, call.gateUp, call.down, call.activation, call.gateUpBias,
                           call.alpha, call.limit);
}

}  // namespace cleave::bridge
