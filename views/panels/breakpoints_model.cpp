#include "views/panels/breakpoints_model.h"

#include "views/base/text.h"
#include "views/widgets/chip_delegate.h"

namespace cleave::views {

QString describe(const solve::Breakpoint& b, const graph::Graph* graph) {
  QString text;
  if (b.type) {
    switch (*b.type) {
      case solve::EventType::Conflict: text = QStringLiteral("a conflict"); break;
      case solve::EventType::Backtrack:
        text = b.minUndone > 0 ? QStringLiteral("a backtrack over %1 or more").arg(countedText(b.minUndone, "decision"))
                               : QStringLiteral("a backtrack");
        break;
      case solve::EventType::Solution: text = QStringLiteral("a solution"); break;
      case solve::EventType::Try: text = QStringLiteral("an assignment"); break;
      case solve::EventType::Visit: text = QStringLiteral("an arrival"); break;
      case solve::EventType::Exhausted: text = QStringLiteral("the end of all candidates"); break;
      case solve::EventType::Stopped: text = QStringLiteral("the stop"); break;
      case solve::EventType::Ended: text = QStringLiteral("the end at a limit"); break;
    }
  } else {
    text = QStringLiteral("any event");
  }
  if (b.placement) text += QStringLiteral(" giving %1").arg(toQ(b.placement->text()));
  if (b.node.isValid() && graph) text += QStringLiteral(" at %1").arg(nodeName(*graph, b.node));
  if (!b.op.empty()) text += QStringLiteral(" of %1").arg(toQ(b.op));
  if (!b.scopePrefix.empty()) text += QStringLiteral(" in %1").arg(toQ(b.scopePrefix));
  if (b.skipHits > 0) text += QStringLiteral(", after %1").arg(countedText(b.skipHits, "hit"));
  return text;
}

Result<solve::Breakpoint> parseBreakpoint(const QString& text, const graph::Graph& graph) {
  static const char* const kForms =
      "conflict, backtrack, backtrack>8, solution, op:mm, in:model.layers.3, placement:S(1), x5 or a value's name";
  solve::Breakpoint b;
  const QStringList words = text.split(QLatin1Char(' '), Qt::SkipEmptyParts);
  if (words.isEmpty()) return fail(ErrorCode::BadUsage, "A breakpoint needs something to wait for: {}.", kForms);
  for (const QString& word : words) {
    const QString lower = word.toLower();
    bool isNumber = false;
    if (lower == QLatin1String("conflict"))
      b.type = solve::EventType::Conflict;
    else if (lower == QLatin1String("solution"))
      b.type = solve::EventType::Solution;
    else if (lower.startsWith(QLatin1String("backtrack"))) {
      b.type = solve::EventType::Backtrack;
      if (const QString rest = lower.mid(9); !rest.isEmpty()) {
        b.minUndone = rest.mid(1).toUInt(&isNumber);
        if (!rest.startsWith(QLatin1Char('>')) || !isNumber)
          return fail(ErrorCode::BadUsage, "\"{}\" should read like backtrack>8.", toStd(word));
        ++b.minUndone;
      }
    } else if (lower.startsWith(QLatin1String("op:")))
      b.op = toStd(word.mid(3));
    else if (lower.startsWith(QLatin1String("in:")))
      b.scopePrefix = toStd(word.mid(3));
    else if (lower.startsWith(QLatin1String("placement:"))) {
      b.placement = rules::Placement::parse(toStd(word.mid(10)));
      if (!b.placement)
        return fail(ErrorCode::BadUsage, "\"{}\" is not a placement: write R, S(1), ...", toStd(word.mid(10)));
      b.type = solve::EventType::Try;
    } else if (lower.startsWith(QLatin1Char('x')) && lower.mid(1).toULongLong(&isNumber) > 0 && isNumber) {
      b.skipHits = lower.mid(1).toULongLong() - 1;
    } else if (const ValueId value = graph.findValue(toStd(word)); value.isValid())
      b.node = graph.value(value).producer;
    else
      return fail(ErrorCode::BadUsage, "\"{}\" is neither a value of this graph nor one of {}.", toStd(word), kForms);
  }
  return b;
}

BreakpointsModel::BreakpointsModel(const OpenedModel& opened, Debugger& debugger, QObject* parent)
    : QAbstractTableModel(parent), m_opened(opened), m_debugger(debugger), m_shown(debugger.breakpoints()) {
  connect(&debugger, &Debugger::breakpointsChanged, this, [this] {
    beginResetModel();
    m_shown = m_debugger.breakpoints();
    endResetModel();
  });
}

int BreakpointsModel::rowCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : static_cast<int>(m_shown.size());
}
int BreakpointsModel::columnCount(const QModelIndex& parent) const { return parent.isValid() ? 0 : 1; }

QVariant BreakpointsModel::data(const QModelIndex& index, int role) const {
  if (!index.isValid()) return {};
  const solve::Breakpoint& breakpoint = m_shown[static_cast<std::size_t>(index.row())];
  if (role == Qt::DisplayRole || role == kSortRole) return describe(breakpoint, m_opened.graph());
  if (role == Qt::CheckStateRole) return int(breakpoint.enabled ? Qt::Checked : Qt::Unchecked);
  if (role == kTargetRole && breakpoint.node.isValid()) return QVariant::fromValue(Target(breakpoint.node));
  return {};
}

bool BreakpointsModel::setData(const QModelIndex& index, const QVariant& value, int role) {
  if (!index.isValid() || role != Qt::CheckStateRole) return false;
  m_debugger.setBreakpointEnabled(index.row(), value.toInt() == Qt::Checked);
  return true;
}

Qt::ItemFlags BreakpointsModel::flags(const QModelIndex& index) const {
  return index.isValid() ? QAbstractTableModel::flags(index) | Qt::ItemIsUserCheckable : Qt::NoItemFlags;
}

QVariant BreakpointsModel::headerData(int section, Qt::Orientation orientation, int role) const {
  if (orientation == Qt::Horizontal && role == Qt::DisplayRole && section == 0) return tr("Stop at");
  return {};
}

}  // namespace cleave::views
