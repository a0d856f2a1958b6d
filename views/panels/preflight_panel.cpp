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
constexpr int kWideEnough = 760;  ///< pixels from which the text and the numbers of ranks stand side by side

QString times(std::size_t count) { return count > 1 ? QStringLiteral("×%1").arg(countText(count)) : QString(); }

QString nodeNamed(const graph::Graph& graph, NodeId node, const QString& text) {
  return node.isValid() && node.index() < graph.nodes.size() ? link(node, text) : text.toHtmlEscaped();
}

/// A group: its name and count, its bytes, and under them what follows.
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
  for (const std::string& clause : plan::whatIsWell(preflight, ranks)) well << toQ(clause);
  if (!well.isEmpty())
    html += QStringLiteral("<p><b style=\"color:%1\">✓</b> %2.</p>")
                .arg(colors.good, capitalized(well.join(QObject::tr(", and "))));
  QStringList rows;
  for (const plan::IndivisibleHeads& attention : preflight.heads)
    addGroup(rows,
             nodeNamed(graph, attention.first,
                       attention.pattern.empty() ? QObject::tr("outside of modules") : toQ(attention.pattern)),
             attention.count, std::nullopt, proseHtml(attention.text, graph), colors);
  if (!rows.isEmpty())
    html += heading(QObject::tr("Heads that do not divide by %1 ranks").arg(ranks), colors) + table(rows);
  rows.clear();
  for (const plan::UnknownOperator& op : preflight.unknownOperators) {
    const QString verdict =
        op.matters ? QStringLiteral("<b style=\"color:%1\">%2</b> ").arg(colors.conflict, QObject::tr("It matters."))
                   : QObject::tr("It does not matter here. ");
    addGroup(rows, nodeNamed(graph, op.first, toQ(op.op)), op.count, std::nullopt, verdict + proseHtml(op.text, graph),
             colors);
  }
  if (!rows.isEmpty()) html += heading(QObject::tr("Operators without a rule"), colors) + table(rows);
  rows.clear();
  for (const plan::IndivisibleLayers& layers : preflight.indivisible)
    addGroup(rows, nodeNamed(graph, layers.first, toQ(layers.pattern)), layers.count, layers.bytes,
             proseHtml(layers.reason, graph), colors);
  if (!rows.isEmpty())
    html += heading(QObject::tr("Sizes that do not divide by %1 ranks").arg(ranks), colors) + table(rows);
  rows.clear();
  for (const plan::ReplicatedWeights& weights : preflight.whole)
    addGroup(rows, nodeNamed(graph, weights.first, toQ(weights.pattern)), weights.count, weights.bytes,
             proseHtml(weights.why, graph), colors);
  if (!rows.isEmpty())
    html +=
        heading(
            QObject::tr("Replicated on every rank, whatever the plan: %1").arg(bytesText(preflight.replicatedBytes)),
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
      m_again(new QPushButton(tr("Try again"))) {
  m_text->setEmptyText(
      tr("Before any search, this says which operators have no rule, which sizes do not divide, and what stays "
         "replicated. "
         "Open a model to fill it."));
  m_text->setAccessibleName(tr("Pre-flight"));
  m_detail->setWordWrap(true);
  m_detail->setTextFormat(Qt::PlainText);
  m_detail->setTextInteractionFlags(Qt::TextSelectableByMouse);
  m_detail->setAlignment(Qt::AlignLeft | Qt::AlignTop);
  m_detail->setMinimumHeight(fontMetrics().height() * 2);  // a longer reason moves nothing
  m_again->setToolTip(tr("Solve for every number of ranks with the present settings"));
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
    m_detail->setToolTip(m_strip->reason(m_strip->told()));
  });
  connect(m_text, &LinkText::followed, &selection, &Selection::follow);
  connect(m_strip, &WorldSizeStrip::chosen, &settings, &Settings::setRanks);
  connect(m_empty, &EmptyState::acted, &answers, &Answers::computeWorldSizes);
  connect(m_again, &QPushButton::clicked, &answers, &Answers::computeWorldSizes);
  connect(m_empty, &EmptyState::cancelled, this, [this] { m_answers.cancel(); });
  connect(&answers, &Answers::progressed, m_empty,
          [this](const QString&, qint64 done, qint64 total) { m_empty->setProgress(done, total); });
  auto* timer = new RefreshTimer(this, [this] { refresh(); });
  timer->follow(answers, {&Answers::preflightChanged}).follow(settings, {&Settings::changed});
  timer->follow(opened, {&OpenedModel::changed});
  refresh();
}

void PreflightPanel::refresh() {
  const auto& preflight = m_answers.preflight();
  const int ranks = m_settings.options().ranks;
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
    m_empty->work(tr("Solving for 1 to %1 ranks …").arg(kWorldSizes));
  else
    m_empty->say(tr("Here you will see which numbers of ranks work, from 1 to %1.").arg(kWorldSizes),
                 tr("Try them all"));
  if (!sizes) return;
  m_strip->setSizes(sizes->rows, kWorldSizes);
}

void PreflightPanel::resizeEvent(QResizeEvent* event) {
  QWidget::resizeEvent(event);
  const bool isWide = width() >= kWideEnough;
  m_layout->setDirection(isWide ? QBoxLayout::LeftToRight : QBoxLayout::TopToBottom);
  m_layout->setStretchFactor(m_scroll, isWide ? 0 : 2);  // beneath each other the tiles are the taller
}

void PreflightPanel::changeEvent(QEvent* event) {
  QWidget::changeEvent(event);
  if (event->type() == QEvent::PaletteChange) refresh();
}

}  // namespace cleave::views
