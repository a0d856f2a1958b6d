#include "plan/work.h"

#include "graph/layers.h"
#include "solve/cost/flops.h"

namespace cleave::plan {
namespace {

using rules::Strategy;

FormTally& operator+=(FormTally& sum, const FormTally& other) {
  sum.layers += other.layers;
  sum.weightBytes += other.weightBytes;
  sum.flops += other.flops;
  return sum;
}

LayerForm formOfSplit(Strategy strategy) {
  switch (strategy) {
    case Strategy::Column:
    case Strategy::GatherColumn: return LayerForm::Column;
    case Strategy::ColumnGather: return LayerForm::ColumnGather;
    case Strategy::Row:
    case Strategy::RowScatter: return LayerForm::Row;
    case Strategy::Vocab:
    case Strategy::VocabScatter: return LayerForm::Vocab;
    case Strategy::ByExpert:
    case Strategy::InExpert: return LayerForm::Expert;
    case Strategy::WholeOnSequence: return LayerForm::Sequence;
    case Strategy::Whole:
    case Strategy::GatherWhole: break;
  }
  return LayerForm::Replicated;
}

}  // namespace

std::string_view toText(LayerForm form) {
  static constexpr std::array<std::string_view, kLayerForms> kNames{"column", "column+gather", "row",        "vocab",
                                                                    "expert", "sequence",      "replicated", "open"};
  return kNames[static_cast<std::size_t>(form)];
}

LayerForm layerForm(std::optional<Strategy> strategy, const Placement& weight, int ranks) {
  if (!strategy) return LayerForm::Open;
  // Nothing is split on one rank, and copies on all ranks are no split.
  const bool isCopy = ranks == 1 || (weight.isSplit() && weight.isWholeOn(ranks));
  return isCopy ? LayerForm::Replicated : formOfSplit(*strategy);
}

std::vector<NodeWork> workOf(const Graph& graph) {
  const std::vector<double> flops = solve::wholeFlops(graph);
  std::vector<bool> isTaken(graph.values.size(), false);
  std::vector<bool> mayBeLayer;
  for (const std::string& op : graph.ops) mayBeLayer.push_back(graph::mayBeLayer(op));
  std::vector<NodeWork> work(graph.nodes.size());
  for (const NodeId id : idRange<NodeId>(graph.nodes.size())) {
    NodeWork& node = work[id.index()];
    node.flops = flops[id.index()];
    const graph::Node& call = graph.node(id);
    if (call.kind != graph::NodeKind::Call || !mayBeLayer[call.op.index()]) continue;
    const auto layer = graph::layerShape(graph, id);
    if (!layer) continue;
    node.isLayer = true;
    for (const ValueId parameter : {layer->weight, layer->bias, layer->down}) {
      if (!parameter.isValid()) continue;
      node.isCounted = true;
      if (isTaken[parameter.index()]) continue;
      isTaken[parameter.index()] = true;
      node.weightBytes += graph::sizeInBytes(graph.value(parameter).type);
    }
  }
  return work;
}

FormTally WorkTally::total() const {
  FormTally sum;
  for (const FormTally& form : forms) sum += form;
  return sum;
}

void WorkTally::add(const NodeWork& work, LayerForm form, int times) {
  flops += times * work.flops;
  if (!work.isCounted) return;
  FormTally& of = forms[static_cast<std::size_t>(form)];
  of.layers += static_cast<std::uint32_t>(times);
  of.weightBytes += times * work.weightBytes;
  of.flops += times * work.flops;
}

WorkTally& WorkTally::operator+=(const WorkTally& other) {
  for (std::size_t i = 0; i < kLayerForms; ++i) forms[i] += other.forms[i];
  flops += other.flops;
  return *this;
}

}  // namespace cleave::plan
