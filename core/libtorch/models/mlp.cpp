#include "libtorch/models/build.h"

#include <ATen/ATen.h>

namespace cleave::models {
namespace {

struct MlpCall {
  Build& build;
  const std::string& block;
  const Tensor& input;
  std::int64_t features;

  const Mlp& part() const { return build.family().mlp; }
  std::string inBlock(std::string_view name) const { return Build::join(block, name); }
  Tensor linear(std::string_view name, const Tensor& x, std::int64_t out) const {
    return build.linear(inBlock(name), x, out, part().hasBias.value, part().layout);
  }
  Tensor activated(const Tensor& x) const { return build.activation(inBlock(part().activationName), x); }

  Tensor operator()(const GatedMlp& names) const {
    const Build::Inside scope(build, inBlock(names.name), build.className("MLP"));
    const Tensor gate = activated(linear(names.gate, input, features));
    return linear(names.down, gate.mul(linear(names.up, input, features)), build.hidden());
  }
  Tensor operator()(const FusedGatedMlp& names) const {
    const Build::Inside scope(build, inBlock(names.name), build.className("MLP"));
    const std::vector<Tensor> halves =
        at::split_with_sizes(linear(names.gateUp, input, 2 * features), {features, features}, -1);
    return linear(names.down, halves[1].mul(activated(halves[0])), build.hidden());
  }
  Tensor operator()(const PlainMlp& names) const {
    const Build::Inside scope(build, inBlock(names.name), build.className("MLP"));
    return linear(names.down, activated(linear(names.up, input, features)), build.hidden());
  }
};

}  // namespace

Tensor mlp(Build& build, const std::string& block, const Tensor& input) {
  const Mlp& part = build.family().mlp;
  return std::visit(MlpCall{build, block, input, part.size.value}, part.kind);
}

Tensor gatedMlp(Build& build, const std::string& path, const Tensor& input, std::int64_t features) {
  const Build::Inside scope(build, path, build.className("MLP"));
  const auto linear = [&](std::string_view name, const Tensor& x, std::int64_t out) {
    return build.linear(Build::join(path, name), x, out, /*hasBias=*/false);
  };
  const Tensor gate = build.activation(Build::join(path, "act_fn"), linear("gate_proj", input, features));
  return linear("down_proj", gate.mul(linear("up_proj", input, features)), build.hidden());
}

}  // namespace cleave::models
