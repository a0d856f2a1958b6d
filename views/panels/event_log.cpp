#include "views/panels/event_log.h"

#include <QKeyEvent>
#include <QPainter>
#include <QScrollBar>

#include "views/base/target.h"
#include "views/base/text.h"
#include "views/base/theme.h"
#include "views/session/step_state.h"
#include "views/widgets/chip_delegate.h"

namespace cleave::views {

namespace {
constexpr int kPageEvents = 256;
constexpr int kCachedPages = 64;
constexpr int kMarkWidth = 4;

QString kindText(solve::EventType type) {
  switch (type) {
    case solve::EventType::Visit: return QStringLiteral("visit");
    case solve::EventType::Try: return QStringLiteral("try");
    case solve::EventType::Conflict: return QStringLiteral("conflict");
    case solve::EventType::Backtrack: return QStringLiteral("back");
    case solve::EventType::Solution: return QStringLiteral("solution");
    case solve::EventType::Exhausted: return QStringLiteral("exhausted");
    case solve::EventType::Stopped: return QStringLiteral("stopped");
    case solve::EventType::Ended: return QStringLiteral("ended");
  }
  return {};
}
}  // namespace

EventLogModel::EventLogModel(QObject* parent) : QAbstractTableModel(parent), m_pages(kCachedPages) {}

void EventLogModel::setTrace(std::shared_ptr<const solve::Trace> trace) {
  beginResetModel();
  m_trace = std::move(trace);
  m_pages.clear();
  m_rows = m_trace ? static_cast<int>(std::min<solve::StepId>(m_trace->size(), std::numeric_limits<int>::max())) : 0;
  endResetModel();
}

void EventLogModel::grow() {
  if (!m_trace) return;
  const int rows = static_cast<int>(std::min<solve::StepId>(m_trace->size(), std::numeric_limits<int>::max()));
  if (rows <= m_rows) return;
  beginInsertRows({}, m_rows, rows - 1);
  m_pages.remove(m_rows / kPageEvents);  // it may be incomplete at the old end of the trace
  m_rows = rows;
  endInsertRows();
}

solve::Event EventLogModel::eventAt(int row) const {
  const int number = row / kPageEvents;
  Page* page = m_pages.object(number);
  if (!page) {
    page = new Page(kPageEvents);
    page->resize(m_trace->read(static_cast<solve::StepId>(number) * kPageEvents, *page));
    m_pages.insert(number, page);
  }
  const auto at = static_cast<std::size_t>(row % kPageEvents);
  return at < page->size() ? (*page)[at] : solve::Event{};
}

int EventLogModel::rowCount(const QModelIndex& parent) const { return parent.isValid() ? 0 : m_rows; }
int EventLogModel::columnCount(const QModelIndex& parent) const { return parent.isValid() ? 0 : ColumnCount; }

QVariant EventLogModel::data(const QModelIndex& index, int role) const {
  if (!index.isValid() || !m_trace) return {};
  if (role == kTargetRole) return QVariant::fromValue(Target(StepTarget{static_cast<StepId>(index.row()) + 1}));
  if (role != Qt::DisplayRole) return {};
  const solve::Event event = eventAt(index.row());
  switch (index.column()) {
    case Step: return countText(static_cast<std::uint64_t>(index.row()) + 1);
    case Kind: return kindText(event.type);
    case NodeColumn: {
      return nodeName(*m_trace->problem()->graph, nodeOf(event));
    }
    case What: return prose(solve::describe(*m_trace, event));
  }
  return {};
}

QVariant EventLogModel::headerData(int section, Qt::Orientation orientation, int role) const {
  if (orientation != Qt::Horizontal || role != Qt::DisplayRole) return {};
  static const char* const kTitles[] = {"Step", "Event", "Node", "What"};
  return QString::fromUtf8(kTitles[section]);
}

EventLogView::EventLogView(EventLogModel& model, QWidget* parent) : QAbstractScrollArea(parent), m_model(model) {
  setFocusPolicy(Qt::StrongFocus);
  setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  setAccessibleName(QStringLiteral("Events of the search"));
  connect(&model, &QAbstractItemModel::modelReset, this, &EventLogView::updateScrollBar);
  connect(&model, &QAbstractItemModel::rowsInserted, this, &EventLogView::updateScrollBar);
  connect(verticalScrollBar(), &QScrollBar::valueChanged, viewport(), qOverload<>(&QWidget::update));
}

int EventLogView::rowHeight() const { return fontMetrics().height() + 4; }
int EventLogView::visibleRows() const { return std::max(1, viewport()->height() / rowHeight()); }

void EventLogView::updateScrollBar() {
  verticalScrollBar()->setRange(0, std::max(0, m_model.rowCount() - visibleRows()));
  verticalScrollBar()->setPageStep(visibleRows());
  viewport()->update();
}

void EventLogView::resizeEvent(QResizeEvent* event) {
  QAbstractScrollArea::resizeEvent(event);
  updateScrollBar();
  scrollIntoView(m_marked >= 0 ? m_marked : m_current);
}

void EventLogView::setStep(solve::StepId step) {
  m_current = step == 0 ? -1 : static_cast<int>(step - 1);
  m_marked = -1;
  scrollIntoView(std::max(0, m_current));  // before the first event: its row
}

void EventLogView::mark(solve::StepId event) {
  m_marked = static_cast<int>(event);
  scrollIntoView(m_marked);
}

void EventLogView::scrollIntoView(int row) {
  const int first = verticalScrollBar()->value();
  if (row >= 0 && (row < first || row >= first + visibleRows())) verticalScrollBar()->setValue(row - visibleRows() / 2);
  viewport()->update();
}

void EventLogView::paintEvent(QPaintEvent*) {
  QPainter painter(viewport());
  const Theme theme = Theme::of(palette());
  const QFontMetrics metrics = fontMetrics();
  const int stepWidth =
      metrics.horizontalAdvance(countText(static_cast<std::uint64_t>(std::max(1000, m_model.rowCount())))) + 12;
  const int kindWidth = metrics.horizontalAdvance(QStringLiteral("solution")) + 16;
  const int first = verticalScrollBar()->value();
  for (int i = 0; i <= visibleRows() && first + i < m_model.rowCount(); ++i) {
    const int row = first + i;
    const QRect line(0, i * rowHeight(), viewport()->width(), rowHeight());
    const solve::EventType type = m_model.eventAt(row).type;
    const bool isCurrent = row == m_current;
    if (isCurrent)
      painter.fillRect(line, palette().highlight());
    else if (row % 2)
      painter.fillRect(line, palette().alternateBase());
    if (row == m_marked)
      painter.fillRect(QRect(line.topLeft(), QSize(kMarkWidth, line.height())), palette().highlight());
    const QColor text = isCurrent ? palette().highlightedText().color() : palette().text().color();
    painter.setPen(isCurrent ? text : theme.textQuiet);
    painter.drawText(QRect(0, line.top(), stepWidth, line.height()), Qt::AlignRight | Qt::AlignVCenter,
                     m_model.index(row, EventLogModel::Step).data().toString());
    const QRect kind(stepWidth + 10, line.top(), kindWidth, line.height());
    painter.setPen(isCurrent                            ? text
                   : type == solve::EventType::Conflict ? theme.conflict
                   : type == solve::EventType::Solution ? theme.good
                                                        : theme.textQuiet);
    painter.drawText(kind, Qt::AlignLeft | Qt::AlignVCenter, m_model.index(row, EventLogModel::Kind).data().toString());
    const QRect what(kind.right(), line.top(), line.width() - kind.right() - 4, line.height());
    painter.setPen(text);
    painter.drawText(
        what, Qt::AlignLeft | Qt::AlignVCenter,
        metrics.elidedText(m_model.index(row, EventLogModel::What).data().toString(), Qt::ElideRight, what.width()));
  }
}

void EventLogView::choose(qint64 row) {
  row = std::clamp<qint64>(row, -1, m_model.rowCount() - 1);
  setStep(static_cast<solve::StepId>(row + 1));
  emit stepChosen(static_cast<solve::StepId>(row + 1));
}

void EventLogView::mousePressEvent(QMouseEvent* event) {
  const qint64 row = verticalScrollBar()->value() + static_cast<qint64>(event->position().y()) / rowHeight();
  if (event->button() == Qt::LeftButton && row < m_model.rowCount()) choose(row);
}

void EventLogView::keyPressEvent(QKeyEvent* event) {
  switch (event->key()) {
    case Qt::Key_Up: return choose(m_current - 1);
    case Qt::Key_Down: return choose(m_current + 1);
    case Qt::Key_PageUp: return choose(qint64(m_current) - visibleRows());
    case Qt::Key_PageDown: return choose(qint64(m_current) + visibleRows());
    default: QAbstractScrollArea::keyPressEvent(event);
  }
}

}  // namespace cleave::views
