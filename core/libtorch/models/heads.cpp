// A model's heads, and the loss.
#include "libtorch/models/build.h"

#include <ATen/ATen.h>

#include <limits>

namespace cleave::models {
namespace {

struct HeadCall {
  Build& build;
  const Tensor& hidden;

  std::int64_t vocab() const { return build.family().vocab.value; }
  std::int64_t width() const { return build.family().embeddings.width.value; }
  Tensor widened(const Tensor& logits) const {
    return build.options().dtype == at::kDouble ? logits : logits.to(at::kFloat);
  }

  /// The scores of the vocabulary, with the embedding's weight if the two are tied. `bias`: its full name, or empty.
  Tensor scores(const std::string& path, const Tensor& x, const std::string& bias) const {
    const bool isTied = build.family().isTied.value;
    const std::string own = Build::join(path, "weight");
    const Build::Inside scope(build, path, "Linear");
    if (isTied) build.host().tied(embeddingWeight(build), own);
    const Tensor weight = build.parameter(isTied ? embeddingWeight(build) : own, {vocab(), width()});
    if (bias.empty()) return at::linear(x, weight);
    return at::linear(x, weight, build.parameter(bias, {vocab()}));
  }

  ModelOutputs operator()(const CausalHead& part) const {
    Tensor kept = hidden;
    if (build.options().logitsToKeep != 0)
      kept = hidden.slice(1, -build.options().logitsToKeep, std::numeric_limits<std::int64_t>::max());
    const std::string path(part.name);
    Tensor logits = scores(path, kept, part.hasBias.value ? Build::join(path, "bias") : "");
    if (part.multiplier.value != 1.0) logits = logits.mul(part.multiplier.value);
    if (part.divisor.value != 1.0) logits = logits.div(part.divisor.value);
    if (const double cap = part.softCap.value; cap != 0) logits = logits.div(cap).tanh().mul(cap);
    return withLoss(widened(logits), /*isShifted=*/true);
  }

  ModelOutputs operator()(const MaskedHead& part) const {
    const std::string bias(part.bias);  // a separate parameter that is tied to the decoder's bias
    const Tensor dense = build.linear(std::string(part.dense), hidden, build.hidden(), /*hasBias=*/true);
    const std::string activation = std::string(part.dense.substr(0, part.dense.rfind('.'))) + ".transform_act_fn";
    const Tensor active = part.hasOwnActivation ? at::gelu(dense) : build.activation(activation, dense);
    const Tensor normed = build.norm(std::string(part.norm), active);
    const std::string own = Build::join(part.decoder, "bias");
    const bool isTied = build.family().isTied.value;
    if (isTied) build.host().tied(bias, own);
    return withLoss(widened(scores(std::string(part.decoder), normed, isTied ? bias : own)), /*isShifted=*/false);
  }

  ModelOutputs operator()(const ClassifierHead& part) const {
    const auto dropped = [&](const Tensor& x) {
      return build.dropped(std::string(part.dropout), part.dropoutProbability, x);
    };
    Tensor first = hidden.select(1, 0);
    if (part.dropsInput) first = dropped(first);
    const Tensor pooled =
        dropped(build.linear(std::string(part.dense), first, build.hidden(), /*hasBias=*/true).tanh());
    const Tensor logits = widened(build.linear(std::string(part.output), pooled, part.labels.value, /*hasBias=*/true));
    ModelOutputs outputs{logits, {}};
    if (!build.inputs().labels) return outputs;
    const Build::Inside scope(build, "loss", "CrossEntropyLoss");
    outputs.loss = at::cross_entropy_loss(logits, *build.inputs().labels);
    return outputs;
  }

  /// Mean over the labels that are not ignored. If shifted, position i predicts label i + 1.
  ModelOutputs withLoss(const Tensor& logits, bool isShifted) const {
    ModelOutputs outputs{logits, {}};
    if (!build.inputs().labels) return outputs;
    const Build::Inside scope(build, "loss", "CrossEntropyLoss");
    Tensor predicted = logits, labels = *build.inputs().labels;
    if (isShifted) {
      predicted = predicted.slice(1, 0, build.sequence() - 1).contiguous();
      labels = labels.slice(1, 1, build.sequence()).contiguous();
    }
    outputs.loss = at::cross_entropy_loss(predicted.view({-1, vocab()}), labels.view({-1}));
    return outputs;
  }
};

}  // namespace

std::string embeddingWeight(const Build& build) {
  return Build::join(build.inModel(build.family().embeddings.tokens), "weight");
}

ModelOutputs head(Build& build, Tensor hidden) { return std::visit(HeadCall{build, hidden}, build.config().head); }

}  // namespace cleave::models
