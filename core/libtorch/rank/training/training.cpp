#include "libtorch/rank/training/training.h"

#include "libtorch/bridge/errors.h"
#include "libtorch/bridge/types.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>
#include <torch/optim/adamw.h>
#include <torch/optim/sgd.h>

#include <map>

namespace cleave::torch_rank {

using graph::NodeKind;
using graph::ValueId;

namespace {

/// Relative to the largest gradient of a module: the size of rounding. Relative to the largest of the model: the limit
/// below which a module's gradients are negligible.
constexpr double kRounding = 0x1p-20, kNothing = 0x1p-18;
constexpr double kNormEpsilon = 1e-6;  // torch.nn.utils.clip_grad_norm_

/// The part of a gradient that is summed.
at::Tensor partOf(const at::Tensor& gradient, const program::GradientSum& sum) {
  return sum.dim < 0 ? gradient : gradient.narrow(sum.dim, sum.start, sum.length);
}

/// Indices of the parameters of each module: a layer's weight and bias.
std::map<std::string_view, std::vector<std::size_t>> byModule(const graph::Graph& graph,
                                                              const std::vector<ValueId>& parameters) {
  std::map<std::string_view, std::vector<std::size_t>> modules;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const std::string_view name = graph.value(parameters[i]).name;
    modules[name.substr(0, std::min(name.rfind('.'), name.size()))].push_back(i);
  }
  return modules;
}

tl::unexpected<Error> notTrainedByBoth(std::string_view parameter) {
  return fail(ErrorCode::BadInput,
              "{} has a gradient for only one of the input shapes, so its optimizer states cannot be reused. Train "
              "these shapes in separate runs.",
              parameter);
}

/// The sum of squares in double precision. Converts one part at a time, because a copy of a float32 gradient would need
/// twice its memory.
at::Tensor squaresOf(const at::Tensor& gradient) {
  constexpr std::int64_t kElements = 1 << 18;
  at::Tensor sum = at::zeros({}, gradient.options().dtype(at::kDouble));
  if (gradient.numel() == 0) return sum;
  const at::Tensor rows = gradient.dim() == 0 ? gradient.unsqueeze(0) : gradient;
  const std::int64_t count = rows.size(0), atOnce = std::max<std::int64_t>(1, kElements * count / rows.numel());
  for (std::int64_t row = 0; row < count; row += atOnce) {
    const at::Tensor part = rows.narrow(0, row, std::min(atOnce, count - row)).to(at::kDouble).flatten();
    sum.add_(part.dot(part));
  }
  return sum;
}

bool isHalf(const at::Tensor& x) { return x.scalar_type() == at::kHalf || x.scalar_type() == at::kBFloat16; }

}  // namespace

Trainer::Trainer(Program& bound, const program::Backward& backward, const program::Training& training,
                 const Batches& batches, StepRecorder* recorder, Replicas replicas)
    : m_bound(bound),
      m_backward(backward),
      m_training(training),
      m_batches(batches),
      m_recorder(recorder),
      m_replicas(std::move(replicas)),
      m_tape(bound.graph(), backward, bound.device(), bound.calls()) {
  for (const graph::Node& node : bound.graph().nodes) {
    if (node.kind == NodeKind::Parameter && backward.gradients.of(node.results[0]))
      m_trained.push_back(node.results[0]);
  }
  m_bound.setRecorder(recorder);
  m_tape.setRecorder(recorder);
  reserveGradients();
  makeOptimizer();
}

Trainer::~Trainer() = default;

void Trainer::reserveGradients() {
  const StepRecorder::Scope recorded(m_recorder, SpanKind::GradientSum);
  for (const ValueId parameter : m_trained) {
    const bool isPart = std::any_of(m_backward.sums.begin(), m_backward.sums.end(),
                                    [&](const program::GradientSum& sum) { return sum.parameter == parameter; });
    m_tape.gradients().reserve(parameter, m_bound.given(parameter), isPart);
  }
}

void Trainer::makeOptimizer() {
  const StepRecorder::Scope recorded(m_recorder, SpanKind::Optimizer);
  for (const ValueId parameter : m_trained) {
    const at::Tensor& given = m_bound.given(parameter);
    m_changed.push_back(isHalf(given) ? given.to(at::kFloat) : given);
  }
  using program::Optimizer;
  const double rate = m_training.learningRate, decay = m_training.weightDecay;
  if (m_training.optimizer == Optimizer::AdamW) {
    m_optimizer =
        std::make_unique<torch::optim::AdamW>(m_changed, torch::optim::AdamWOptions(rate).weight_decay(decay));
  } else if (m_training.optimizer != Optimizer::None) {
    const double momentum = m_training.optimizer == Optimizer::Momentum ? program::kMomentum : 0.0;
    m_optimizer = std::make_unique<torch::optim::SGD>(m_changed, torch::optim::SGDOptions(rate).momentum(momentum));
  }
}

Result<void> Trainer::continueFrom(Trainer& before) {
  std::map<std::string_view, std::size_t> known;
  for (std::size_t i = 0; i < before.m_trained.size(); ++i)
    known.emplace(before.m_bound.graph().value(before.m_trained[i]).name, i);
  m_undetermined.resize(before.m_undetermined.size());
  for (std::size_t i = 0; i < m_trained.size(); ++i) {
    const auto at = known.find(m_bound.graph().value(m_trained[i]).name);
    if (at == known.end()) return notTrainedByBoth(m_bound.graph().value(m_trained[i]).name);
    m_changed[i] = before.m_changed[at->second];
    if (!m_undetermined.empty()) m_undetermined[i] = std::move(before.m_undetermined[at->second]);
    known.erase(at);
  }
  if (!known.empty()) return notTrainedByBoth(known.begin()->first);
  m_optimizer = std::move(before.m_optimizer);
  return {};
}

Result<StepDone> Trainer::step(Collectives& collectives, LiveMemory& memory, const Progress& progress) {
  const c10::AutoGradMode noGradients(false);
  StepDone done;
  CLEAVE_TRY(done.loss, passes(collectives, memory, progress));
  CLEAVE_TRY_VOID(sumGradients(collectives));
  if (m_replicas.counterparts) CLEAVE_TRY_VOID(sumOverReplicas(done.loss));
  if (m_training.clipNorm) {
    CLEAVE_TRY(done.gradientNorm, clip(collectives));
  }
  change();
  m_tape.gradients().clear();
  return done;
}

Result<double> Trainer::passes(Collectives& collectives, LiveMemory& memory, const Progress& progress) {
  const auto& outputs = m_bound.graph().outputs;
  const auto isLoss = [this](const graph::Output& output) { return output.value == m_backward.gradients.loss; };
  const auto loss = static_cast<std::size_t>(std::find_if(outputs.begin(), outputs.end(), isLoss) - outputs.begin());
  double mean = 0;
  for (std::int64_t i = 0; i < m_training.accumulate; ++i) {
    m_bound.setPass(m_microBatch);
    const double share = m_replicas.lossShare(m_microBatch) / static_cast<double>(m_training.accumulate);
    CLEAVE_TRY_VOID(m_batches.give(m_bound, m_microBatch++, m_replicas.own));
    m_tape.clear();
    CLEAVE_TRY(NamedTensors computed, m_bound.run(collectives, memory, progress, &m_tape));
    // The loss of rows without counted labels is NaN, and they have no gradient.
    if (share > 0) mean += computed[loss].second.item<double>() * share;
    computed.clear();
    CLEAVE_TRY_VOID(m_tape.backward(share, collectives, memory, progress));
  }
  return mean;
}

Result<void> Trainer::sumGradients(Collectives& collectives) {
  const StepRecorder::Scope recorded(m_recorder, SpanKind::GradientSum);
  const std::span<const program::GradientSum> sums = m_backward.sums;
  const auto isOneSum = [&](const program::GradientSum& a, const program::GradientSum& b) {
    const auto dtype = [&](ValueId parameter) { return m_bound.graph().value(parameter).type.dtype; };
    return a.ranks == b.ranks && dtype(a.parameter) == dtype(b.parameter);
  };
  for (std::size_t first = 0, end = 0; first < sums.size(); first = end) {
    while (end < sums.size() && isOneSum(sums[first], sums[end])) ++end;
    CLEAVE_TRY_VOID(sumOf(sums.subspan(first, end - first), collectives));
  }
  m_tape.gradients().completeParts();
  return {};
}

Result<void> Trainer::sumOf(std::span<const program::GradientSum> sums, Collectives& collectives) {
  std::vector<at::Tensor> parts;
  for (const program::GradientSum& sum : sums) {
    const at::Tensor gradient = m_tape.gradients().of(sum.parameter, true);
    // All ranks run the same operators, so a parameter without a gradient here has no gradient on any rank.
    parts.push_back(
        partOf(gradient.defined() ? gradient : at::zeros_like(m_bound.given(sum.parameter)), sum).reshape(-1));
  }
  at::Tensor bucket = at::cat(parts);
  parts.clear();
  CLEAVE_TRY(Collectives* const group, collectives.neighbours(sums.front().ranks));
  CLEAVE_TRY(bucket, group->allReduce(std::move(bucket), Reduction::Sum));
  std::int64_t start = 0;
  for (const program::GradientSum& sum : sums) {
    if (const at::Tensor gradient = m_tape.gradients().of(sum.parameter, true); gradient.defined()) {
      at::Tensor part = partOf(gradient, sum);
      part.copy_(bucket.narrow(0, start, sum.elements).view(part.sizes()));
    }
    start += sum.elements;
  }
  return {};
}

Result<void> Trainer::sumOverReplicas(double& loss) {
  const StepRecorder::Scope recorded(m_recorder, SpanKind::GradientSum);
  at::Tensor sum = at::full({}, loss, at::TensorOptions(at::kDouble).device(m_bound.device()));
  CLEAVE_TRY(sum, m_replicas.counterparts->allReduce(std::move(sum), Reduction::Sum));
  for (const program::GradientBucket& bucket : program::gradientBuckets(m_bound.graph(), m_backward.gradients))
    CLEAVE_TRY_VOID(sumBucket(bucket));
  loss = sum.item<double>();
  return {};
}

Result<void> Trainer::sumBucket(const program::GradientBucket& bucket) {
  ParameterGradients& gradients = m_tape.gradients();
  std::vector<at::Tensor> parts;
  for (const ValueId parameter : bucket.parameters) {
    const at::Tensor gradient = gradients.of(parameter, false);
    parts.push_back((gradient.defined() ? gradient : at::zeros_like(m_bound.given(parameter))).reshape(-1));
  }
  at::Tensor sum = at::cat(parts);
  parts.clear();
  CLEAVE_TRY(sum, m_replicas.counterparts->allReduce(std::move(sum), Reduction::Sum));
  std::int64_t start = 0;
  for (const ValueId parameter : bucket.parameters) {
    const std::int64_t elements = m_bound.given(parameter).numel();
    const at::Tensor gradient = gradients.of(parameter, false);
    if (gradient.defined()) gradient.copy_(sum.narrow(0, start, elements).view(gradient.sizes()));
    start += elements;
  }
  return {};
}

at::Tensor Trainer::squares(const Collectives& collectives) {
  at::Tensor sum = at::zeros({}, at::TensorOptions(at::kDouble).device(m_bound.device()));
  for (const ValueId parameter : m_trained) {
    const at::Tensor gradient = m_tape.gradients().of(parameter, false);
    if (!gradient.defined()) continue;
    const bool isEverywhere = m_backward.types[parameter.index()] == program::SpmdType::Invariant;
    sum.add_(squaresOf(gradient), isEverywhere ? 1.0 / collectives.worldSize() : 1.0);
    if (isEverywhere) continue;
    for (const program::GradientSum& shared : m_backward.sums) {
      if (shared.parameter == parameter) sum.sub_(squaresOf(partOf(gradient, shared)), 1.0 - 1.0 / shared.ranks);
    }
  }
  return sum;
}

Result<double> Trainer::clip(Collectives& collectives) {
  const StepRecorder::Scope recorded(m_recorder, SpanKind::Clipping);
  at::Tensor sum = squares(collectives);
  if (collectives.worldSize() > 1) {
    CLEAVE_TRY(sum, collectives.allReduce(std::move(sum), Reduction::Sum));
  }
  const double norm = std::sqrt(sum.item<double>());
  const double factor = *m_training.clipNorm / (norm + kNormEpsilon);
  if (factor >= 1) return norm;
  for (const ValueId parameter : m_trained) {
    const at::Tensor gradient = m_tape.gradients().of(parameter, false);
    if (gradient.defined()) gradient.mul_(factor);
  }
  return norm;
}

at::Tensor Trainer::sizeOfGradient(std::size_t index) const {
  const auto& options = static_cast<const torch::optim::AdamWOptions&>(m_optimizer->param_groups()[0].options());
  const auto state = m_optimizer->state().find(m_changed[index].unsafeGetTensorImpl());
  if (state == m_optimizer->state().end() || m_changed[index].numel() == 0) return {};
  const auto& adam = static_cast<const torch::optim::AdamWParamState&>(*state->second);
  const double bias = 1 - std::pow(std::get<1>(options.betas()), static_cast<double>(adam.step()));
  return adam.exp_avg_sq().div(bias).sqrt_();
}

void Trainer::noteUndetermined(double slack) {
  if (m_training.optimizer != program::Optimizer::AdamW) return;
  const c10::AutoGradMode noGradients(false);
  m_undetermined.resize(m_trained.size());
  const auto modules = byModule(m_bound.graph(), m_trained);
  std::map<std::string_view, double> largest;
  double ofAll = 0;
  for (const auto& [module, members] : modules) {
    for (const std::size_t member : members) {
      const at::Tensor size = sizeOfGradient(member);
      if (size.defined()) largest[module] = std::max(largest[module], size.max().item<double>());
    }
    ofAll = std::max(ofAll, largest[module]);
  }
  const auto& options = static_cast<const torch::optim::AdamWOptions&>(m_optimizer->param_groups()[0].options());
  for (const auto& [module, members] : modules) {
    const double most = largest[module] < ofAll * kNothing ? ofAll : largest[module];
    const double least = slack * kRounding * most * m_training.learningRate / kMaxUndeterminedChange - options.eps();
    for (const std::size_t member : members) {
      const at::Tensor size = sizeOfGradient(member);
      if (!size.defined()) continue;
      at::Tensor& noted = m_undetermined[member];
      at::Tensor byChance = size.lt(least);
      if (slack > 1) {
        noted = noted.defined() ? noted.logical_or_(byChance) : std::move(byChance);
        continue;
      }
      byChance = byChance.logical_and_(size.gt(0)).flatten().nonzero().flatten();
      if (byChance.numel() == 0) continue;
      noted = noted.defined() ? std::get<0>(at::_unique(at::cat({noted, byChance}))) : std::move(byChance);
    }
  }
}

at::Tensor Trainer::undeterminedMask(std::size_t index) const {
  const at::Tensor& noted = m_undetermined[index];
  if (noted.defined() && noted.scalar_type() == at::kBool) return noted;
  at::Tensor mask = at::zeros(m_changed[index].sizes(), m_changed[index].options().dtype(at::kBool));
  if (noted.defined()) mask.view(-1).index_fill_(0, noted, true);
  const at::Tensor size = sizeOfGradient(index);
  return size.defined() ? mask.logical_or_(size.eq(0)) : mask;
}

Result<ByParameter> Trainer::undetermined(Collectives& collectives) const {
  if (m_undetermined.empty()) return ByParameter();
  const c10::AutoGradMode noGradients(false);
  std::vector<at::Tensor> masks, counts;
  for (std::size_t i = 0; i < m_undetermined.size(); ++i) {
    masks.push_back(undeterminedMask(i));
    counts.push_back(masks.back().sum().to(at::kDouble));
  }
  CLEAVE_TRY(const at::Tensor all, collectives.allReduce(at::stack(counts), Reduction::Sum));
  CLEAVE_TRY_VOID(collectives.finish());
  const at::Tensor onHost = all.cpu();
  ByParameter found;
  for (std::size_t i = 0; i < m_undetermined.size(); ++i) {
    if (onHost[static_cast<std::int64_t>(i)].item<double>() == 0) continue;
    found[m_trained[i]] = std::move(masks[i]);
  }
  return found;
}

/// Updates a few half-precision parameters at a time. Their float32 gradients together are at most as large as that of
/// the largest parameter.
void Trainer::change() {
  if (!m_optimizer) return;
  const StepRecorder::Scope recorded(m_recorder, SpanKind::Optimizer);
  const auto elementsIn = [&](std::size_t i) { return isHalf(m_bound.given(m_trained[i])) ? m_changed[i].numel() : 0; };
  std::int64_t most = 0;
  for (std::size_t i = 0; i < m_trained.size(); ++i) most = std::max(most, elementsIn(i));
  for (std::size_t first = 0, end = 0; first < m_trained.size(); first = end) {
    std::int64_t elements = 0;
    while (end < m_trained.size() && (end == first || elements + elementsIn(end) <= most))
      elements += elementsIn(end++);
    change(first, end);
  }
}

/// The optimizer skips parameters without a gradient.
void Trainer::change(std::size_t first, std::size_t end) {
  const bool decaysHere = m_training.optimizer != program::Optimizer::AdamW && m_training.weightDecay > 0;
  for (std::size_t i = first; i < end; ++i) {
    at::Tensor gradient = m_tape.gradients().of(m_trained[i], false);
    if (!gradient.defined()) continue;
    if (isHalf(gradient)) gradient = gradient.to(m_changed[i].scalar_type());
    // As in torch.optim.SGD, but without its copy.
    if (decaysHere) gradient.add_(m_changed[i], m_training.weightDecay);
    m_changed[i].mutable_grad() = std::move(gradient);
  }
  m_optimizer->step();
  for (std::size_t i = first; i < end; ++i) {
    m_changed[i].mutable_grad() = at::Tensor();
    at::Tensor parameter = m_bound.given(m_trained[i]);
    if (isHalf(parameter)) parameter.copy_(m_changed[i]);
  }
}

}  // namespace cleave::torch_rank
