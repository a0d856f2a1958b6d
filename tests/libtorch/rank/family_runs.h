#pragma once
/// Plans model folders of tests/data and runs them with threads as ranks: forward passes, and one training step.
#include "base/temporary_folder.h"
#include "libtorch/capture/capture.h"
#include "libtorch/rank/execute/inputs.h"
#include "libtorch/rank/process/generator.h"
#include "libtorch/rank/weights/weights.h"
#include "pipeline/run/generation.h"
#include "pipeline/solve/devices.h"
#include "pipeline/solve/solve.h"
#include "pipeline/source/input_shape.h"
#include "pipeline/source/open.h"
#include "tests/libtorch/models/model_weights.h"
#include "tests/libtorch/rank/differentiable_collectives.h"
#include "tests/libtorch/rank/ranks_as_threads.h"

#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>

#include <cmath>

namespace cleave::tests {

using Tensors = std::map<std::string, at::Tensor>;
using ModelPtr = std::shared_ptr<const pipeline::Model>;
using PlanPtr = std::shared_ptr<const plan::Plan>;

inline void needDone(Result<void> result) {
  if (!result) qFatal("%s", result.error().message.c_str());
}

/// Captures the model for the inputs of a file.
inline ModelPtr openedFor(const fs::path& folder, const fs::path& inputs, std::optional<graph::DType> dtype = {}) {
  const auto shape = need(pipeline::readInputShape(inputs, true));
  spec::InputSpec options{.batch = shape.batch, .sequence = shape.sequence, .dtype = dtype};
  options.mask = shape.hasMask;
  options.tokenTypes = shape.hasTokenTypes;
  options.loss = shape.hasLabels;
  return need(pipeline::openModel(folder.string(), options));
}

struct Wanted {
  int ranks = 2;
  solve::Engine engine = solve::Engine::Reference;
  std::vector<std::string> pins = {};
  rules::CandidateSet candidateSet = rules::CandidateSet::Full;
};

inline PlanPtr planned(const ModelPtr& model, const Wanted& wanted) {
  spec::PlanSpec options;
  options.ranks = wanted.ranks;
  options.engine = wanted.engine;
  options.candidateSet = wanted.candidateSet;
  options.cost.profile = need(pipeline::deviceProfile(std::string(pipeline::kDefaultDevice)));
  for (const std::string& pin : wanted.pins) options.pins.push_back(need(solve::Pin::parse(pin)));
  return need(pipeline::planModel(model, need(pipeline::solveModel(model, options, {}, {.records = false}))));
}

inline program::RankProgram rankProgramOf(const plan::Plan& plan) {
  program::RankProgram program;
  program.source = plan.model.source;
  program.ranks = plan.spec.ranks;
  program.seed = plan.spec.seed;
  program.graph = plan.program;
  program.parameters = plan.parameters;
  return program;
}

/// A rank's program, its part of the weights, and the inputs.
inline torch_rank::Program loaded(const plan::Plan& plan, const fs::path& inputs, int rank) {
  torch_rank::Program bound = need(torch_rank::Program::bind(plan.program, at::kCPU));
  const program::RankProgram program = rankProgramOf(plan);
  torch_rank::WeightOptions options;
  options.places = formats::WeightPlaces::of(plan.model.source, plan.model.isExported, plan.model.input.weights);
  options.rank = rank;
  std::atomic<std::int64_t> bytes{0};
  const auto report = need(torch_rank::loadWeights(bound, program, options, bytes));
  if (report.bytesRead != program::shardBytes(plan.parameters, rank)) qFatal("rank %d read other bytes", rank);
  needDone(torch_rank::readInputs(bound, inputs));
  return bound;
}

/// The outputs of rank 0. Every other rank must compute the same up to rounding.
inline Tensors computed(const plan::Plan& plan, const fs::path& inputs) {
  std::vector<torch_rank::NamedTensors> results(static_cast<std::size_t>(plan.spec.ranks));
  const auto runOne = [&](torch_rank::Collectives& collectives) {
    torch_rank::Program program = loaded(plan, inputs, collectives.rank());
    torch_rank::LiveMemory memory;
    results[static_cast<std::size_t>(collectives.rank())] = need(program.run(collectives, memory));
  };
  if (plan.spec.ranks == 1) {
    runOne(*torch_rank::makeSoloCollectives());
  } else {
    asRanks(plan.spec.ranks, runOne);
  }
  for (const auto& result : results) {
    for (std::size_t i = 0; i < result.size(); ++i) {
      if (!at::allclose(result[i].second, results[0][i].second, 1e-5, 1e-5, true)) qFatal("ranks disagree");
    }
  }
  return {results[0].begin(), results[0].end()};
}

/// The tokens that rank 0 generates after the prompt in `inputs` (input_ids). Every other rank must generate the same.
inline at::Tensor generated(const plan::Plan& prompt, const plan::Plan& step, const program::Generation& asked,
                            const fs::path& inputs) {
  std::vector<at::Tensor> tokens(static_cast<std::size_t>(prompt.spec.ranks));
  const program::RankProgram decode = rankProgramOf(step);
  const auto runOne = [&](torch_rank::Collectives& collectives) {
    torch_rank::Program prefill = loaded(prompt, inputs, collectives.rank());
    const auto generator = need(torch_rank::Generator::make(prefill, decode, asked));
    needDone(generator->prepare(prompt.parameters, [] { return std::int64_t{0}; }));
    torch_rank::LiveMemory memory;
    tokens[static_cast<std::size_t>(collectives.rank())] = need(generator->run(collectives, memory)).tokens;
  };
  if (prompt.spec.ranks == 1) {
    runOne(*torch_rank::makeSoloCollectives());
  } else {
    asRanks(prompt.spec.ranks, runOne);
  }
  for (const at::Tensor& other : tokens) {
    if (!at::equal(other, tokens.front())) qFatal("ranks disagree");
  }
  return tokens.front();
}

/// True if this number of ranks generates the tokens in a file of tests/data/generation with the model of a folder.
inline bool generatesAs(const fs::path& folder, const fs::path& file, int ranks) {
  const pipeline::TokenRows prompt = need(pipeline::readPrompt(file)), expected = need(pipeline::readTokens(file));
  constexpr std::int64_t kNewTokens = 12;  // as in tests/tools/generations.py
  const auto made = need(TemporaryFolder::make("cleave-test"));
  needDone(pipeline::writePrompt(prompt, made / "prompt"));
  plan::ModelInfo info;
  info.source = folder.string();
  info = pipeline::ofPrompt(info, prompt, kNewTokens);
  const PlanPtr plan = planned(need(pipeline::openModel(info.source, info.input)), {.ranks = ranks});
  const at::Tensor tokens = generated(*plan, *need(pipeline::planStep(*plan)),
                                      need(pipeline::generationOf(info, kNewTokens)), made / "prompt");
  return at::equal(tokens, at::tensor(expected.ids).view({expected.rows, expected.length}));
}

/// The largest error relative to the tolerance; 1 is the limit. Excludes logits of padding if `mask` is given.
inline double ofTolerance(const at::Tensor& actual, const at::Tensor& expected, double tolerance,
                          const std::optional<at::Tensor>& mask = {}) {
  at::Tensor a = actual.to(at::kDouble), b = expected.to(at::kDouble).reshape(actual.sizes());
  if (mask && a.dim() == 3) {
    const at::Tensor kept = mask->ne(0);
    a = a.index({kept});
    b = b.index({kept});
  }
  const double worst = (a - b).abs().div(b.abs().mul(tolerance).add(tolerance)).max().item<double>();
  return std::isfinite(worst) ? worst : HUGE_VAL;
}

/// The same for the outputs that both have.
inline double ofTolerance(const Tensors& actual, const Tensors& expected, double tolerance,
                          const std::optional<at::Tensor>& mask = {}) {
  double worst = 0;
  for (const auto& [name, tensor] : actual)
    worst = std::max(worst, ofTolerance(tensor, expected.at(name), tolerance, mask));
  return worst;
}

/// A rank's part of a parameter. Elements outside every rank's region stay zero.
inline at::Tensor partOf(const program::ParameterShards& parameter, const at::Tensor& whole, int ranks, int rank) {
  at::Tensor part = at::zeros(parameter.localShape, whole.options());
  std::int64_t start = 0;
  for (const program::StoredRegion& region : program::wholeRegions(parameter, ranks, rank)) {
    if (region.dim < 0) return whole;
    part.narrow(region.dim, start, region.length).copy_(whole.narrow(region.dim, region.start, region.length));
    start += region.length;
  }
  return part;
}

/// Adds each rank's gradient of its part. Ranks may share parts of a part, such as key heads in a fused projection.
inline at::Tensor summedPart(const program::ParameterShards& parameter, const at::Tensor& own,
                             torch_rank::Collectives& collectives) {
  at::Tensor whole = at::zeros(parameter.type.shape, own.options());
  std::int64_t start = 0;
  for (const auto& region : program::wholeRegions(parameter, collectives.worldSize(), collectives.rank())) {
    const bool isAll = region.dim < 0;
    at::Tensor to = isAll ? whole : whole.narrow(region.dim, region.start, region.length);
    to.add_(isAll ? own : own.narrow(region.dim, start, region.length));
    start += region.length;
  }
  whole = need(collectives.allReduce(std::move(whole), torch_rank::Reduction::Sum));
  return partOf(parameter, whole, collectives.worldSize(), collectives.rank());
}

/// One step of SGD: the loss before and after it, and by rank the gradients of its parts of the parameters.
struct TrainingStep {
  double before = 0, after = 0;
  std::vector<Tensors> gradients;
};

inline double lossOf(const torch_rank::NamedTensors& outputs) {
  const auto loss = std::find_if(outputs.begin(), outputs.end(), [](const auto& o) { return o.first == "loss"; });
  return loss->second.item<double>();
}

/// Each rank's loss is weighted by 1/ranks, so that the sum over ranks is the loss. Then the gradients from the exact
/// adjoints, summed over the ranks that share a part, equal the gradient of the unsplit model.
inline TrainingStep trained(const plan::Plan& plan, const fs::path& inputs, double rate) {
  TrainingStep step;
  step.gradients.resize(static_cast<std::size_t>(plan.spec.ranks));
  const auto stepOne = [&](torch_rank::Collectives& inner) {
    DifferentiableCollectives collectives(inner);
    torch_rank::Program program = loaded(plan, inputs, inner.rank());
    std::map<std::string, at::Tensor> leaves;
    for (const program::ParameterShards& parameter : plan.parameters) {
      const graph::ValueId value = program.graph().findValue(parameter.name);
      at::Tensor leaf = program.given(value).detach().clone();
      if (at::isFloatingType(leaf.scalar_type())) leaf.requires_grad_(true);
      leaves[parameter.name] = leaf;
      needDone(program.setTensor(value, leaf));
    }
    torch_rank::LiveMemory memory;
    const auto outputs = need(program.run(collectives, memory));
    const auto loss = std::find_if(outputs.begin(), outputs.end(), [](const auto& o) { return o.first == "loss"; });
    loss->second.div(plan.spec.ranks).backward();
    const c10::AutoGradMode noGradients(false);
    Tensors& gradients = step.gradients[static_cast<std::size_t>(inner.rank())];
    for (const program::ParameterShards& parameter : plan.parameters) {
      at::Tensor leaf = leaves.at(parameter.name);
      if (!leaf.requires_grad()) continue;
      const at::Tensor own = leaf.grad().defined() ? leaf.grad() : at::zeros_like(leaf);
      const at::Tensor sum = summedPart(parameter, own, inner);
      gradients[parameter.name] = sum;
      leaf.sub_(sum.mul(rate));
    }
    const double after = lossOf(need(program.run(inner, memory)));
    if (inner.rank() != 0) return;
    step.before = lossOf(outputs);
    step.after = after;
  };
  if (plan.spec.ranks == 1) {
    stepOne(*torch_rank::makeSoloCollectives());
  } else {
    asRanks(plan.spec.ranks, stepOne);
  }
  return step;
}

}  // namespace cleave::tests
