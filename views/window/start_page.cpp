#include "views/window/start_page.h"

#include <QDir>
#include <QEvent>
#include <QFileInfo>
#include <QHBoxLayout>
#include <QLabel>
#include <QPainter>
#include <QPushButton>
#include <QScrollArea>
#include <QVBoxLayout>

#include "pipeline/source/hub_model.h"
#include "views/base/fonts.h"
#include "views/base/text.h"
#include "views/base/theme.h"
#include "views/widgets/panel_parts.h"

namespace cleave::views {

namespace {
constexpr int kCardPadding = 12;
constexpr int kColumnWidth = 960;

QLabel* heading(const QString& text) {
  auto* label = new QLabel(text);
  QFont font = strongFont(label->font());
  font.setPointSizeF(font.pointSizeF() * 1.1);
  label->setFont(font);
  return label;
}

/// A list below its heading, at the end of a column.
void addList(QVBoxLayout& column, const QString& name, QVBoxLayout* list, int spacing) {
  column.addWidget(heading(name));
  list->setSpacing(spacing);
  column.addLayout(list);
  column.addStretch(1);
}

void clear(QLayout* layout) {
  while (QLayoutItem* item = layout->takeAt(0)) {
    delete item->widget();
    delete item;
  }
}
}  // namespace

CardButton::CardButton(const QString& title, const QString& sentence, QWidget* parent)
    : QAbstractButton(parent), m_sentence(sentence) {
  setText(title);
  setAccessibleDescription(sentence);
  setFocusPolicy(Qt::StrongFocus);
  setCursor(Qt::PointingHandCursor);
  QSizePolicy policy(QSizePolicy::Expanding, QSizePolicy::Fixed);
  policy.setHeightForWidth(true);
  setSizePolicy(policy);
}

QFont CardButton::titleFont() const { return strongFont(font()); }

QSize CardButton::sizeHint() const { return {320, heightForWidth(320)}; }

int CardButton::heightForWidth(int width) const {
  const int textWidth = width - 2 * kCardPadding;
  const int titleHeight = QFontMetrics(titleFont()).height();
  const int sentenceHeight =
      fontMetrics().boundingRect(QRect(0, 0, textWidth, 10'000), Qt::TextWordWrap, m_sentence).height();
  return 2 * kCardPadding - 4 + titleHeight + 2 + sentenceHeight;
}

bool CardButton::event(QEvent* event) {
  if (event->type() == QEvent::Enter || event->type() == QEvent::Leave) update();
  return QAbstractButton::event(event);
}

void CardButton::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  painter.setRenderHint(QPainter::Antialiasing);
  const Theme theme = Theme::of(palette());
  const bool isHot = underMouse() || hasFocus();
  painter.setPen(QPen(isHot ? theme.accent : theme.border, isHot ? 1.5 : 1));
  painter.setBrush(isDown() ? theme.groundSunken : theme.groundRaised);
  painter.drawRoundedRect(QRectF(rect()).adjusted(0.75, 0.75, -0.75, -0.75), 5, 5);
  const QRect inner = rect().adjusted(kCardPadding, kCardPadding - 2, -kCardPadding, -kCardPadding + 2);
  painter.setFont(titleFont());
  painter.setPen(theme.text);
  const int titleHeight = painter.fontMetrics().height();
  painter.drawText(QRect(inner.left(), inner.top(), inner.width(), titleHeight), Qt::AlignLeft | Qt::AlignVCenter,
                   text());
  painter.setFont(font());
  painter.setPen(theme.textQuiet);
  painter.drawText(inner.adjusted(0, titleHeight + 2, 0, 0), Qt::AlignLeft | Qt::AlignTop | Qt::TextWordWrap,
                   m_sentence);
}

StartPage::StartPage(QWidget* parent) : QWidget(parent), m_recent(new QVBoxLayout), m_samples(new QVBoxLayout) {
  auto* columns = new QHBoxLayout;
  columns->setSpacing(48);
  columns->addLayout(makeOpening(), 2);
  columns->addLayout(makeSamples(), 3);
  auto* content = new QWidget;
  content->setMaximumWidth(kColumnWidth);
  content->setLayout(columns);
  auto* centred = new QWidget;
  auto* centring = new QHBoxLayout(centred);
  centring->setContentsMargins(24, 40, 24, 24);
  centring->addStretch(1);
  centring->addWidget(content, 100);
  centring->addStretch(1);
  auto* scroll = new QScrollArea;
  scroll->setWidget(centred);
  scroll->setWidgetResizable(true);
  scroll->setFrameShape(QFrame::NoFrame);
  makeColumn(this, {scroll});
  scroll->viewport()->setBackgroundRole(QPalette::Base);
  centred->setBackgroundRole(QPalette::Base);
  setRecent({});
}

QLayout* StartPage::makeOpening() {
  auto* title = new QLabel(QStringLiteral("Cleave"));
  QFont big = strongFont(title->font());
  big.setPointSizeF(big.pointSizeF() * 2.2);
  title->setFont(big);
  auto* what = new QLabel(
      QStringLiteral("See how a Transformer splits across GPUs, why, and whether the split model computes the same."));
  what->setWordWrap(true);
  auto* open = new QPushButton(QStringLiteral("Open a model folder…"));
  open->setDefault(true);
  open->setMinimumHeight(34);
  auto* hub = new QPushButton(QStringLiteral("Open from the Hub…"));
  hub->setMinimumHeight(34);
  auto* hint = new QLabel(QStringLiteral(
      "A Hugging Face folder with config.json. Only runs need weights (safetensors). You can drop folders, "
      "exported programs (.pt2), plans, recorded searches and sessions anywhere on this "
      "window."));
  hint->setWordWrap(true);
  hint->setForegroundRole(QPalette::PlaceholderText);
  connect(open, &QPushButton::clicked, this, &StartPage::openRequested);
  connect(hub, &QPushButton::clicked, this, &StartPage::hubRequested);

  auto* left = new QVBoxLayout;
  left->setSpacing(10);
  left->addWidget(title);
  left->addWidget(what);
  left->addSpacing(8);
  left->addWidget(open);
  left->addWidget(hub);
  left->addWidget(hint);
  left->addSpacing(18);
  addList(*left, QStringLiteral("Recent"), m_recent, 2);
  return left;
}

QLayout* StartPage::makeSamples() {
  auto* right = new QVBoxLayout;
  right->setSpacing(8);
  addList(*right, QStringLiteral("Samples"), m_samples, 8);
  return right;
}

void StartPage::setRecent(const QStringList& paths) {
  clear(m_recent);
  if (paths.isEmpty()) {
    auto* none = new QLabel(QStringLiteral("Opened models are listed here."));
    none->setForegroundRole(QPalette::PlaceholderText);
    m_recent->addWidget(none);
  }
  for (const QString& path : paths) {
    auto* button = new QPushButton;
    const QFileInfo info(QDir::cleanPath(path));
    button->setText(
        QStringLiteral("%1   %2").arg(toQ(pipeline::modelName(toStd(path))), QDir::toNativeSeparators(info.path())));
    button->setFlat(true);
    button->setCursor(Qt::PointingHandCursor);
    button->setToolTip(path);
    button->setStyleSheet(QStringLiteral("text-align:left;padding:3px 4px"));
    button->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Fixed);
    connect(button, &QPushButton::clicked, this, [this, path] { emit recentChosen(path); });
    m_recent->addWidget(button);
  }
}

void StartPage::setSamples(const Result<std::vector<pipeline::Sample>>& samples) {
  clear(m_samples);
  if (!samples) {
    auto* problem = new QLabel(toQ(samples.error().message));
    problem->setWordWrap(true);
    m_samples->addWidget(problem);
    return;
  }
  for (std::size_t i = 0; i < samples->size(); ++i) {
    const pipeline::Sample& sample = (*samples)[i];
    auto* card = new CardButton(toQ(sample.title), toQ(sample.lookFor));
    connect(card, &QAbstractButton::clicked, this, [this, i] { emit sampleChosen(static_cast<int>(i)); });
    m_samples->addWidget(card);
  }
}

}  // namespace cleave::views
