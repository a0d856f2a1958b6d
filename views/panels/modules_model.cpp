#include "views/panels/modules_model.h"

#include <algorithm>

#include "views/base/text.h"

namespace cleave::views {

namespace {
constexpr std::size_t kStackFrom = 3;

QString lastPart(const std::string& path) { return toQ(path.substr(path.rfind('.') + 1)); }

std::size_t mix(std::size_t seed, std::size_t value) {
  return seed ^ (value + 0x9e3779b97f4a7c15ull + (seed << 6) + (seed >> 2));
}

/// Equal for modules with the same operators on the same shapes: names of tensors do not count.
std::vector<std::size_t> structureHashes(const graph::Graph& graph, const std::vector<std::vector<ScopeId>>& children) {
  std::vector<std::size_t> hashes(graph.scopes.size(), 17);
  for (const graph::Node& node : graph.nodes) {
    std::size_t h = mix(static_cast<std::size_t>(node.kind), node.op.isValid() ? node.op.index() : 0);
    for (const ValueId result : node.results)
      for (const std::int64_t size : graph.shapeOf(result)) h = mix(h, static_cast<std::size_t>(size));
    hashes[node.scope.index()] = mix(hashes[node.scope.index()], h);
  }
  // Parents come before their children in `scopes`: fold from the back.
  for (std::size_t i = graph.scopes.size(); i-- > 0;)
    for (const ScopeId child : children[i])
      hashes[i] = mix(mix(hashes[i], hashes[child.index()]), qHash(lastPart(graph.scope(child).path)));
  return hashes;
}
}  // namespace

void ModulesModel::setGraph(std::shared_ptr<const graph::Graph> graph) {
  beginResetModel();
  m_graph = std::move(graph);
  m_counts = m_graph ? std::make_unique<SplitCounts>(m_graph) : nullptr;
  m_items.clear();
  m_itemOfScope.clear();
  m_operatorsOfScope.clear();
  if (m_graph) {
    const std::size_t count = m_graph->scopes.size();
    std::vector<std::vector<ScopeId>> children(count);
    for (const ScopeId scope : idRange<ScopeId>(count))
      if (const ScopeId parent = m_graph->scope(scope).parent; parent.isValid())
        children[parent.index()].push_back(scope);
    m_operatorsOfScope = operatorsByScope(*m_graph);
    m_itemOfScope.assign(count, -1);
    const QString rootName =
        m_graph->scope(ScopeId(0)).className.empty() ? tr("model") : toQ(m_graph->scope(ScopeId(0)).className);
    addItem(-1, ScopeId(0), rootName);
    addChildren(0, children, structureHashes(*m_graph, children));
    for (Item& item : m_items) item.tally = tallyOf(item);
  }
  endResetModel();
}

int ModulesModel::addItem(int parentItem, ScopeId scope, const QString& label) {
  const int id = static_cast<int>(m_items.size());
  Item item;
  item.scope = scope;
  item.parent = parentItem;
  item.label = label;
  item.operators = static_cast<int>(m_operatorsOfScope[scope.index()]);
  if (parentItem >= 0) {
    item.row = static_cast<int>(m_items[static_cast<std::size_t>(parentItem)].children.size());
    m_items[static_cast<std::size_t>(parentItem)].children.push_back(id);
  }
  m_items.push_back(std::move(item));
  return id;
}

void ModulesModel::addChildren(int parentItem, const std::vector<std::vector<ScopeId>>& childScopes,
                               const std::vector<std::size_t>& hashes) {
  const std::vector<ScopeId>& scopes = childScopes[m_items[static_cast<std::size_t>(parentItem)].scope.index()];
  for (std::size_t from = 0; from < scopes.size();) {
    bool isNumber = false;
    const QString first = lastPart(m_graph->scope(scopes[from]).path);
    first.toInt(&isNumber);
    std::size_t to = from + 1;
    while (isNumber && to < scopes.size() && hashes[scopes[to].index()] == hashes[scopes[from].index()]) ++to;
    int parentOfRun = parentItem;
    if (to - from >= kStackFrom) {
      const QString last = lastPart(m_graph->scope(scopes[to - 1]).path);
      parentOfRun = addItem(parentItem, scopes[from], QStringLiteral("%1 – %2").arg(first, last));
      m_items.back().stackSize = static_cast<int>(to - from);
      m_items.back().operators *= static_cast<int>(to - from);
    } else {
      to = from + 1;
    }
    for (; from < to; ++from) {
      const int item = addItem(parentOfRun, scopes[from], lastPart(m_graph->scope(scopes[from]).path));
      m_itemOfScope[scopes[from].index()] = item;
      addChildren(item, childScopes, hashes);
    }
  }
  m_itemOfScope[0] = 0;
}

SplitTally ModulesModel::tallyOf(const Item& item) const {
  if (item.stackSize == 0) return m_counts->of(item.scope);
  SplitTally sum;
  for (const int child : item.children) sum += m_counts->of(m_items[static_cast<std::size_t>(child)].scope);
  return sum;
}

void ModulesModel::setState(const std::shared_ptr<const StepState>& state) {
  if (!m_graph) return;
  const auto at = [](const auto& list, std::size_t i) {
    return i < list.size() ? list[i] : typename std::decay_t<decltype(list)>::value_type();
  };
  m_counts->reset(!state ? SplitSource()
                         : SplitSource{[=](ValueId v) { return at(state->placements, v.index()); },
                                       [=](NodeId n) { return at(state->strategies, n.index()); }, state->ranks});
  for (std::size_t i = 0; i < m_items.size(); ++i) {
    SplitTally now = tallyOf(m_items[i]);
    if (now == m_items[i].tally) continue;
    m_items[i].tally = std::move(now);
    const QModelIndex changed = createIndex(m_items[i].row, Split, static_cast<quintptr>(i));
    emit dataChanged(changed, changed, {kSplitTallyRole});
  }
}

QModelIndex ModulesModel::indexOf(ScopeId scope) const {
  if (!scope.isValid() || scope.index() >= m_itemOfScope.size() || m_itemOfScope[scope.index()] < 0) return {};
  const int item = m_itemOfScope[scope.index()];
  return createIndex(m_items[static_cast<std::size_t>(item)].row, 0, static_cast<quintptr>(item));
}

QModelIndex ModulesModel::index(int row, int column, const QModelIndex& parent) const {
  if (row < 0 || column < 0 || column >= ColumnCount || row >= rowCount(parent)) return {};
  if (!parent.isValid()) return createIndex(row, column, quintptr(0));
  const Item& item = m_items[static_cast<std::size_t>(parent.internalId())];
  return createIndex(row, column, static_cast<quintptr>(item.children[static_cast<std::size_t>(row)]));
}

QModelIndex ModulesModel::parent(const QModelIndex& child) const {
  if (!child.isValid()) return {};
  const int parent = m_items[static_cast<std::size_t>(child.internalId())].parent;
  if (parent < 0) return {};
  return createIndex(m_items[static_cast<std::size_t>(parent)].row, 0, static_cast<quintptr>(parent));
}

int ModulesModel::rowCount(const QModelIndex& parent) const {
  if (parent.column() > 0) return 0;
  if (!parent.isValid()) return m_items.empty() ? 0 : 1;
  return static_cast<int>(m_items[static_cast<std::size_t>(parent.internalId())].children.size());
}

int ModulesModel::columnCount(const QModelIndex&) const { return ColumnCount; }

QVariant ModulesModel::data(const QModelIndex& index, int role) const {
  if (!index.isValid()) return {};
  const Item& item = m_items[static_cast<std::size_t>(index.internalId())];
  const graph::Scope& scope = m_graph->scope(item.scope);
  if (role == kTargetRole) return QVariant::fromValue(Target(item.scope));
  switch (index.column()) {
    case Name:
      if (role == Qt::DisplayRole)
        return item.stackSize ? QStringLiteral("%1  ×%2").arg(item.label).arg(item.stackSize) : item.label;
      if (role == Qt::ToolTipRole) {
        if (item.stackSize)
          return tr("%1 of equal structure").arg(countedText(static_cast<std::uint64_t>(item.stackSize), "module"));
        return scope.className.empty() ? toQ(scope.path)
                                       : QStringLiteral("%1\n%2").arg(toQ(scope.path), toQ(scope.className));
      }
      break;
    case Split:
      if (role == kSplitTallyRole) return QVariant::fromValue(item.tally);
      if (role == Qt::ToolTipRole || role == Qt::AccessibleTextRole)
        return splitLines(item.tally).join(QLatin1Char('\n'));
      break;
    case Operators:
      if (role == Qt::DisplayRole) return item.operators;
      if (role == Qt::TextAlignmentRole) return int(Qt::AlignRight | Qt::AlignVCenter);
      break;
  }
  return {};
}

QVariant ModulesModel::headerData(int section, Qt::Orientation orientation, int role) const {
  if (orientation != Qt::Horizontal) return {};
  static const char* const kTitles[] = {QT_TR_NOOP("Module"), QT_TR_NOOP("Split"), QT_TR_NOOP("Ops")};
  if (role == Qt::DisplayRole) return tr(kTitles[section]);
  if (role == Qt::TextAlignmentRole && section == Operators) return int(Qt::AlignRight | Qt::AlignVCenter);
  return {};
}

}  // namespace cleave::views
