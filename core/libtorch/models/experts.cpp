// Mixtures of experts: the selection of experts for each token, and the sum of their results. All shapes are known in
// advance, because each token has `perToken` experts for any scores.
#include "libtorch/bridge/experts.h"

#include "graph/operators.h"
#include "libtorch/models/build.h"

#include <ATen/ATen.h>

#include <limits>

namespace cleave::models {
namespace {

struct Routes {
  Tensor ids, shares;  ///< [tokens, per token]
};

class ExpertsCall {
 public:
  ExpertsCall(Build& build, const std::string& block)
      : m_build(build), m_part(build.family().experts), m_block(block), m_path(inBlock(m_part.name)) {}

  /// [batch, sequence, hidden] → the same.
  Tensor run(const Tensor& input) {
    const Build::Inside scope(m_build, m_path, m_build.className(m_part.className));
    const Tensor tokens = input.view({-1, m_build.hidden()});
    const Routes routes = route(tokens);
    Tensor sum = routed(tokens, routes);
    if (!m_part.shared.empty()) sum = sum.add(shared(tokens));
    return sum.view({m_build.batch(), m_build.sequence(), m_build.hidden()});
  }

 private:
  std::string inBlock(std::string_view name) const { return Build::join(m_block, name); }

  Routes route(const Tensor& tokens) {
    switch (m_part.routing) {
      case Routing::SoftmaxThenTop: return softmaxThenTop(tokens);
      case Routing::TopThenSoftmax: return topThenSoftmax(tokens);
      case Routing::GroupedSigmoid: return groupedSigmoid(tokens);
    }
    return {};
  }

  Tensor scores(const Tensor& tokens) {
    return m_build.linear(inBlock(m_part.router), tokens, m_part.count.value, m_part.routerBias.value);
  }
  Routes best(const Tensor& scores, std::int64_t dim = -1) const {
    auto [shares, ids] = at::topk(scores, m_part.perToken.value, dim);
    return {std::move(ids), std::move(shares)};
  }
  Tensor adjusted(Tensor shares) const {
    if (m_part.areSharesNormalised.value) {
      // DeepSeek avoids a division by zero here.
      Tensor sum = shares.sum(-1, /*keepdim=*/true);
      if (m_part.routing == Routing::GroupedSigmoid) sum = sum.add(1e-20);
      shares = shares.div(sum);
    }
    return m_part.sharesFactor.value == 1.0 ? shares : shares.mul(m_part.sharesFactor.value);
  }

  Routes softmaxThenTop(const Tensor& tokens) {
    Routes routes = best(at::softmax(scores(tokens), -1, at::kFloat));
    routes.shares = adjusted(routes.shares).to(m_build.options().dtype);
    return routes;
  }

  Routes topThenSoftmax(const Tensor& tokens) {
    Routes routes = best(scores(tokens));
    routes.shares = at::softmax(routes.shares, -1);
    return routes;
  }

  /// Score and bias select the experts, but the score alone is the share. Groups are ranked by their two best experts.
  Routes groupedSigmoid(const Tensor& tokens) {
    const std::int64_t groups = m_part.groups.value, experts = m_part.count.value;
    const std::string router = inBlock(m_part.router);
    Tensor likes;
    {
      const Build::Inside scope(m_build, router, "Linear");
      const Tensor weight = m_build.parameter(Build::join(router, "weight"), {experts, m_build.hidden()});
      const Tensor wide = tokens.to(at::kFloat);
      likes = at::linear(wide, weight.to(at::kFloat)).sigmoid();
    }
    const Tensor bias = m_build.host().buffer(inBlock(m_part.correctionBias), {experts}, at::kFloat);
    Tensor choice = likes.add(bias);
    if (groups > 1) {
      const Tensor grouped = choice.view({-1, groups, experts / groups});
      const Tensor ofGroup = std::get<0>(at::topk(grouped, 2, -1)).sum(-1);
      const Tensor kept = std::get<1>(at::topk(ofGroup, m_part.groupsKept.value, -1));
      const Tensor isKept = at::scatter(at::zeros_like(ofGroup), 1, kept, 1);
      const Tensor mask = isKept.unsqueeze(-1).expand({-1, groups, experts / groups}).reshape({-1, experts});
      choice = choice.masked_fill(mask.eq(0), -std::numeric_limits<double>::infinity());
    }
    const Tensor ids = best(choice).ids;
    return {ids, adjusted(likes.gather(1, ids))};
  }

  Tensor routed(const Tensor& tokens, const Routes& routes) {
    const std::string path = Build::join(m_path, "experts");
    const Build::Inside scope(m_build, path, m_build.className("Experts"));
    const std::int64_t count = m_part.count.value, size = m_part.size.value, hidden = m_build.hidden();
    bridge::ExpertsCall call{tokens, routes.ids, routes.shares, {}, {}, {}, {}, 1.0, 0.0, count};
    const std::string gateUp = Build::join(path, "gate_up_proj"), down = Build::join(path, "down_proj");
    if (m_part.form == ExpertForm::ClampedSwiglu) {
      call.gateUp = m_build.parameter(gateUp, {count, hidden, 2 * size});
      call.down = m_build.parameter(down, {count, size, hidden});
      call.gateUpBias = m_build.parameter(gateUp + "_bias", {count, 2 * size});
      call.activation = graph::kClampedSwiglu;
      call.alpha = m_part.alpha.value;
      call.limit = m_part.limit.value;
      const Tensor sum = bridge::callExperts(call);
      return sum.add(sharedOut(m_build.parameter(down + "_bias", {count, hidden}), routes));
    }
    call.gateUp = stacked(gateUp, {count, 2 * size, hidden}, {m_part.gate, m_part.up});
    call.down = stacked(down, {count, hidden, size}, {m_part.down});
    call.activation = activationName();
    return bridge::callExperts(call);
  }

  /// Older checkpoints have separate tensors for each expert; newer ones have one for all.
  Tensor stacked(const std::string& name, at::IntArrayRef shape, const std::vector<std::string_view>& parts) {
    graph::StackedName stored{name.substr(0, name.rfind('.') + 1), {}};
    for (const std::string_view part : parts) stored.suffixes.push_back(fmt::format(".{}.weight", part));
    m_build.host().stacked(name, stored);
    return m_build.parameter(name, shape);
  }

  /// The biases of a token's experts, weighted by their shares: [tokens, hidden].
  static Tensor sharedOut(const Tensor& biases, const Routes& routes) {
    const std::int64_t tokens = routes.ids.size(0), perToken = routes.ids.size(1);
    const Tensor taken = biases.index_select(0, routes.ids.reshape({-1})).view({tokens, perToken, biases.size(1)});
    return taken.mul(routes.shares.unsqueeze(-1)).sum(1);
  }

  std::string_view activationName() const {
    switch (m_build.family().mlp.activation.value) {
      case Activation::Silu: return "silu";
      case Activation::Gelu: return "gelu";
      case Activation::GeluTanh: return "gelu_tanh";
      case Activation::QuickGelu: return "quick_gelu";
      case Activation::Relu: return "relu";
      case Activation::Relu2: return "relu2";
      case Activation::Tanh: return "tanh";
      case Activation::Sigmoid: break;
    }
    return "sigmoid";
  }

  Tensor shared(const Tensor& tokens) {
    const Tensor out = gatedMlp(m_build, inBlock(m_part.shared), tokens, m_part.sharedSize.value);
    if (m_part.sharedGate.empty()) return out;
    return m_build.linear(inBlock(m_part.sharedGate), tokens, 1, /*hasBias=*/false).sigmoid().mul(out);
  }

  Build& m_build;
  const Experts& m_part;
  const std::string& m_block;
  const std::string m_path;
};

}  // namespace

Tensor experts(Build& build, const std::string& block, const Tensor& input) {
  return ExpertsCall(build, block).run(input);
}

}  // namespace cleave::models
