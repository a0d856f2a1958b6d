#include "views/widgets/panel_parts.h"

#include <QEvent>
#include <QHBoxLayout>
#include <QProgressBar>
#include <QScrollBar>
#include <QStyleOptionButton>
#include <QStylePainter>
#include <QTextDocumentFragment>
#include <QVBoxLayout>

#include "views/base/rich_text.h"

namespace cleave::views {

namespace {
constexpr int kWidestSentence = 460;  ///< pixels; longer lines are hard to read
}  // namespace

EmptyState::EmptyState(QWidget* parent)
    : QWidget(parent),
      m_text(new QLabel),
      m_action(new QPushButton),
      m_progress(new QProgressBar),
      m_cancel(new QPushButton(QStringLiteral("Cancel"))) {
  m_text->setAlignment(Qt::AlignCenter);
  m_text->setWordWrap(true);
  m_text->setForegroundRole(QPalette::PlaceholderText);
  m_text->setTextFormat(Qt::PlainText);
  m_text->setMaximumWidth(kWidestSentence);
  m_progress->setMaximumWidth(220);
  m_progress->setTextVisible(false);
  m_progress->setFixedHeight(6);
  auto* working = new QHBoxLayout;
  working->addStretch();
  working->addWidget(m_progress, 1);
  working->addWidget(m_cancel);
  working->addStretch();
  auto* text = new QHBoxLayout;
  text->addStretch();
  text->addWidget(m_text, 100);
  text->addStretch();
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(16, 12, 16, 12);
  layout->setSpacing(10);
  layout->addStretch();
  layout->addLayout(text);
  layout->addWidget(m_action, 0, Qt::AlignHCenter);
  layout->addLayout(working);
  layout->addStretch();
  connect(m_action, &QPushButton::clicked, this, &EmptyState::acted);
  connect(m_cancel, &QPushButton::clicked, this, &EmptyState::cancelled);
  say({});
}

void EmptyState::say(const QString& text, const QString& action) {
  m_text->setText(text);
  m_action->setText(action);
  m_action->setVisible(!action.isEmpty());
  m_progress->hide();
  m_cancel->hide();
}

void EmptyState::work(const QString& text) {
  m_text->setText(text);
  m_action->hide();
  if (!m_progress->isVisibleTo(this)) m_progress->setRange(0, 0);
  m_progress->show();
  m_cancel->setEnabled(true);
  m_cancel->show();
}

void EmptyState::setProgress(qint64 done, qint64 total) {
  m_progress->setRange(0, static_cast<int>(total));
  m_progress->setValue(static_cast<int>(done));
}

RefreshTimer::RefreshTimer(QWidget* panel, std::function<void()> refresh, int delayMs) : QTimer(panel) {
  setSingleShot(true);
  setInterval(delayMs);
  connect(this, &QTimer::timeout, panel, std::move(refresh));
}

void RefreshTimer::startOnce() {
  if (!isActive()) start();
}

RefreshTimer& RefreshTimer::followPalette() {
  parent()->installEventFilter(this);
  return *this;
}

bool RefreshTimer::eventFilter(QObject* panel, QEvent* event) {
  if (event->type() == QEvent::PaletteChange) start();
  return QTimer::eventFilter(panel, event);
}

void onLink(QLabel& label, std::function<void(const Target&)> follow) {
  QObject::connect(&label, &QLabel::linkActivated, &label, [follow = std::move(follow)](const QString& clicked) {
    if (const auto target = parseLink(clicked)) follow(*target);
  });
}

QVBoxLayout* makeColumn(QWidget* page, std::initializer_list<QWidget*> widgets, QWidget* stretched) {
  auto* layout = new QVBoxLayout(page);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->setSpacing(0);
  for (QWidget* widget : widgets) layout->addWidget(widget, widget == stretched ? 1 : 0);
  return layout;
}

QWidget* makeRule() {
  auto* rule = new QFrame;
  rule->setFrameShape(QFrame::HLine);
  rule->setFrameShadow(QFrame::Plain);
  rule->setForegroundRole(QPalette::Mid);
  return rule;
}

QSize ElidedButton::minimumSizeHint() const {
  return {fontMetrics().averageCharWidth() * 12, QPushButton::minimumSizeHint().height()};
}

void ElidedButton::paintEvent(QPaintEvent*) {
  QStylePainter painter(this);
  QStyleOptionButton option;
  initStyleOption(&option);
  const int room = style()->subElementRect(QStyle::SE_PushButtonContents, &option, this).width() - 4;
  option.text = fontMetrics().elidedText(option.text, Qt::ElideMiddle, room);
  painter.drawControl(QStyle::CE_PushButton, option);
}

QSize ElidedLabel::minimumSizeHint() const { return {0, QLabel::minimumSizeHint().height()}; }

QString ElidedLabel::shownText() const {
  return fontMetrics().elidedText(text(), Qt::ElideRight, contentsRect().width() - std::max(0, indent()));
}

void ElidedLabel::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  style()->drawItemText(&painter, contentsRect().adjusted(std::max(0, indent()), 0, 0, 0), Qt::AlignVCenter, palette(),
                        isEnabled(), shownText(), foregroundRole());
}

bool ElidedLabel::event(QEvent* event) {
  if (event->type() == QEvent::ToolTip) setToolTip(shownText() == text() ? QString() : text());
  return QLabel::event(event);
}

OfferList::OfferList(QWidget* parent) : QScrollArea(parent), m_page(new QWidget), m_layout(new QVBoxLayout(m_page)) {
  m_layout->setContentsMargins(8, 6, 8, 6);
  m_layout->setSpacing(4);
  setWidget(m_page);
  setWidgetResizable(true);
  setFrameShape(QFrame::NoFrame);
  setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  setSizePolicy(QSizePolicy::Preferred, QSizePolicy::Maximum);
  setFocusPolicy(Qt::NoFocus);
  hide();
}

QLabel* OfferList::addText(const QString& html) {
  auto* label = new QLabel(richTextStyle(palette()) + html);
  label->setTextFormat(Qt::RichText);
  label->setWordWrap(true);
  label->setMinimumWidth(1);  // an unbreakable name must not widen the panel
  label->setTextInteractionFlags(Qt::TextBrowserInteraction);
  label->setOpenExternalLinks(false);
  onLink(*label, [this](const Target& target) { emit followed(target); });
  m_layout->addWidget(label);
  return label;
}

void OfferList::setOffers(const QString& headHtml, std::vector<Offer> offers) {
  const auto isSame = [](const Offer& a, const Offer& b) {
    return a.html == b.html && a.button == b.button && a.tip == b.tip;
  };
  if (headHtml == m_head && std::equal(offers.begin(), offers.end(), m_offers.begin(), m_offers.end(), isSame)) {
    m_offers = std::move(offers);
    return;
  }
  while (QLayoutItem* item = m_layout->takeAt(0)) {
    if (item->widget()) item->widget()->deleteLater(), item->widget()->hide();
    delete item;
  }
  m_head = headHtml;
  m_offers = std::move(offers);
  if (!m_head.isEmpty()) addText(m_head);
  for (std::size_t i = 0; i < m_offers.size(); ++i) {
    const Offer& offer = m_offers[i];
    if (!offer.html.isEmpty()) addText(offer.html);
    if (offer.button.isEmpty()) continue;
    auto* button = new ElidedButton(offer.button);
    button->setToolTip(offer.tip);
    button->setSizePolicy(QSizePolicy::Maximum, QSizePolicy::Fixed);
    m_layout->addWidget(button);
    if (i + 1 < m_offers.size()) m_layout->addSpacing(4);
    connect(button, &QPushButton::clicked, this, [this, i] {
      if (i >= m_offers.size() || !m_offers[i].act) return;
      const auto act = m_offers[i].act;  // the action may replace the offers
      act();
    });
  }
  setVisible(!m_head.isEmpty() || !m_offers.empty());
  updateGeometry();
}

void OfferList::clear() { setOffers({}, {}); }

QString OfferList::plainText() const {
  QStringList lines;
  const auto add = [&](const QString& html) {
    if (!html.isEmpty()) lines << QTextDocumentFragment::fromHtml(html).toPlainText();
  };
  add(m_head);
  for (const Offer& offer : m_offers) add(offer.html);
  return lines.join(QLatin1Char('\n'));
}

QSize OfferList::sizeHint() const {
  const int width = std::max(200, this->width() - 2 * frameWidth());
  return {width, m_layout->totalHeightForWidth(width) + 2 * frameWidth()};
}

QSize OfferList::minimumSizeHint() const { return {0, std::min(sizeHint().height(), fontMetrics().height() * 6)}; }

void OfferList::limitTo(QWidget& panel, int percent) {
  m_panel = &panel;
  m_percent = percent;
  panel.installEventFilter(this);
}

bool OfferList::eventFilter(QObject* watched, QEvent* event) {
  if (watched == m_panel && event->type() == QEvent::Resize) setMaximumHeight(m_panel->height() * m_percent / 100);
  return QScrollArea::eventFilter(watched, event);
}

void OfferList::resizeEvent(QResizeEvent* event) {
  QScrollArea::resizeEvent(event);
  updateGeometry();
}

void OfferList::changeEvent(QEvent* event) {
  QScrollArea::changeEvent(event);
  if (event->type() != QEvent::PaletteChange || m_offers.empty()) return;
  auto offers = std::move(m_offers);  // rich text keeps the colours of its creation
  m_offers.clear();
  const QString head = std::exchange(m_head, QString());
  setOffers(head, std::move(offers));
}

}  // namespace cleave::views
