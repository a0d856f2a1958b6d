#include "libtorch/bridge/experts.h"

#include "base/quantities.h"
#include "graph/operators.h"

#include <ATen/ATen.h>
#include <torch/library.h>

#include <fmt/ranges.h>

#include <algorithm>

namespace cleave::bridge {
namespace {

struct NamedActivation {
  std::string_view name;
  at::Tensor (*apply)(const at::Tensor&);
};
constexpr NamedActivation kActivations[] = {
    {"silu", [](const at::Tensor& x) { return at::silu(x); }},
    {"gelu", [](const at::Tensor& x) { return at::gelu(x); }},
    {"gelu_tanh", [](const at::Tensor& x) { return at::gelu(x, "tanh"); }},
    {"quick_gelu", [](const at::Tensor& x) { return x.mul(1.702).sigmoid_().mul(x); }},
    {"relu", [](const at::Tensor& x) { return at::relu(x); }},
    {"relu2", [](const at::Tensor& x) { return at::relu(x).square(); }},
    {"tanh", [](const at::Tensor& x) { return at::tanh(x); }},
    {"sigmoid", [](const at::Tensor& x) { return at::sigmoid(x); }},
};

bool isClamped(const ExpertsCall& call) { return call.activation == graph::kClampedSwiglu; }

/// gate · sigmoid(alpha · gate) · (up + 1). Gate and up alternate and are clamped to the limit.
at::Tensor clampedSwiglu(const ExpertsCall& call, at::Tensor gateUp) {
  const at::Tensor gate = gateUp.slice(-1, 0, gateUp.size(-1), 2).clamp_max(call.limit);
  const at::Tensor up = gateUp.slice(-1, 1, gateUp.size(-1), 2).clamp(-call.limit, call.limit).add(1);
  gateUp.reset();
  const at::Tensor swish = gate.mul(gate.mul(call.alpha).sigmoid());
  return up.mul(swish);
}

/// Runs one expert on the tokens that chose it. Frees its inputs early, as graph/expert_memory.h assumes.
Result<at::Tensor> runExpert(const ExpertsCall& call, std::int64_t held, at::Tensor tokens) {
  std::optional<at::Tensor> bias;
  if (call.gateUpBias) bias = (*call.gateUpBias)[held];
  if (isClamped(call)) {
    at::Tensor gateUp = bias ? at::addmm(*bias, tokens, call.gateUp[held]) : tokens.matmul(call.gateUp[held]);
    tokens.reset();
    return clampedSwiglu(call, std::move(gateUp)).matmul(call.down[held]);
  }
  const auto activation = std::ranges::find(kActivations, std::string_view(call.activation), &NamedActivation::name);
  if (activation == std::end(kActivations)) {
    std::vector<std::string_view> names;
    for (const NamedActivation& known : kActivations) names.push_back(known.name);
    return fail(ErrorCode::BadInput, "activation \"{}\" is not one of {} and {}.", call.activation.substr(0, 40),
                fmt::join(names, ", "), graph::kClampedSwiglu);
  }
  const auto halves = at::linear(tokens, call.gateUp[held], bias).chunk(2, -1);
  tokens.reset();
  const at::Tensor gate = activation->apply(halves[0]);
  return at::linear(gate.mul(halves[1]), call.down[held]);
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
  // Lives as long as the process, because the dispatcher may be destroyed first.
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
    return fail(ErrorCode::BadInput, "expert {} is out of range: the layer has {}.",
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
