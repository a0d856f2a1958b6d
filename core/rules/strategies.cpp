#include "rules/strategies.h"

#include "base/quantities.h"
#include "graph/arguments.h"
#include "rules/dim_meaning.h"
#include "rules/layer_outputs.h"
#include "rules/strategy_collectives.h"

#include <fmt/format.h>

#include <algorithm>

namespace cleave::rules {

namespace {

/// Collects the options of one layer. Each `offer…` adds an option, or a refusal with the numbers.
class Offers {
 public:
  Offers(const graph::Graph& graph, graph::NodeId node, const graph::LayerShape& layer, const StrategyContext& context)
      : m_graph(graph),
        m_layer(layer),
        m_context(context),
        m_node(graph.node(node)),
        m_result(graph.shapeOf(m_node.results.front())),
        m_inputRank(static_cast<int>(graph.shapeOf(layer.input).size())) {}

  LayerStrategies linear() {
    const bool isFull = m_context.candidateSet == CandidateSet::Full;
    column(Strategy::Column, Placement());
    if (isFull) fusedColumns(Strategy::Column, Placement(), Lanes::Split);
    if (isFull) column(Strategy::ColumnGather, Placement());
    if (isFull) fusedColumns(Strategy::Column, Placement(), Lanes::Whole);
    whole("every rank computes the full product");
    if (hasSequenceStrategies()) {
      const Placement sequence = Placement::split(m_inputRank - 2);
      column(Strategy::GatherColumn, sequence);
      if (isFull) fusedColumns(Strategy::GatherColumn, sequence, Lanes::Split);
      if (isFull) fusedColumns(Strategy::GatherColumn, sequence, Lanes::Whole);
      onSequence({Strategy::GatherReplicated,
                  sequence,
                  {},
                  {},
                  {},
                  {},
                  {},
                  "the sequence is gathered, then every rank computes the full product"});
      if (isFull) {
        onSequence({Strategy::ReplicatedOnSequence,
                    sequence,
                    {},
                    {},
                    sequence,
                    {},
                    {},
                    "each rank computes the product for its part of the sequence"});
      }
    }
    const bool isScatterFirst = m_context.sequenceParallel != SequenceParallel::Auto;
    if (isScatterFirst) row(Strategy::RowScatter);
    row(Strategy::Row);
    if (!isScatterFirst) row(Strategy::RowScatter);
    return std::move(m_options);
  }

  LayerStrategies embedding() {
    const bool isScatterFirst = m_context.sequenceParallel != SequenceParallel::Auto;
    if (isScatterFirst) vocab(Strategy::VocabScatter);
    const bool isSplit = vocab(Strategy::Vocab);
    if (!isScatterFirst) vocab(Strategy::VocabScatter);
    if (!isSplit || m_context.candidateSet == CandidateSet::Full) whole("every rank has the full table");
    if (m_context.candidateSet == CandidateSet::Full && meansHeads(m_graph, m_node.results.front(), lastDim()))
      headsOfTable();
    return std::move(m_options);
  }

  /// A table with values for each attention head (T5's bias of relative positions): each rank has the columns of its
  /// heads.
  void headsOfTable() {
    const std::int64_t heads = sizeAt(m_graph.shapeOf(m_layer.weight), m_layer.inAxis);
    const int ranks = m_context.worldSize;
    if (heads % ranks != 0) return refuse(Strategy::Column, doesNotDivide(heads, "head", ranks));
    offer({Strategy::Column,
           {},
           Placement::split(m_layer.inAxis),
           {},
           Placement::split(lastDim()),
           {},
           {},
           fmt::format("the columns of {} heads split over {} ranks, {} each", heads, ranks, heads / ranks)});
  }

  LayerStrategies crossEntropy() {
    const std::string refusal = whyNotVocabLoss();
    if (refusal.empty()) {
      const std::int64_t classes = sizeAt(m_graph.shapeOf(m_layer.input), 1);
      const std::int64_t padding = vocabularyPadding(classes);
      offer({Strategy::Vocab,
             Placement::split(1).withPadding(padding),
             {},
             {},
             {},
             {},
             {},
             fmt::format("{} classes{} split over {} ranks; the loss all-reduces over them", classes,
                         paddingText(padding), m_context.worldSize)});
    } else {
      refuse(Strategy::Vocab, refusal);
    }
    whole("every rank computes the full loss");
    return std::move(m_options);
  }

  LayerStrategies experts() {
    if (m_context.candidateSet == CandidateSet::Full) {
      byExpert();
      inExpert();
    }
    whole("every rank computes all experts");
    return std::move(m_options);
  }

  LayerStrategies onOneRank() {
    whole("one rank: nothing to split");
    return std::move(m_options);
  }

 private:
  /// Sets the fields that follow from the strategy.
  void offer(LayerStrategy option) {
    const bool isLoss = m_layer.kind == graph::LayerKind::CrossEntropy;
    option.before = collectiveBefore(option.strategy);
    option.after = isLoss ? std::nullopt : collectiveAfter(option.strategy);
    if (m_layer.down.isValid() && !option.down) option.down = Placement();
    m_options.offered.push_back(std::move(option));
  }
  void refuse(Strategy strategy, std::string reason) { m_options.refused.push_back({strategy, std::move(reason)}); }

  void whole(std::string reason) { offer({Strategy::Replicated, {}, {}, {}, {}, {}, {}, std::move(reason)}); }

  /// Sequence strategies need a batch, a sequence and a feature dimension.
  bool hasSequenceStrategies() const {
    return m_context.sequenceParallel != SequenceParallel::Off && m_result.size() >= 3;
  }
  int sequenceDim() const { return static_cast<int>(m_result.size()) - 2; }
  bool dividesSequence() const { return sizeAt(m_result, sequenceDim()) % m_context.worldSize == 0; }
  std::string sequenceRefusal() const {
    return fmt::format("the sequence of {} does not divide by {} ranks", sizeAt(m_result, sequenceDim()),
                       m_context.worldSize);
  }
  void onSequence(LayerStrategy option) {
    dividesSequence() ? offer(std::move(option)) : refuse(option.strategy, sequenceRefusal());
  }

  /// Rows to add so that a vocabulary of `size` divides. Only the full candidate set pads, and only if there are at
  /// least as many rows as ranks.
  std::int64_t vocabularyPadding(std::int64_t size) const {
    if (m_context.candidateSet != CandidateSet::Full || size < m_context.worldSize) return 0;
    return (m_context.worldSize - size % m_context.worldSize) % m_context.worldSize;
  }
  static std::string paddingText(std::int64_t padding) {
    return padding == 0 ? "" : fmt::format(", padded by {},", padding);
  }

  std::int64_t outFeatures() const { return sizeAt(m_graph.shapeOf(m_layer.weight), m_layer.outAxis); }
  int lastDim() const { return static_cast<int>(m_result.size()) - 1; }

  /// Placement of the bias for a column split `lane` of the result's last dimension.
  Placement columnBias(const Placement& lane) const {
    if (!m_layer.bias.isValid() || sizeAt(m_graph.shapeOf(m_layer.bias), 0) != outFeatures()) return {};
    return lane.shifted(-lane.firstDim());
  }

  void column(Strategy strategy, const Placement& input) {
    const std::int64_t out = outFeatures();
    const int ranks = m_context.worldSize;
    std::int64_t padding = vocabularyPadding(out);
    if (padding != 0 && !makesClasses(m_graph, m_node.results.front())) padding = 0;
    if ((out + padding) % ranks != 0) return refuse(strategy, doesNotDivide(out, "output feature", ranks));
    if (input.isSplit() && !dividesSequence()) return refuse(strategy, sequenceRefusal());
    const Placement lane = Placement::split(lastDim()).withPadding(padding);
    offer({strategy,
           input,
           lane.shifted(m_layer.outAxis - lastDim()),
           columnBias(lane),
           strategy == Strategy::ColumnGather ? Placement() : lane,
           {},
           {},
           fmt::format("{} output features{} split over {} ranks, {} each", out, paddingText(padding), ranks,
                       (out + padding) / ranks)});
  }

  /// Columns that match the readers: fused projections as blocks, single KV heads with replicas. `Lanes::Whole` are
  /// those that every rank has in full. They save nothing, so they come after those that split the weight.
  enum class Lanes { Split, Whole };
  void fusedColumns(Strategy strategy, const Placement& input, Lanes wanted) {
    const auto lane = columnsForReaders(m_graph, m_node.results.front(), m_context.worldSize);
    if (!lane || lane->isReplicatedOn(m_context.worldSize) != (wanted == Lanes::Whole)) return;
    const std::string why = lane->whyNotDivisible(m_result, m_context.worldSize);
    if (!why.empty())
      return refuse(strategy, fmt::format("{} output features as {}: {}", outFeatures(), lane->text(), why));
    if (input.isSplit() && !dividesSequence()) return refuse(strategy, sequenceRefusal());
    offer({strategy,
           input,
           lane->shifted(m_layer.outAxis - lastDim()),
           columnBias(*lane),
           *lane,
           {},
           {},
           fusedReason(*lane)});
  }
  std::string fusedReason(const Placement& lane) const {
    const int ranks = m_context.worldSize;
    if (lane.blocks().empty() && lane.replicas() == ranks) {
      return fmt::format("all {} output features on each of the {} ranks, because the heads do not divide by the ranks",
                         outFeatures(), ranks);
    }
    if (lane.blocks().empty()) {
      return fmt::format(
          "{} output features in {} parts, each on {} ranks, because the heads do not divide by {} ranks",
          outFeatures(), ranks / lane.replicas(), lane.replicas(), ranks);
    }
    const auto isShared = [](const Block& block) { return block.replicas > 1; };
    if (std::any_of(lane.blocks().begin(), lane.blocks().end(), isShared)) {
      return fmt::format(
          "{} output features are {} fused blocks, split over {} ranks; ranks share the heads of some "
          "blocks",
          outFeatures(), lane.blocks().size(), ranks);
    }
    return fmt::format("{} output features are {} fused blocks, each split over {} ranks", outFeatures(),
                       lane.blocks().size(), ranks);
  }

  void row(Strategy strategy) {
    const std::int64_t in = sizeAt(m_graph.shapeOf(m_layer.weight), m_layer.inAxis);
    const int ranks = m_context.worldSize;
    const bool isScatter = strategy == Strategy::RowScatter;
    if (isScatter && !hasSequenceStrategies()) return;
    if (in % ranks != 0) return refuse(strategy, doesNotDivide(in, "input feature", ranks));
    LayerStrategy option{
        strategy,
        Placement::split(m_inputRank - 1),
        Placement::split(m_layer.inAxis),
        {},
        {},
        {},
        {},
        fmt::format("{} input features split over {} ranks, {} each; the partial sums are {}", in, ranks, in / ranks,
                    isScatter ? "reduce-scattered along the sequence" : "all-reduced")};
    option.result = isScatter ? Placement::split(sequenceDim()) : Placement();
    isScatter ? onSequence(std::move(option)) : offer(std::move(option));
  }

  /// Returns false if the vocabulary does not divide.
  bool vocab(Strategy strategy) {
    const std::int64_t rows = sizeAt(m_graph.shapeOf(m_layer.weight), m_layer.outAxis);
    const int ranks = m_context.worldSize;
    const bool isScatter = strategy == Strategy::VocabScatter;
    if (isScatter && !hasSequenceStrategies()) return true;
    const std::int64_t padding = vocabularyPadding(rows);
    if ((rows + padding) % ranks != 0) {
      refuse(strategy, doesNotDivide(rows, "vocabulary row", ranks));
      return false;
    }
    LayerStrategy option{strategy,
                         {},
                         Placement::split(m_layer.outAxis).withPadding(padding),
                         {},
                         {},
                         {},
                         {},
                         fmt::format("{} vocabulary rows{} split over {} ranks, {} each", rows, paddingText(padding),
                                     ranks, (rows + padding) / ranks)};
    if (isScatter) {
      option.result = Placement::split(sequenceDim());
      onSequence(std::move(option));
    } else {
      offer(std::move(option));
    }
    return true;
  }

  /// Each rank has complete experts, and adds zero for tokens of other ranks' experts.
  void byExpert() {
    const std::int64_t experts = sizeAt(m_graph.shapeOf(m_layer.weight), 0);
    const int ranks = m_context.worldSize;
    if (experts % ranks != 0) return refuse(Strategy::ByExpert, doesNotDivide(experts, "expert", ranks));
    offer({Strategy::ByExpert,
           {},
           Placement::split(0),
           m_layer.bias.isValid() ? Placement::split(0) : Placement(),
           {},
           {},
           {},
           fmt::format("{} experts split over {} ranks, {} each; the partial sums are all-reduced", experts, ranks,
                       experts / ranks),
           Placement::split(0)});
  }

  /// Each rank has a part of every expert. Gate and up are two blocks of one dimension, or alternate.
  void inExpert() {
    const std::int64_t features = sizeAt(m_graph.shapeOf(m_layer.down), m_layer.inAxis);
    const int ranks = m_context.worldSize;
    const auto gateAndUp = [&](int dim) {
      const Placement even = Placement::split(dim);
      return graph::areInTurn(m_layer) ? even : even.withBlocks({{features, 1}, {features, 1}});
    };
    if (features % ranks != 0) {
      return refuse(Strategy::InExpert,
                    doesNotDivide(features, "feature of each expert", ranks, "features of each expert"));
    }
    offer({Strategy::InExpert,
           {},
           gateAndUp(m_layer.outAxis),
           m_layer.bias.isValid() ? gateAndUp(1) : Placement(),
           {},
           {},
           {},
           fmt::format("{} features of each expert split over {} ranks, {} each; the partial sums are all-reduced",
                       features, ranks, features / ranks),
           Placement::split(m_layer.inAxis)});
  }

  double labelSmoothing() const {
    constexpr std::size_t kLabelSmoothing = 5;
    return graph::numberAt(m_node, kLabelSmoothing).value_or(0);
  }

  std::string whyNotVocabLoss() const {
    const Shape& logits = m_graph.shapeOf(m_layer.input);
    if (logits.size() != 2)
      return fmt::format("the logits have {}, not [tokens, classes]", counted(std::ssize(logits), "dimension"));
    if (m_layer.weight.isValid()) return "the loss has class weights";
    if (labelSmoothing() != 0) return fmt::format("the loss smooths its labels by {}", labelSmoothing());
    if (graph::isReal(m_graph, m_layer.target)) return "the targets are probabilities";
    if ((logits[1] + vocabularyPadding(logits[1])) % m_context.worldSize != 0) {
      return doesNotDivide(logits[1], "class", m_context.worldSize, "classes");
    }
    return {};
  }

  const graph::Graph& m_graph;
  const graph::LayerShape& m_layer;
  const StrategyContext& m_context;
  const graph::Node& m_node;
  const Shape& m_result;
  int m_inputRank;
  LayerStrategies m_options;
};

}  // namespace

std::string doesNotDivide(std::int64_t count, std::string_view one, int ranks, std::string_view many) {
  const std::string single = fmt::format("{} does", one);
  return fmt::format("{} not divide by {} ranks",
                     counted(count, single, many.empty() ? fmt::format("{}s do", one) : fmt::format("{} do", many)),
                     ranks);
}

LayerStrategies layerStrategies(const graph::Graph& graph, graph::NodeId node, const graph::LayerShape& layer,
                                const StrategyContext& context) {
  Offers offers(graph, node, layer, context);
  if (context.worldSize <= 1) return offers.onOneRank();
  switch (layer.kind) {
    case graph::LayerKind::Linear: return offers.linear();
    case graph::LayerKind::Embedding: return offers.embedding();
    case graph::LayerKind::CrossEntropy: return offers.crossEntropy();
    case graph::LayerKind::Experts: return offers.experts();
  }
  return {};
}

}  // namespace cleave::rules
