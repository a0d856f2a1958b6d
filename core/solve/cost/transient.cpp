#include "solve/cost/buffers.h"
#include "solve/cost/peak.h"

#include <algorithm>

/// The transient peak of one step, from its first operator to the optimizer. Values, gathered inputs, gradients and
/// buffers are intervals on a line of moments, and the peak is the largest sum. Each node forward is a moment, and then
/// each gather of a split output. When training, more moments follow: each node backward in reverse order, the sum of
/// the parameters' gradients, and the optimizer.

namespace cleave::solve {
namespace {

using rules::CollectiveKind;
using rules::LayerStrategy;

/// The origin of some bytes, for the parts of a peak.
struct Held {
  ValueId value;
  PeakPart::Kind kind = PeakPart::Kind::Value;
};
/// Marks bytes that are counted as memory that stays for the whole step.
constexpr Held kStays{};

/// Adds up the live bytes at each moment, and keeps the parts that are live at a watched moment.
class Moments {
 public:
  Moments(std::size_t count, std::optional<std::size_t> watched)
      : m_changes(count + 1, 0), m_at(count, 0), m_watched(watched) {}
  void hold(std::size_t first, std::size_t last, std::int64_t bytes, Held what) {
    m_changes[first] += bytes;
    m_changes[last + 1] -= bytes;
    if (m_watched && first <= *m_watched && *m_watched <= last) keep(bytes, what);
  }
  void add(std::size_t moment, std::int64_t bytes, Held what) {
    m_at[moment] += bytes;
    if (m_watched == moment) keep(bytes, what);
  }
  struct Peak {
    std::size_t moment = 0;
    std::int64_t bytes = 0;
  };
  Peak peak() const {
    std::int64_t live = 0;
    Peak peak;
    for (std::size_t i = 0; i < m_at.size(); ++i) {
      live += m_changes[i];
      if (live + m_at[i] > peak.bytes) peak = {i, live + m_at[i]};
    }
    return peak;
  }
  /// Parts at the watched moment, the largest first.
  std::vector<PeakPart> parts() && {
    std::stable_sort(m_parts.begin(), m_parts.end(),
                     [](const PeakPart& a, const PeakPart& b) { return a.bytes > b.bytes; });
    return std::move(m_parts);
  }

 private:
  void keep(std::int64_t bytes, Held what) {
    if (bytes > 0 && what.value.isValid()) m_parts.push_back({what.value, what.kind, bytes});
  }

  std::vector<std::int64_t> m_changes, m_at;
  std::optional<std::size_t> m_watched;
  std::vector<PeakPart> m_parts;
};

/// First and last node that read the gathered tensor of a value on the sequence.
struct Gatherers {
  std::size_t first = 0, last = 0;
  bool sumsGradient = false;  ///< a split weight gives partial gradients
};

/// One step of one solution. One object serves one call.
class Step {
 public:
  Step(const Problem& problem, const Variables& variables, const CostFacts& facts, const Solution& solution,
       std::optional<std::size_t> watched = std::nullopt)
      : m_graph(*problem.graph),
        m_variables(variables),
        m_facts(facts),
        m_solution(solution),
        m_buffers(problem, variables, facts),
        m_isTraining(problem.cost.isTraining),
        m_ranks(problem.context.worldSize),
        m_nodes(m_graph.nodes.size()),
        m_gathererOf(m_graph.values.size(), 0) {
    findGathered();
    m_forward = m_nodes + m_gatheredOutputs.size();
    m_end = m_isTraining ? orderBackward() + 1 : m_forward;
    m_moments.emplace(m_end + 1, watched);
  }

  /// `summedBytes`: bucket of the parameters' summed gradients. `optimizerBytes`: transient memory of the optimizer
  /// step.
  std::int64_t transient(std::int64_t summedBytes, std::int64_t optimizerBytes) {
    return beyondSaved(fullest(summedBytes, optimizerBytes).bytes);
  }
  /// Saved activations are counted as memory that stays.
  std::int64_t beyondSaved(std::int64_t bytes) const { return bytes - m_saved; }

  Moments::Peak fullest(std::int64_t summedBytes, std::int64_t optimizerBytes) {
    holdValues();
    holdGathered();
    runForward();
    if (!m_isTraining) return m_moments->peak();
    runBackward();
    m_moments->add(m_end - 1, summedBytes, kStays);
    m_moments->add(m_end, optimizerBytes, kStays);
    return m_moments->peak();
  }

  /// The peak with the parts at the watched moment. Requires a call of `fullest`.
  TransientPeak describe(std::size_t moment) && {
    TransientPeak peak;
    const auto resultOf = [&](std::size_t node) {
      const auto& results = m_graph.node(NodeId(static_cast<std::uint32_t>(node))).results;
      return results.empty() ? ValueId() : results.front();
    };
    if (moment < m_nodes) {
      peak.at = resultOf(moment);
    } else if (moment < m_forward || !m_isTraining) {
      peak.phase = TransientPeak::Phase::Outputs;
      if (moment < m_forward) peak.at = m_gatheredOutputs[moment - m_nodes];
    } else if (moment < m_end - 1) {
      peak.phase = TransientPeak::Phase::Backward;
      for (std::size_t node = 0; node < m_nodes; ++node) {
        if (m_backwardAt[node] == moment || m_againAt[node] == moment) peak.at = resultOf(node);
      }
    } else {
      peak.phase = TransientPeak::Phase::GradientSum;
    }
    peak.parts = std::move(*m_moments).parts();
    return peak;
  }

 private:
  /// Sets the moments of the backward pass, with recomputations of blocks; returns the first moment after them.
  std::size_t orderBackward() {
    m_backwardAt.resize(m_nodes);
    m_againAt.resize(m_nodes, 0);
    std::vector<const graph::CheckpointedBlock*> before(m_nodes, nullptr);
    for (const graph::CheckpointedBlock& block : m_facts.checkpoints.blocks) before[block.last.index()] = &block;
    std::size_t moment = m_forward;
    for (std::size_t node = m_nodes; node-- > 0;) {
      if (before[node]) {
        for (const NodeId again : before[node]->again) m_againAt[again.index()] = moment++;
      }
      m_backwardAt[node] = moment++;
    }
    return moment;
  }
  std::size_t backward(std::size_t node) const { return m_backwardAt[node]; }
  std::size_t again(NodeId node) const { return m_againAt[node.index()]; }
  std::int64_t bytes(ValueId value) const { return m_buffers.bytes(value, m_solution.of(value)); }
  Gatherers* gatherersOf(ValueId value) {
    const std::uint32_t at = m_gathererOf[value.index()];
    return at == 0 ? nullptr : &m_gatherers[at - 1];
  }

  void findGathered() {
    if (m_ranks == 1) return;
    for (NodeId id : idRange<NodeId>(m_nodes)) {
      const auto& option = m_solution.strategies[id.index()];
      if (!option || option->before != CollectiveKind::AllGather) continue;
      std::uint32_t& at = m_gathererOf[m_variables.layer(id)->input.index()];
      if (at == 0) {
        m_gatherers.push_back({id.index(), id.index(), false});
        at = static_cast<std::uint32_t>(m_gatherers.size());
      }
      m_gatherers[at - 1].last = id.index();
      m_gatherers[at - 1].sumsGradient = m_gatherers[at - 1].sumsGradient || option->weight.isSplit();
    }
    for (const graph::Output& output : m_graph.outputs) {
      if (!m_facts.of(output.value).isOutput || m_solution.of(output.value).isReplicated()) continue;
      const bool isKnown =
          std::find(m_gatheredOutputs.begin(), m_gatheredOutputs.end(), output.value) != m_gatheredOutputs.end();
      if (!isKnown) m_gatheredOutputs.push_back(output.value);
    }
  }

  void holdValues() {
    std::vector<std::size_t> until(m_graph.values.size(), 0);  // for owners of outputs
    for (const graph::Output& output : m_graph.outputs) {
      if (!m_facts.of(output.value).isOutput) continue;
      const auto gathered = std::find(m_gatheredOutputs.begin(), m_gatheredOutputs.end(), output.value);
      const bool stays = gathered == m_gatheredOutputs.end();
      std::size_t& last = until[m_facts.lifetimes.ownerOf(output.value).index()];
      last = std::max(last, stays ? m_end : m_nodes + static_cast<std::size_t>(gathered - m_gatheredOutputs.begin()));
    }
    for (ValueId value : idRange<ValueId>(m_graph.values.size())) {
      const ValueFacts& facts = m_facts.of(value);
      if (facts.isCached || !m_facts.lifetimes.ownsMemory(value)) continue;
      std::size_t last = std::max(until[value.index()], m_facts.lifetimes.lastReader(value).index());
      if (facts.isSaved) {
        last = std::max(last, backward(m_facts.backward.firstSaver[value.index()].index()));
        m_saved += bytes(value);
      }
      m_moments->hold(m_graph.value(value).producer.index(), last, bytes(value), facts.isSaved ? kStays : Held{value});
      holdAgain(value);
    }
  }

  /// Adds a value that its block recomputes before its backward pass.
  void holdAgain(ValueId value) {
    const NodeId producer = m_graph.value(value).producer;
    if (!m_isTraining || !m_facts.of(producer).isAgain) return;
    const NodeId reader = m_facts.backward.lastAgain[value.index()];
    std::size_t last = std::max(again(producer), reader.isValid() ? again(reader) : 0);
    if (m_facts.of(value).isSavedAgain)
      last = std::max(last, backward(m_facts.backward.firstSaverAgain[value.index()].index()));
    m_moments->hold(again(producer), last, bytes(value), {value});
  }

  /// One gather serves the graph output and all layers that read the gathered tensor. The gathered tensor is not saved
  /// for the backward pass.
  void holdGathered() {
    std::vector<bool> isDone(m_gatherers.size(), false);
    for (std::size_t i = 0; i < m_gatheredOutputs.size(); ++i) {
      const ValueId value = m_gatheredOutputs[i];
      const Gatherers* gatherers = gatherersOf(value);
      holdGather(value, gatherers ? gatherers->first : m_nodes + i, m_end);
      if (gatherers) isDone[m_gathererOf[value.index()] - 1] = true;
    }
    for (ValueId value : idRange<ValueId>(m_graph.values.size())) {
      const Gatherers* gatherers = gatherersOf(value);
      if (!gatherers) continue;
      if (!isDone[m_gathererOf[value.index()] - 1]) holdGather(value, gatherers->first, gatherers->last);
      if (!m_isTraining) continue;
      // It is gathered again for the gradients of the weights, while its own full gradient is summed. If its readers
      // are recomputed, it is gathered at that moment.
      const std::size_t inBlock = m_againAt[gatherers->first];
      const std::size_t first = inBlock > 0 ? std::min(inBlock, backward(gatherers->last)) : backward(gatherers->last);
      const std::size_t last = backward(gatherers->first);
      holdGather(value, first, last);
      if (!m_facts.of(value).needsGradient) continue;
      m_moments->hold(first, last, m_buffers.gathered(value, m_solution.of(value)), {value, PeakPart::Kind::Gradient});
      if (gatherers->sumsGradient)
        m_moments->add(last, m_buffers.rankMajor(value, m_solution.of(value)), {value, PeakPart::Kind::Buffers});
    }
  }
  void holdGather(ValueId value, std::size_t first, std::size_t last) {
    m_moments->hold(first, last, m_buffers.gathered(value, m_solution.of(value)), {value, PeakPart::Kind::Gathered});
    m_moments->add(first, m_buffers.rankMajor(value, m_solution.of(value)), {value, PeakPart::Kind::Buffers});
  }

  Held buffersOf(NodeId layer) const { return {m_graph.node(layer).results.front(), PeakPart::Kind::Buffers}; }

  void runForward() {
    for (NodeId id : idRange<NodeId>(m_nodes)) {
      const graph::Node& node = m_graph.node(id);
      if (node.kind != graph::NodeKind::Call || node.results.empty()) continue;
      const auto& option = m_solution.strategies[id.index()];
      const bool isAgain = m_facts.of(id).isAgain;
      if (option && m_variables.layer(id)) {
        m_moments->add(id.index(), m_buffers.forward(id, *option), buffersOf(id));
        if (isAgain) m_moments->add(again(id), m_buffers.forward(id, *option), buffersOf(id));
      }
      const auto reads = m_variables.reads(id);
      const Placement operand = reads.empty() ? Placement() : m_solution.of(reads[0].value);
      const std::int64_t inside = m_buffers.savedInside(id, option, m_solution.computed(node.results[0]), operand);
      if (inside == 0) continue;
      if (isAgain) {
        m_moments->hold(again(id), backward(id.index()), inside, buffersOf(id));
        continue;
      }
      m_saved += inside;
      m_moments->hold(id.index(), backward(id.index()), inside, kStays);
    }
    for (const auto& [value, computed] : m_solution.computedAs) {
      const NodeId producer = m_graph.value(value).producer;
      const Held buffer{value, PeakPart::Kind::Buffers};
      m_moments->add(producer.index(), m_buffers.bytes(value, computed), buffer);
      if (m_facts.of(producer).isAgain) m_moments->add(again(producer), m_buffers.bytes(value, computed), buffer);
    }
  }

  void runBackward() {
    for (NodeId id : idRange<NodeId>(m_nodes)) {
      if (!m_facts.of(id).needsGradient) continue;
      const auto& option = m_solution.strategies[id.index()];
      if (option && m_variables.layer(id))
        m_moments->add(backward(id.index()), m_buffers.backward(id, *option), buffersOf(id));
    }
    for (const auto& [value, computed] : m_solution.computedAs) {
      if (!m_facts.of(value).needsGradient) continue;
      m_moments->add(backward(m_graph.value(value).producer.index()), m_buffers.bytes(value, computed),
                     {value, PeakPart::Kind::Buffers});
    }
    std::vector<bool> isGiven(m_graph.values.size(), false);  // its gradient is an input of the backward pass
    for (const graph::Output& output : m_graph.outputs) {
      if (m_facts.of(output.value).isOutput)
        isGiven[m_facts.backward.gradientOwner[output.value.index()].index()] = true;
    }
    for (ValueId value : idRange<ValueId>(m_graph.values.size())) {
      const ValueFacts& facts = m_facts.of(value);
      if (!facts.needsGradient || m_facts.backward.gradientOwner[value.index()] != value) continue;
      facts.isParameter ? addContributions(value) : holdGradient(value, isGiven[value.index()]);
    }
  }

  void holdGradient(ValueId value, bool isGiven) {
    const NodeId reader = m_facts.backward.lastReader[value.index()];
    if (!isGiven && !reader.isValid()) return;
    const std::size_t first = isGiven ? m_forward : backward(reader.index());
    m_moments->hold(first, backward(m_graph.value(value).producer.index()), bytes(value),
                    {value, PeakPart::Kind::Gradient});
  }

  /// The first gradient of a parameter is written in place. Further ones need their own memory and are added.
  void addContributions(ValueId parameter) {
    const NodeId first = m_facts.backward.lastReader[parameter.index()];
    for (const NodeId user : m_graph.value(parameter).users) {
      if (user != first && m_facts.of(user).needsGradient)
        m_moments->add(backward(user.index()), bytes(parameter), {parameter, PeakPart::Kind::Gradient});
    }
  }

  const Graph& m_graph;
  const Variables& m_variables;
  const CostFacts& m_facts;
  const Solution& m_solution;
  const Buffers m_buffers;
  const bool m_isTraining;
  const int m_ranks;
  const std::size_t m_nodes;
  std::size_t m_forward = 0;                         ///< moments of the forward pass
  std::size_t m_end = 0;                             ///< the last moment
  std::vector<std::size_t> m_backwardAt, m_againAt;  ///< by node: moments; 0: not recomputed
  std::vector<std::uint32_t> m_gathererOf;           ///< by value: index into m_gatherers plus one; 0: not gathered
  std::vector<Gatherers> m_gatherers;
  std::vector<ValueId> m_gatheredOutputs;  ///< split outputs, each once
  std::optional<Moments> m_moments;
  std::int64_t m_saved = 0;  ///< bytes that StepCost::activations counts
};

}  // namespace

std::int64_t CostModel::transientPeak(const Solution& solution, const StepCost& sum) const {
  Step step(m_problem, m_variables, *m_facts, solution);
  return step.transient(sum.summedGradients, m_problem.cost.isTraining ? optimizerBytes(solution) : 0);
}

TransientPeak peakOf(const Problem& problem, const Variables& variables, const Solution& solution) {
  const CostFacts facts(problem, variables);
  const CostModel model(problem, variables);
  const PlanCost cost = model.evaluate(solution);
  Step first(problem, variables, facts, solution);
  const Moments::Peak fullest = first.fullest(cost.sum.summedGradients, 0);
  if (first.beyondSaved(fullest.bytes) < cost.transientPeak) return {.phase = TransientPeak::Phase::Optimizer};
  Step watched(problem, variables, facts, solution, fullest.moment);
  watched.fullest(cost.sum.summedGradients, 0);
  return std::move(watched).describe(fullest.moment);
}

/// The optimizer updates one parameter after the other. It allocates AdamW's square root of the second moment and its
/// quotient, and for half precision the gradient in the precision of the states.
std::int64_t CostModel::optimizerBytes(const Solution& solution) const {
  const Buffers buffers(m_problem, m_variables, *m_facts);
  std::int64_t most = 0;
  for (const graph::Node& node : m_problem.graph->nodes) {
    if (node.kind != graph::NodeKind::Parameter || !m_facts->of(node.results[0]).needsGradient) continue;
    const std::int64_t itemSize = m_facts->of(node.results[0]).itemSize;
    const std::int64_t elements = buffers.bytes(node.results[0], solution.of(node.results[0])) / itemSize;
    most = std::max(most, saturatingMul(elements, optimizerMemory(m_problem.cost.optimizer, itemSize).transient));
  }
  return most;
}

std::int64_t LeastTransient::totalWith(std::int64_t others) const {
  return isKnown ? std::max(saturatingAdd(forward, others), elsewhere) : 0;
}

ValueId CostModel::holderOf(ValueId value) const { return m_facts->of(value).heldBy; }

std::pair<NodeId, NodeId> CostModel::lifeOf(ValueId holder) const {
  return {m_problem.graph->value(holder).producer, m_facts->lifetimes.lastReader(holder)};
}

CostModel::Holding CostModel::holdingOf(ValueId value) const {
  const ValueFacts& facts = m_facts->of(value);
  return {saturatingMul(m_facts->of(facts.heldBy).count, m_facts->of(facts.heldBy).itemSize), facts.heldBy == value,
          facts.isPart, facts.cutAlong};
}

std::int64_t CostModel::heldFor(ValueId value, const Placement& placement) const {
  return leastOf(Buffers(m_problem, m_variables, *m_facts), m_facts->of(value).heldBy, value, placement);
}

std::int64_t CostModel::gatherBuffers(ValueId value, const Placement& placement) const {
  return Buffers(m_problem, m_variables, *m_facts).rankMajor(value, placement);
}

/// The memory of a replicated view is replicated, because views do not copy. If the view is all of the memory, or a
/// piece along a dimension that is not split, a rank has the same share of the memory as of the view. For any other
/// piece, a rank has at least its part of the piece and an even share of the rest.
std::int64_t CostModel::leastOf(const Buffers& buffers, ValueId owner, ValueId value,
                                const Placement& placement) const {
  if (placement.isReplicated() || owner == value) return buffers.bytes(owner, placement);
  const ValueFacts& facts = m_facts->of(value);
  const std::int64_t all = buffers.fullBytes(owner);
  const int ranks = m_problem.context.worldSize;
  if (!facts.isPart) return all / ranks;
  const std::int64_t part = buffers.bytes(value, placement), whole = buffers.fullBytes(value);
  const bool isShare =
      facts.cutAlong == ValueFacts::kAll || (facts.cutAlong >= 0 && !placement.touches(facts.cutAlong));
  if (isShare && whole > 0) return static_cast<std::int64_t>(Wide(all) * part / whole);
  return saturatingAdd(part, std::max<std::int64_t>(0, all - whole) / ranks);
}

/// Several operands can be views of one memory. The largest lower bound among them is used.
template <class OwnerOf>
std::int64_t CostModel::heldByReads(NodeId node, std::span<const Placement> reads, OwnerOf ownerOf) const {
  const Buffers buffers(m_problem, m_variables, *m_facts);
  const auto values = m_variables.reads(node);
  std::int64_t held = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const ValueId owner = ownerOf(m_facts->of(values[i].value));
    if (!owner.isValid()) continue;
    std::int64_t largest = 0;
    bool isFirst = true;
    for (std::size_t j = 0; j < values.size(); ++j) {
      if (ownerOf(m_facts->of(values[j].value)) != owner) continue;
      isFirst = isFirst && j >= i;
      largest = std::max(largest, leastOf(buffers, owner, values[j].value, reads[j]));
    }
    if (isFirst) held = saturatingAdd(held, largest);
  }
  return held;
}

LeastTransient CostModel::leastTransient(NodeId node, const Choice& choice, std::span<const Placement> reads) const {
  const graph::Node& n = m_problem.graph->node(node);
  // The live saved activations depend on other steps unless this node is the last one to save.
  if (n.kind != graph::NodeKind::Call || (m_problem.cost.isTraining && !m_facts->of(node).isLastToSave)) return {};
  const Buffers buffers(m_problem, m_variables, *m_facts);
  // Operands and results are live together, and so are their gradients in the backward pass.
  std::int64_t made = heldByReads(node, reads, [](const ValueFacts& facts) { return facts.heldBy; });
  std::int64_t gradients = 0, outputs = 0, computed = 0;
  if (m_facts->of(node).needsGradient)
    gradients = heldByReads(node, reads, [](const ValueFacts& facts) { return facts.gradientIn; });
  for (std::size_t i = 0; i < n.results.size(); ++i) {
    const ValueId result = n.results[i];
    const ValueFacts& facts = m_facts->of(result);
    const Placement& placement = choice.results[i];
    const std::int64_t held = buffers.bytes(result, placement);
    if (facts.heldBy == result) made = saturatingAdd(made, held);
    if (facts.gradientIn == result) gradients = saturatingAdd(gradients, held);
    if (!choice.computedAs.empty() && choice.computedAs[i] != placement) {
      computed = saturatingAdd(computed, buffers.bytes(result, choice.computedAs[i]));
    }
    if (!facts.isOutput || placement.isReplicated() || m_problem.context.worldSize == 1) continue;
    // The rank's part is live in addition to the gathered output, and so are all other outputs. When training, or if a
    // layer may gather the output first, the copy may be freed before that.
    const bool isAtEnd = !m_problem.cost.isTraining && !facts.isGathered;
    const std::int64_t part = facts.heldBy.isValid() ? leastOf(buffers, facts.heldBy, result, placement) : 0;
    const std::int64_t extra = isAtEnd ? saturatingAdd(buffers.rankMajor(result, placement), part) : 0;
    const std::int64_t others = isAtEnd ? facts.otherOutputs : 0;
    outputs = std::max(outputs, saturatingAdd(buffers.gathered(result, placement), saturatingAdd(extra, others)));
  }
  const auto& layer = m_variables.layer(node);
  std::int64_t forward = saturatingAdd(made, computed);
  if (layer && choice.strategy) {
    const LayerStrategy& option = *choice.strategy;
    const std::int64_t input = option.before ? buffers.gathered(layer->input, option.input) : 0;
    forward = saturatingAdd(forward, saturatingAdd(input, buffers.forward(node, option)));
    if (m_facts->of(node).needsGradient) gradients = saturatingAdd(gradients, buffers.backward(node, option));
  }
  return {true, forward, std::max(outputs, gradients)};
}

}  // namespace cleave::solve
