#include "libtorch/models/build.h"

#include <ATen/ATen.h>

#include <algorithm>

namespace cleave::models {

Build::Build(const ModelConfig& config, const ModelInputs& inputs, const ModelOptions& options, ModelHost& host)
    : m_config(config),
      m_inputs(inputs),
      m_options(options),
      m_host(host),
      m_batch(inputs.inputIds.size(0)),
      m_sequence(inputs.inputIds.size(1)) {}

std::string Build::join(std::string_view path, std::string_view name) {
  if (path.empty() || name.empty()) return std::string(path) + std::string(name);
  return std::string(path) + '.' + std::string(name);
}

/// The class of a module that only contains others, from the family's entry for its path in the block or in the model.
std::string_view Build::classOf(const std::string& path) const {
  for (const ModuleClass& known : family().classes) {
    const bool isWhole = path.size() == known.path.size();
    if (path.ends_with(known.path) && (isWhole || path[path.size() - known.path.size() - 1] == '.'))
      return known.suffix;
  }
  return {};
}

Build::Inside::Inside(Build& build, const std::string& path, std::string_view className) : m_build(build) {
  const auto enter = [&](const std::string& module, std::string_view name) {
    m_build.m_host.enterModule(module, name);
    m_build.m_paths.push_back(module);
    ++m_entered;
  };
  const std::string outer = build.m_paths.empty() ? "" : build.m_paths.back();
  if (path == outer && !build.m_paths.empty()) return;
  // Enter every module between the current one and this one.
  const bool isBelow = outer.empty() || path.starts_with(outer + '.');
  for (std::size_t dot = path.find('.', isBelow && !outer.empty() ? outer.size() + 1 : 0); dot != std::string::npos;
       dot = path.find('.', dot + 1)) {
    const std::string module = path.substr(0, dot);
    const std::string_view suffix = build.classOf(module);
    if (!suffix.empty()) enter(module, build.className(suffix));
  }
  enter(path, className);
}

Build::Inside::~Inside() {
  for (; m_entered > 0; --m_entered) {
    m_build.m_paths.pop_back();
    m_build.m_host.leaveModule();
  }
}

Tensor Build::linear(const std::string& path, const Tensor& input, std::int64_t out, bool hasBias,
                     WeightLayout layout) {
  if (layout == WeightLayout::InOut) return conv1d(path, input, out, hasBias);
  const Inside scope(*this, path, "Linear");
  const Tensor weight = parameter(join(path, "weight"), {out, input.size(-1)});
  std::optional<Tensor> bias;
  if (hasBias) bias = parameter(join(path, "bias"), {out});
  return at::linear(input, weight, bias);
}

/// transformers' Conv1D.
Tensor Build::conv1d(const std::string& path, const Tensor& input, std::int64_t out, bool hasBias) {
  const Inside scope(*this, path, "Conv1D");
  const Tensor rows = input.view({-1, input.size(-1)});
  const Tensor weight = parameter(join(path, "weight"), {input.size(-1), out});
  const Tensor product = hasBias ? at::addmm(parameter(join(path, "bias"), {out}), rows, weight) : at::mm(rows, weight);
  std::vector<std::int64_t> sizes = input.sizes().vec();
  sizes.back() = out;
  return product.view(sizes);
}

Tensor Build::embedding(const std::string& path, std::int64_t rows, std::int64_t width, const Tensor& ids,
                        std::int64_t paddingId) {
  const std::string_view name = classOf(path);
  const Inside scope(*this, path, name.empty() ? "Embedding" : className(name));
  const Tensor weight = parameter(join(path, "weight"), {rows, width});
  return paddingId < 0 ? at::embedding(weight, ids) : at::embedding(weight, ids, paddingId);
}

namespace {

Tensor normalised(const Tensor& wide, double eps) {
  const Tensor variance = wide.pow(2).mean(-1, /*keepdim=*/true);
  return wide.mul(variance.add(eps).rsqrt());
}

/// The weight of a norm: one number per element of the normalised dimensions.
struct NormCall {
  Build& build;
  std::string path;
  const Tensor& input;
  at::IntArrayRef weightShape;

  Tensor weight() const { return build.parameter(Build::join(path, "weight"), weightShape); }

  Tensor operator()(const RmsNorm& norm) const {
    if (!norm.addsOne) return build.rmsNorm(path, input, norm.eps.value);
    const Build::Inside scope(build, path, build.className("RMSNorm"));
    const Tensor normed = normalised(input.to(at::kFloat), norm.eps.value);
    return normed.mul(weight().to(at::kFloat).add(1.0)).to(input.scalar_type());
  }
  Tensor operator()(const LayerNorm& norm) const {
    const Build::Inside scope(build, path, "LayerNorm");
    if (!norm.isAffine.value) return at::layer_norm(input, weightShape, {}, {}, norm.eps.value);
    const Tensor scale = weight();
    const Tensor bias = build.parameter(Build::join(path, "bias"), weightShape);
    return at::layer_norm(input, weightShape, scale, bias, norm.eps.value);
  }
  Tensor operator()(const CenteredNorm& norm) const {
    const Build::Inside scope(build, path, build.className("LayerNorm"));
    const Tensor wide = input.to(at::kFloat);
    const Tensor centered = wide.sub(wide.mean(-1, /*keepdim=*/true));
    return weight().to(at::kFloat).mul(normalised(centered, norm.eps.value)).to(input.scalar_type());
  }
};

}  // namespace

Tensor Build::norm(const std::string& path, const Tensor& input, at::IntArrayRef weightShape) {
  const std::int64_t last = input.size(-1);
  return std::visit(NormCall{*this, path, input, weightShape.empty() ? at::IntArrayRef(last) : weightShape},
                    family().norm);
}

Tensor Build::dropped(const std::string& path, const NumberKey& probability, const Tensor& input) {
  const double chance = this->chance(probability);
  if (chance == 0) return input;
  const Inside scope(*this, path, "Dropout");
  return at::dropout(input, chance, /*train=*/true);
}

Tensor Build::rmsNorm(const std::string& path, const Tensor& input, double eps) {
  const Inside scope(*this, path, className("RMSNorm"));
  const Tensor normed = normalised(input.to(at::kFloat), eps);
  return parameter(join(path, "weight"), {input.size(-1)}).mul(normed.to(m_options.dtype));
}

Tensor Build::activation(const std::string& path, const Tensor& x) {
  const std::string_view own = classOf(path);
  const Inside scope(*this, path, own.empty() ? std::string(family().mlp.activation.className) : className(own));
  switch (family().mlp.activation.value) {
    case Activation::Silu: return at::silu(x);
    case Activation::Gelu: return at::gelu(x);
    case Activation::GeluTanh: return at::gelu(x, "tanh");
    case Activation::QuickGelu: return x.mul(x.mul(1.702).sigmoid());
    case Activation::Relu: return at::relu(x);
    case Activation::Relu2: return at::relu(x).pow(2);
    case Activation::Tanh: return x.tanh();
    case Activation::Sigmoid: return x.sigmoid();
  }
  return x;
}

}  // namespace cleave::models
