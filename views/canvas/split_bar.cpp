#include "canvas/split_bar.h"

#include "canvas/scene_painter.h"

namespace cleave::views {
namespace {

struct Part {
  double amount;
  std::optional<LayerForm> form;
  Tint tint;
};

std::vector<Part> partsOf(const SplitTally& tally) {
  std::vector<Part> parts;
  const plan::FormTally total = tally.work.total();
  for (std::size_t i = 0; i < kLayerForms && total.layers > 0; ++i) {
    const plan::FormTally& form = tally.work.forms[i];
    const double amount = total.weightBytes > 0 ? double(form.weightBytes) : total.flops > 0 ? form.flops : form.layers;
    parts.push_back({amount, static_cast<LayerForm>(i), Tint::Unassigned});
  }
  for (int t = 0; t < kTintCount && total.layers == 0; ++t)
    parts.push_back({double(tally.values[static_cast<std::size_t>(t)]), {}, static_cast<Tint>(t)});
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
    painter.setOpacity(filter.dims(part.form, part.tint) ? 0.25 : 1);
    if (part.form ? part.form == LayerForm::Open : part.tint == Tint::Unassigned)
      painter.fillRect(rect, theme.ground);
    else if (step <= 0)
      painter.fillRect(rect, part.form ? theme.color(*part.form) : theme.color(part.tint));
    else if (part.form)
      fillForm(painter, rect, theme, *part.form, step);
    else
      fillTint(painter, rect, theme, part.tint, step);
  }
  painter.setOpacity(1);
}

}  // namespace cleave::views
