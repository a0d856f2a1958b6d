#include "views/panels/layers_model.h"

#include "views/base/target.h"
#include "views/base/text.h"
#include "views/widgets/chip_delegate.h"

namespace cleave::views {

void LayersModel::setPlan(std::shared_ptr<const plan::Plan> plan) {
  beginResetModel();
  m_plan = std::move(plan);
  m_parameters.clear();
  if (m_plan)
    for (const program::ParameterShards& parameter : m_plan->parameters)
      m_parameters.emplace(parameter.name, &parameter);
  endResetModel();
}

int LayersModel::rowCount(const QModelIndex& parent) const {
  return parent.isValid() || !m_plan ? 0 : static_cast<int>(m_plan->layers.size());
}
int LayersModel::columnCount(const QModelIndex& parent) const { return parent.isValid() ? 0 : ColumnCount; }

const program::ParameterShards* LayersModel::weightOf(const plan::LayerPlan& layer) const {
  const auto found = m_parameters.find(layer.weight);
  return found == m_parameters.end() ? nullptr : found->second;
}

/// As on the canvas: copies on all ranks count as replicated, whatever the strategy's name.
LayerSplit LayersModel::effectiveStrategy(const plan::LayerPlan& layer) const {
  const program::ParameterShards* weight = weightOf(layer);
  return plan::layerSplit(layer.strategy, weight ? weight->placement : rules::Placement(), m_plan->spec.ranks);
}

QString LayersModel::text(const plan::LayerPlan& layer, int column) const {
  const program::ParameterShards* weight = weightOf(layer);
  switch (column) {
    case Name: return toQ(layer.name);
    case Kind:
      switch (layer.kind) {
        case graph::LayerKind::Linear: return QStringLiteral("linear");
        case graph::LayerKind::Embedding: return QStringLiteral("embedding");
        case graph::LayerKind::CrossEntropy: return QStringLiteral("cross entropy");
        case graph::LayerKind::Experts: return QStringLiteral("experts");
      }
      return {};
    case StrategyColumn: return strategyText(layer.strategy, effectiveStrategy(layer));
    case Gather: return layer.gatherOutput ? QStringLiteral("yes") : QString();
    case InputParallel: return layer.inputIsParallel ? QStringLiteral("yes") : QString();
    case SequenceParallelColumn: return layer.sequenceParallel ? QStringLiteral("yes") : QString();
    case Weight: return weight ? shapeText(weight->type.shape) : QString();
    case Local: return weight ? shapeText(weight->localShape) : QString();
    case Reason: return prose(layer.reason);
  }
  return {};
}

QVariant LayersModel::data(const QModelIndex& index, int role) const {
  if (!index.isValid() || !m_plan) return {};
  const plan::LayerPlan& layer = m_plan->layers[static_cast<std::size_t>(index.row())];
  switch (role) {
    case Qt::DisplayRole: return text(layer, index.column());
    case Qt::ToolTipRole:
      if (index.column() == StrategyColumn) return describe(effectiveStrategy(layer));
      return index.column() == Weight || index.column() == Local ? toQ(layer.weight) : text(layer, index.column());
    case kTargetRole: return QVariant::fromValue(Target(layer.node));
    case kSortRole:
      if (index.column() == Name) return index.row();
      if (const auto* weight = weightOf(layer); weight && index.column() == Weight)
        return qlonglong(graph::elementCount(weight->type.shape));
      else if (weight && index.column() == Local)
        return qlonglong(graph::elementCount(weight->localShape));
      return text(layer, index.column());
    case Qt::TextAlignmentRole:
      return index.column() == Weight || index.column() == Local ? int(Qt::AlignRight | Qt::AlignVCenter)
                                                                 : int(Qt::AlignLeft | Qt::AlignVCenter);
    default: return {};
  }
}

QVariant LayersModel::headerData(int section, Qt::Orientation orientation, int role) const {
  if (orientation != Qt::Horizontal) return {};
  static const char* const kTitles[] = {"Layer", "Kind",   "Strategy", "Gather", "Split in",
                                        "SP",    "Weight", "Per rank", "Why"};
  static const char* const kTips[] = {"",
                                      "",
                                      "",
                                      "The output is all-gathered after the layer",
                                      "The input arrives split (input_is_parallel)",
                                      "Sequence parallel: activations are split on the sequence around this layer",
                                      "Shape of the whole weight",
                                      "Shape of the shard per rank",
                                      ""};
  if (role == Qt::DisplayRole) return QString::fromUtf8(kTitles[section]);
  if (role == Qt::ToolTipRole && *kTips[section]) return QString::fromUtf8(kTips[section]);
  if (role == Qt::TextAlignmentRole && (section == Weight || section == Local))
    return int(Qt::AlignRight | Qt::AlignVCenter);
  return {};
}

}  // namespace cleave::views
