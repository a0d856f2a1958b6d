#include "views/panels/breakpoints_model.h"

#include "graph/op_names.h"
#include "views/base/target.h"
#include "views/base/text.h"
#include "views/widgets/chip_delegate.h"

#include <algorithm>

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
      case solve::EventType::Ended: text = QStringLiteral("the end at the search limit"); break;
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

namespace {

constexpr std::string_view kForms =
    "conflict, backtrack, backtrack>8, solution, op:mm, in:model.layers.3, placement:S(1), x5 or a value's name";

/// Parses a breakpoint word by word. A breakpoint that no event can meet is rejected, because it would never stop the
/// search.
class BreakpointReader {
 public:
  explicit BreakpointReader(const graph::Graph& graph) : m_graph(graph) {}

  Result<void> read(const QString& word) {
    const QString lower = word.toLower();
    if (lower == QLatin1String("conflict")) return waitFor(solve::EventType::Conflict, word);
    if (lower == QLatin1String("solution")) return waitFor(solve::EventType::Solution, word);
    if (lower.startsWith(QLatin1String("backtrack"))) return readBacktrack(word);
    if (lower.startsWith(QLatin1String("op:"))) return readOperator(toStd(word.mid(3)));
    if (lower.startsWith(QLatin1String("in:"))) return readModule(toStd(word.mid(3)));
    if (lower.startsWith(QLatin1String("placement:"))) return readPlacement(word);
    bool isNumber = false;
    if (const auto hits = lower.mid(1).toULongLong(&isNumber); lower.startsWith(QLatin1Char('x')) && hits > 0) {
      m_found.skipHits = hits - 1;
      return {};
    }
    return readValue(word);
  }
  const solve::Breakpoint& found() const { return m_found; }

 private:
  Result<void> waitFor(solve::EventType type, const QString& word) {
    if (m_found.type && *m_found.type != type)
      return fail(ErrorCode::BadUsage, "\"{}\" is a second kind of event in one breakpoint. Make two breakpoints.",
                  toStd(word));
    m_found.type = type;
    return {};
  }

  Result<void> readBacktrack(const QString& word) {
    if (const QString rest = word.mid(9); !rest.isEmpty()) {
      bool isNumber = false;
      m_found.minUndone = rest.mid(1).toUInt(&isNumber);
      if (!rest.startsWith(QLatin1Char('>')) || !isNumber)
        return fail(ErrorCode::BadUsage, "\"{}\" is not a valid backtrack size. Write it like backtrack>8.",
                    toStd(word));
      ++m_found.minUndone;
    }
    return waitFor(solve::EventType::Backtrack, word);
  }

  Result<void> readOperator(const std::string& op) {
    const auto isIt = [&](const std::string& known) {
      return known == op || graph::withoutNamespace(known) == op || graph::shortName(known) == op;
    };
    if (std::none_of(m_graph.ops.begin(), m_graph.ops.end(), isIt))
      return fail(ErrorCode::BadUsage, "This graph has no operator \"{}\".", op);
    m_found.op = op;
    return {};
  }

  /// Reads parts of a path, as the search box does. If several modules match, the result is the outermost one, if it is
  /// unique.
  Result<void> readModule(const std::string& part) {
    std::vector<std::string> outermost;
    for (const graph::Scope& scope : m_graph.scopes) {
      const bool isInside = scope.parent.isValid() && scopeContains(m_graph.scope(scope.parent).path, part);
      if (scopeContains(scope.path, part) && !isInside) outermost.push_back(scope.path);
    }
    if (outermost.empty()) return fail(ErrorCode::BadUsage, "This graph has no module \"{}\".", part);
    if (outermost.size() > 1 && std::find(outermost.begin(), outermost.end(), part) == outermost.end())
      return fail(ErrorCode::BadUsage, "\"{}\" matches {} modules. Write the path of one, such as in:{}.", part,
                  outermost.size(), outermost.front());
    m_found.scopePrefix = outermost.size() == 1 ? outermost.front() : part;
    return {};
  }

  Result<void> readPlacement(const QString& word) {
    m_found.placement = rules::Placement::parse(toStd(word.mid(10)));
    if (!m_found.placement)
      return fail(ErrorCode::BadUsage, "\"{}\" is not a placement. Write R, S(1), ...", toStd(word.mid(10)));
    return waitFor(solve::EventType::Try, word);
  }

  Result<void> readValue(const QString& word) {
    const ValueId value = m_graph.findValue(toStd(word));
    if (!value.isValid())
      return fail(ErrorCode::BadUsage, "\"{}\" is not a value of this graph. Write a value's name, or one of {}.",
                  toStd(word), kForms);
    if (m_found.node.isValid())
      return fail(ErrorCode::BadUsage, "\"{}\" is a second value in one breakpoint. Make two breakpoints.",
                  toStd(word));
    m_found.node = m_graph.value(value).producer;
    return {};
  }

  const graph::Graph& m_graph;
  solve::Breakpoint m_found;
};

}  // namespace

Result<solve::Breakpoint> parseBreakpoint(const QString& text, const graph::Graph& graph) {
  const QStringList words = text.split(QLatin1Char(' '), Qt::SkipEmptyParts);
  if (words.isEmpty()) return fail(ErrorCode::BadUsage, "The breakpoint is empty. Write {}.", kForms);
  BreakpointReader reader(graph);
  for (const QString& word : words) CLEAVE_TRY_VOID(reader.read(word));
  return reader.found();
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
  if (orientation == Qt::Horizontal && role == Qt::DisplayRole && section == 0) return QStringLiteral("Stop at");
  return {};
}

}  // namespace cleave::views
