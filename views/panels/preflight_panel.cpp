#include "views/panels/preflight_panel.h"

#include <QEvent>
#include <QHBoxLayout>
#include <QLabel>
#include <QPushButton>
#include <QScrollArea>
#include <QVBoxLayout>

#include "views/base/text.h"
#include "views/panels/world_sizes.h"
#include "views/widgets/link_text.h"
#include "views/widgets/panel_parts.h"

namespace cleave::views {

namespace {
constexpr int kWorldSizes = 64;
constexpr int kBothWide = 760;  ///< pixels from which the text and the rank counts are side by side

QString times(std::size_t count) { return count > 1 ? QStringLiteral("×%1").arg(countText(count)) : QString(); }

QString nodeNamed(const graph::Graph& graph, NodeId node, const QString& text) {
  return node.isValid() && node.index() < graph.nodes.size() ? link(node, text) : text.toHtmlEscaped();
}

/// A group: its name, count and bytes, with `words` below.
void addGroup(QStringList& rows, const QString& name, std::size_t count, std::optional<std::int64_t> bytes,
              const QString& words, const TextColors& colors) {
  const QString wide =
      QStringLiteral("<td width=\"80%\">%1</td>").arg(name);  // no break inside a name while there is room
  rows << row({wide, numberCell(quiet(times(count), colors)),
               numberCell(bytes ? bytesText(*bytes).replace(QLatin1Char(' '), QChar::Nbsp) : QString())});
  if (!words.isEmpty()) rows << row({cell(quiet(words, colors), 3)});
}
}  // namespace

QString preflightText(const plan::Preflight& preflight, const graph::Graph& graph, int ranks,
                      const TextColors& colors) {
  QString html;
  QStringList well;
  for (const std::string& clause : plan::passedChecks(preflight, ranks)) well << toQ(clause);
  if (!well.isEmpty())
    html += QStringLiteral("<p><b style=\"color:%1\">✓</b> %2.</p>")
                .arg(colors.good, capitalized(well.join(QStringLiteral(", and "))));
  QStringList rows;
  for (const plan::IndivisibleHeads& attention : preflight.heads)
    addGroup(rows,
             nodeNamed(graph, attention.first,
                       attention.pattern.empty() ? QStringLiteral("outside of modules") : toQ(attention.pattern)),
             attention.count, std::nullopt, proseHtml(attention.text, graph), colors);
  if (!rows.isEmpty())
    html += heading(QStringLiteral("Heads that do not divide by %1 ranks").arg(ranks), colors) + table(rows);
  rows.clear();
  for (const plan::UnknownOperator& op : preflight.unknownOperators) {
    const QString verdict = op.matters ? QStringLiteral("<b style=\"color:%1\">%2</b> ")
                                             .arg(colors.conflict, QStringLiteral("This affects the plan."))
                                       : QStringLiteral("This does not affect the plan. ");
    addGroup(rows, nodeNamed(graph, op.first, toQ(op.op)), op.count, std::nullopt, verdict + proseHtml(op.text, graph),
             colors);
  }
  if (!rows.isEmpty()) html += heading(QStringLiteral("Operators without a rule"), colors) + table(rows);
  rows.clear();
  for (const plan::IndivisibleLayers& layers : preflight.indivisible)
    addGroup(rows, nodeNamed(graph, layers.first, toQ(layers.pattern)), layers.count, layers.bytes,
             proseHtml(layers.reason, graph), colors);
  if (!rows.isEmpty())
    html += heading(QStringLiteral("Sizes that do not divide by %1 ranks").arg(ranks), colors) + table(rows);
  rows.clear();
  for (const plan::ReplicatedWeights& weights : preflight.replicated)
    addGroup(rows, nodeNamed(graph, weights.first, toQ(weights.pattern)), weights.count, weights.bytes,
             proseHtml(weights.why, graph), colors);
  if (!rows.isEmpty())
    html += heading(QStringLiteral("Replicated in every plan: %1 per rank").arg(bytesText(preflight.replicatedBytes)),
                    colors) +
            table(rows);
  return html;
}

PreflightPanel::PreflightPanel(const OpenedModel& opened, Settings& settings, Answers& answers, Selection& selection,
                               QWidget* parent)
    : QWidget(parent),
      m_opened(opened),
      m_settings(settings),
      m_answers(answers),
      m_layout(new QVBoxLayout(this)),
      m_text(new LinkText),
      m_empty(new EmptyState),
      m_sizes(new QWidget),
      m_scroll(new QScrollArea),
      m_strip(new WorldSizeStrip),
      m_detail(new QLabel),
      m_again(new QPushButton(QStringLiteral("Try again"))) {
  m_text->setEmptyText(QStringLiteral(
      "Without any search, this lists operators without a rule, sizes that do not divide, and replicated weights. "
      "Open a model to fill it."));
  m_text->setAccessibleName(QStringLiteral("Pre-flight"));
  m_detail->setWordWrap(true);
  m_detail->setTextFormat(Qt::PlainText);
  m_detail->setTextInteractionFlags(Qt::TextSelectableByMouse);
  m_detail->setAlignment(Qt::AlignLeft | Qt::AlignTop);
  m_detail->setMinimumHeight(fontMetrics().height() * 2);  // a longer reason does not move the layout
  m_again->setToolTip(QStringLiteral("Solve for every number of ranks with the current settings"));
  auto* under = new QHBoxLayout;
  under->addWidget(m_detail, 1);
  under->addWidget(m_again, 0, Qt::AlignTop);
  auto* sizes = new QVBoxLayout(m_sizes);
  sizes->setContentsMargins(8, 6, 8, 6);
  sizes->setSpacing(6);
  sizes->addWidget(m_strip);
  sizes->addLayout(under);
  sizes->addStretch();
  m_layout->setContentsMargins(0, 0, 0, 0);
  m_layout->setSpacing(0);
  m_layout->addWidget(m_text, 1);
  m_layout->addWidget(m_empty, 1);
  m_scroll->setWidget(m_sizes);
  m_scroll->setWidgetResizable(true);
  m_scroll->setFrameShape(QFrame::NoFrame);
  m_scroll->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  m_layout->addWidget(m_scroll, 0);

  connect(m_strip, &WorldSizeStrip::detailChanged, this, [this] {
    m_detail->setText(m_strip->detail());
    m_detail->setToolTip(m_strip->reason(m_strip->shownRanks()));
  });
  connect(m_text, &LinkText::followed, &selection, &Selection::follow);
  connect(m_strip, &WorldSizeStrip::chosen, &settings, &Settings::setRanks);
  connect(m_empty, &EmptyState::acted, &answers, &Answers::computeWorldSizes);
  connect(m_again, &QPushButton::clicked, &answers, &Answers::computeWorldSizes);
  connect(m_empty, &EmptyState::cancelled, this, [this] { m_answers.cancel(); });
  connect(&answers, &Answers::progressed, m_empty,
          [this](const QString&, qint64 done, qint64 total) { m_empty->setProgress(done, total); });
  auto* timer = new RefreshTimer(this, [this] { refresh(); });
  timer->followPalette().follow(answers, {&Answers::preflightChanged}).follow(settings, {&Settings::changed});
  timer->follow(opened, {&OpenedModel::changed});
  refresh();
}

void PreflightPanel::refresh() {
  const auto& preflight = m_answers.preflight();
  const int ranks = m_settings.spec().ranks;
  m_text->showHtml(preflight && m_opened.graph()
                       ? preflightText(*preflight, *m_opened.graph(), ranks, TextColors::of(palette()))
                       : QString(),
                   true);
  m_strip->setChosen(ranks);
  refreshSizes();
}

void PreflightPanel::refreshSizes() {
  const auto& sizes = m_answers.worldSizes();
  m_empty->setVisible(!sizes && m_opened.model());
  m_scroll->setVisible(sizes != nullptr);
  if (m_answers.isPending(AnswerKind::WorldSizes))
    m_empty->work(QStringLiteral("Solving for 1 to %1 ranks …").arg(kWorldSizes));
  else
    m_empty->say(QStringLiteral("This shows which numbers of ranks work, from 1 to %1.").arg(kWorldSizes),
                 QStringLiteral("Try all rank counts"));
  if (!sizes) return;
  m_strip->setSizes(sizes->rows, kWorldSizes);
}

void PreflightPanel::resizeEvent(QResizeEvent* event) {
  QWidget::resizeEvent(event);
  const bool isWide = width() >= kBothWide;
  m_layout->setDirection(isWide ? QBoxLayout::LeftToRight : QBoxLayout::TopToBottom);
  m_layout->setStretchFactor(m_scroll, isWide ? 0 : 2);  // when stacked, the tiles are taller
}

}  // namespace cleave::views
