#include "views/graph/scene/split_bar.h"

#include "views/graph/scene/fills.h"

namespace cleave::views {
namespace {

struct Part {
  double amount;
  std::optional<LayerSplit> split;
  Tint tint;
};

/// Counts by work: layers by strategy, other operators that compute (attention) by the placement of their results. A
/// module whose layers have no FLOPs (an embedding) counts by their weights, and a module without either by its values.
std::vector<Part> partsOf(const SplitTally& tally) {
  std::vector<Part> parts;
  const plan::LayerTally total = tally.work.total();
  const bool hasWork = tally.work.flops > 0 && total.layers > 0;
  for (std::size_t i = 0; i < kLayerSplits && total.layers > 0; ++i) {
    const plan::LayerTally& split = tally.work.splits[i];
    const double amount = hasWork ? split.flops : total.weightBytes > 0 ? double(split.weightBytes) : split.layers;
    parts.push_back({amount, static_cast<LayerSplit>(i), Tint::Unassigned});
  }
  for (int t = 0; t < kTintCount && (hasWork || total.layers == 0); ++t) {
    const auto at = static_cast<std::size_t>(t);
    parts.push_back({hasWork ? tally.flops[at] : double(tally.values[at]), {}, static_cast<Tint>(t)});
  }
  return parts;
}

}  // namespace

void paintSplitBar(QPainter& painter, const QRectF& bar, const SplitTally& tally, const Theme& theme, double step,
                   const SplitFilter& filter) {
  const std::vector<Part> parts = partsOf(tally);
  double sum = 0;
  for (const Part& part : parts) sum += part.amount;
  if (sum <= 0 || bar.width() <= 0) return;
  double x = bar.left();
  for (const Part& part : parts) {
    const QRectF rect(x, bar.top(), bar.width() * part.amount / sum, bar.height());
    if (rect.width() <= 0) continue;
    x = rect.right();
    painter.setOpacity(filter.dims(part.split, part.tint) ? 0.25 : 1);
    if (part.split ? part.split == LayerSplit::Open : part.tint == Tint::Unassigned)
      painter.fillRect(rect, theme.ground);
    else if (step <= 0)
      painter.fillRect(rect, part.split ? theme.color(*part.split) : theme.color(part.tint));
    else if (part.split)
      fillForm(painter, rect, theme, *part.split, step);
    else
      fillTint(painter, rect, theme, part.tint, step);
  }
  painter.setOpacity(1);
}

}  // namespace cleave::views
