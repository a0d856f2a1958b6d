#include "views/window/plan_strip.h"

#include <QEvent>

#include "base/quantities.h"
#include "plan/build/warnings.h"
#include "plan/text/choice_text.h"
#include "plan/text/headline.h"
#include "plan/text/shares_text.h"
#include "solve/cost/memory_parts.h"
#include "solve/problem/wording.h"
#include "views/base/rich_text.h"
#include "views/base/text.h"
#include "views/panels/figures.h"
#include "views/widgets/panel_parts.h"

namespace cleave::views {

namespace {
QString splitText(const plan::Shares& shares) {
  if (shares.ranks == 1 || shares.layers.layers == 0) return toQ(plan::toText(shares)).chopped(1);
  QString text = QStringLiteral("<b>%1 of the weights</b> and %2 of the FLOPs per rank")
                     .arg(toQ(plan::percentText(shares.heldWeights())), toQ(plan::percentText(shares.computedFlops())));
  text += QStringLiteral(" · %1 of %2 layers split").arg(shares.layers.split).arg(shares.layers.layers);
  if (shares.layers.gathered > 0) text += QStringLiteral(", %1 gathered").arg(shares.layers.gathered);
  return text;
}

/// The largest group of replicated weights, with a link to it.
QString largestHtml(const plan::Plan& plan) {
  const std::string text = plan::largestWholeText(plan.shares);
  if (text.empty()) return {};
  const plan::WholeWeights& whole = *plan.shares.largestWhole;
  return toQ(text).toHtmlEscaped().replace(toQ(solve::ticked(whole.pattern)).toHtmlEscaped(),
                                           link(plan.graph->value(whole.first).producer, toQ(whole.pattern)));
}

/// "3 layers are replicated: ...", with a link from each cause to its first layer.
QString wholeHtml(const std::vector<plan::ReplicatedLayers>& layers) {
  QString html = toQ(plan::replicatedText(layers));
  for (const plan::ReplicatedLayers& same : layers)
    html.replace(toQ(plan::toText(same)), link(same.first, toQ(plan::toText(same))));
  return html;
}

QString bytesHtml(const plan::Plan& plan, const TextColors& colors) {
  QString bytes = QStringLiteral("<b>%1</b> per rank").arg(bytesText(plan.cost.bytes()));
  const std::int64_t budget = plan.spec.cost.budgetBytes();
  if (plan.cost.bytes() <= budget) return bytes;
  return QStringLiteral("%1 <span style=\"color:%2\">%3</span>")
      .arg(bytes, colors.conflict, QStringLiteral("(over the budget of %1)").arg(bytesText(budget)));
}

QString planHtml(const plan::Plan& plan, const TextColors& colors) {
  QStringList parts{QStringLiteral("<b>%1</b> per %2 on %3 × %4")
                        .arg(timeText(plan.cost.femtoseconds()),
                             plan.spec.cost.isTraining ? QStringLiteral("training step") : QStringLiteral("step"))
                        .arg(plan.spec.ranks)
                        .arg(toQ(plan.spec.cost.profile.name).toHtmlEscaped()),
                    bytesHtml(plan, colors), splitText(plan.shares), toQ(plan::proofInWords(plan))};
  parts.removeAll({});
  return parts.join(QStringLiteral(" · "));
}

QString modelText(const plan::ModelInfo& model) {
  if (model.batch == 0) return toQ(graph::toText(model.dtype));
  if (model.sequence == 0) return QStringLiteral("batch %1, %2").arg(model.batch).arg(toQ(graph::toText(model.dtype)));
  return QStringLiteral("batch %1, sequence %2, %3")
      .arg(model.batch)
      .arg(model.sequence)
      .arg(toQ(graph::toText(model.dtype)));
}

QString details(const plan::Plan& plan) {
  QStringList lines{QStringLiteral("Predicted: %1").arg(toQ(plan::predictedText(plan))),
                    QStringLiteral("Peak memory per rank: %1").arg(toQ(solve::memoryText(plan.cost)))};
  if (const std::string choice = plan::choiceInWords(plan); !choice.empty())
    lines << QStringLiteral("Chosen: %1").arg(toQ(choice));
  for (const std::string& sentence : plan::replicatedByChoice(plan)) lines << prose(sentence);
  return lines.join(QLatin1Char('\n'));
}
}  // namespace

PlanStrip::PlanStrip(const OpenedModel& opened, const Plans& plans, const Jobs& jobs, Selection& selection,
                     QWidget* parent)
    : QLabel(parent), m_opened(opened), m_plans(plans) {
  setContentsMargins(8, 0, 8, 2);
  setTextFormat(Qt::RichText);
  setWordWrap(true);
  setMinimumWidth(1);
  setTextInteractionFlags(Qt::TextBrowserInteraction);
  setAccessibleName(QStringLiteral("Plan"));
  onLink(*this, [&selection](const Target& target) { selection.follow(target); });
  connect(&plans, &Plans::planChanged, this, &PlanStrip::refresh);
  connect(&opened, &OpenedModel::changed, this, &PlanStrip::refresh);
  connect(&jobs, &Jobs::activityChanged, this, &PlanStrip::refresh);
  refresh();
}

void PlanStrip::refresh() {
  const auto& plan = m_plans.plan();
  const auto& model = m_opened.model();
  setVisible(model != nullptr);
  if (!model) return;
  const TextColors colors = TextColors::of(palette());
  QStringList second;
  if (plan)
    second << wholeHtml(plan::replicatedLayers(*plan)) << largestHtml(*plan)
           << toQ(plan::idleSequenceText(*plan)).toHtmlEscaped();
  if (!model->info.architecture.empty()) second << quiet(modelText(plan ? plan->model : model->info), colors);
  second.removeAll({});
  const QString first = plan ? planHtml(*plan, colors) : quiet(m_plans.whyNone().toHtmlEscaped(), colors);
  const QString html = QStringLiteral("<p>%1</p><p>%2</p>").arg(first, second.join(QStringLiteral(" · ")));
  setText(richTextStyle(palette()) + html);
  setToolTip(plan ? details(*plan) : QString());
}

void PlanStrip::changeEvent(QEvent* event) {
  QLabel::changeEvent(event);
  if (event->type() == QEvent::PaletteChange) refresh();
}

}  // namespace cleave::views
