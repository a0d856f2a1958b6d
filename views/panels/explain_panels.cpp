#include "panels/explain_panels.h"

#include <QApplication>
#include <QClipboard>
#include <QEvent>
#include <QFontDatabase>
#include <QHBoxLayout>
#include <QLabel>
#include <QMenu>
#include <QPainter>
#include <QPushButton>
#include <QScrollBar>
#include <QVBoxLayout>

#include "text.h"

namespace cleave::views {

namespace {
constexpr int kRefreshMs = 20;

/// Starts unless it is running: a burst of signals is one refresh, and a long burst does not starve it.
void startOn(QTimer& timer, Document& document, std::initializer_list<void (Document::*)()> sources) {
  for (const auto source : sources)
    QObject::connect(&document, source, &timer, [&timer] {
      if (!timer.isActive()) timer.start();
    });
}
}  // namespace

LinkText::LinkText(Document& document, QWidget* parent) : QTextBrowser(parent) {
  setOpenLinks(false);
  setFrameShape(QFrame::NoFrame);
  QTextBrowser::document()->setDocumentMargin(8);
  connect(this, &QTextBrowser::anchorClicked, this, [&document](const QUrl& url) {
    const QString target = QUrl::fromPercentEncoding(url.toEncoded());
    if (target.startsWith(QLatin1String("unpin:")))
      document.removePin(target.mid(6));
    else if (!target.startsWith(QLatin1String("pin:")))
      document.follow(target);
    else if (const auto added = document.addPin(target.mid(4)); !added)
      emit document.message(toQ(added.error().message), Severity::Failure);
  });
}

void LinkText::setEmptyText(const QString& text) {
  m_emptyText = text;
}

void LinkText::showHtml(const QString& html, bool isSameSubject) {
  const QString mono = QFontDatabase::systemFont(QFontDatabase::FixedFont).family();
  const QString sheet = QStringLiteral("a{color:%1;text-decoration:none} code{font-family:'%2'} p{margin:2px 0 4px 0}")
                            .arg(palette().color(QPalette::Link).name(), mono);
  const QString shown = html.isEmpty() ? QString() : QStringLiteral("<style>%1</style>%2").arg(sheet, html);
  if (shown == m_shown) return;
  m_shown = shown;
  const int scroll = verticalScrollBar()->value();
  setHtml(shown);
  verticalScrollBar()->setValue(isSameSubject ? scroll : 0);
  viewport()->update();
}

void LinkText::paintEvent(QPaintEvent* event) {
  QTextBrowser::paintEvent(event);
  if (!m_shown.isEmpty() || m_emptyText.isEmpty()) return;
  QPainter painter(viewport());
  painter.setPen(palette().color(QPalette::PlaceholderText));
  painter.drawText(viewport()->rect().adjusted(16, 16, -16, -16), Qt::AlignCenter | Qt::TextWordWrap, m_emptyText);
}

DecisionPanel::DecisionPanel(Document& document, QWidget* parent)
    : QWidget(parent),
      m_document(document),
      m_title(new QLabel),
      m_text(new LinkText(document)),
      m_pin(new QPushButton(tr("Pin"))),
      m_forbid(new QPushButton(tr("Forbid"))),
      m_breakpoint(new QPushButton(tr("Breakpoint"))),
      m_next(new QPushButton(tr("Next change"))) {
  QFont font = m_title->font();
  font.setWeight(QFont::DemiBold);
  m_title->setFont(font);
  m_title->setContentsMargins(8, 6, 8, 2);
  m_title->setTextInteractionFlags(Qt::TextSelectableByMouse);
  m_title->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Preferred);
  m_text->setEmptyText(tr(
      "Click an operator or a module in the graph: what it became, what else was possible, and why not, stands here."));
  m_text->setAccessibleName(tr("Decision"));
  m_pin->setToolTip(tr("Demand a strategy for this layer and solve again"));
  m_forbid->setToolTip(tr("Forbid a strategy for this layer and solve again"));
  for (QPushButton* button : {m_pin, m_forbid}) button->setMenu(new QMenu(button));
  m_breakpoint->setCheckable(true);
  m_breakpoint->setToolTip(tr("Stop whenever the search changes this node (F9)"));
  m_next->setToolTip(tr("Go to the next step that changes this node (Ctrl+F10)"));

  auto* buttons = new QHBoxLayout;
  buttons->setContentsMargins(6, 4, 6, 6);
  buttons->addWidget(m_pin);
  buttons->addWidget(m_forbid);
  buttons->addWidget(m_breakpoint);
  buttons->addWidget(m_next);
  buttons->addStretch();
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->setSpacing(0);
  layout->addWidget(m_title);
  layout->addWidget(m_text, 1);
  layout->addLayout(buttons);

  connect(m_breakpoint, &QPushButton::clicked, this, [this] { m_document.toggleBreakpoint(m_document.focus().node); });
  connect(m_next, &QPushButton::clicked, this, [this] { m_document.toNextChange(m_document.focus().node); });
  m_refreshTimer.setSingleShot(true);
  m_refreshTimer.setInterval(kRefreshMs);
  connect(&m_refreshTimer, &QTimer::timeout, this, &DecisionPanel::refresh);
  startOn(m_refreshTimer, document,
          {&Document::focusChanged, &Document::stepChanged, &Document::decisionChanged, &Document::planChanged,
           &Document::pinsChanged, &Document::breakpointsChanged, &Document::modelChanged});
  refresh();
}

void DecisionPanel::refresh() {
  const DecisionText text = decisionText(m_document, TextColors::of(palette()));
  const Focus& focus = m_document.focus();
  m_title->setText(text.title);
  m_title->setVisible(!text.title.isEmpty());
  m_text->showHtml(text.html, focus.node == m_shownFocus.node && focus.scope == m_shownFocus.scope);
  m_shownFocus = focus;
  const bool hasNode = focus.node.isValid();
  m_pin->setVisible(!text.pins.empty());
  m_forbid->setVisible(!text.forbids.empty());
  m_breakpoint->setVisible(hasNode);
  m_next->setVisible(hasNode && m_document.trace());
  m_breakpoint->setChecked(hasNode && m_document.hasBreakpoint(focus.node));
  fillMenu(m_pin, text.pins);
  fillMenu(m_forbid, text.forbids);
}

void DecisionPanel::fillMenu(QPushButton* button, const std::vector<PinOffer>& offers) {
  button->menu()->clear();
  for (const PinOffer& offer : offers) {
    QAction* action = button->menu()->addAction(offer.label);
    action->setCheckable(true);
    action->setChecked(offer.isActive);
    connect(action, &QAction::triggered, this, [this, offer] {
      if (offer.isActive) return m_document.removePin(offer.spec);
      if (const auto added = m_document.addPin(offer.spec); !added)
        emit m_document.message(toQ(added.error().message), Severity::Failure);
    });
  }
}

void DecisionPanel::changeEvent(QEvent* event) {
  QWidget::changeEvent(event);
  if (event->type() == QEvent::PaletteChange) m_refreshTimer.start();
}

ConflictCard::ConflictCard(Document& document, QWidget* parent)
    : QWidget(parent), m_document(document), m_text(new LinkText(document)) {
  m_text->setEmptyText(
      tr("When the search meets a dead end, this card says which values cause it and what was tried. Solve a model, "
         "then press F8."));
  m_text->setAccessibleName(tr("Conflict"));
  auto* copy = new QPushButton(tr("Copy"));
  auto* previous = new QPushButton(tr("Previous"));
  auto* next = new QPushButton(tr("Next conflict"));
  previous->setToolTip(tr("Previous conflict (Shift+F8)"));
  next->setToolTip(tr("Next conflict (F8)"));
  auto* buttons = new QHBoxLayout;
  buttons->setContentsMargins(6, 4, 6, 6);
  buttons->addWidget(previous);
  buttons->addWidget(next);
  buttons->addStretch();
  buttons->addWidget(copy);
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->setSpacing(0);
  layout->addWidget(m_text, 1);
  layout->addLayout(buttons);
  connect(copy, &QPushButton::clicked, this, [this] { QApplication::clipboard()->setText(m_text->toPlainText()); });
  connect(previous, &QPushButton::clicked, &document, &Document::previousConflict);
  connect(next, &QPushButton::clicked, &document, &Document::nextConflict);
  m_refreshTimer.setSingleShot(true);
  m_refreshTimer.setInterval(kRefreshMs);
  connect(&m_refreshTimer, &QTimer::timeout, this, &ConflictCard::refresh);
  startOn(m_refreshTimer, document, {&Document::stepChanged, &Document::planChanged, &Document::traceChanged});
  const auto enable = [=, &document] {
    for (QPushButton* button : {copy, previous, next}) button->setEnabled(document.trace() != nullptr);
  };
  connect(&document, &Document::traceChanged, this, enable);
  enable();
}

void ConflictCard::refresh() {
  m_text->showHtml(conflictText(m_document, TextColors::of(palette())), false);
}

void ConflictCard::changeEvent(QEvent* event) {
  QWidget::changeEvent(event);
  if (event->type() == QEvent::PaletteChange) m_refreshTimer.start();
}

}  // namespace cleave::views
