#include "views/session/search_query.h"

#include <QStringList>

#include "views/base/text.h"
#include "views/graph/model/labels.h"

namespace cleave::views {

namespace {

/// Splits at spaces, but a /regex/ may contain spaces.
QStringList termsOf(const QString& text) {
  QStringList terms;
  QString rest = text.trimmed();
  while (!rest.isEmpty()) {
    qsizetype end = rest.indexOf(QLatin1Char(' '));
    if (rest.startsWith(QLatin1Char('/'))) {
      const qsizetype close = rest.indexOf(QLatin1Char('/'), 1);
      if (close > 0) end = close + 1 < rest.size() ? close + 1 : -1;
    }
    terms << (end < 0 ? rest : rest.left(end));
    rest = end < 0 ? QString() : rest.mid(end).trimmed();
  }
  return terms;
}

/// "modeling_llama.py" in "modeling_llama.py:244" is not a key.
bool namesFile(const QString& key) { return key.contains(QLatin1Char('.')) || key.contains(QLatin1Char('/')); }

bool placementHasAxis(const rules::Placement& placement, const QString& axis) {
  if (axis.compare(QLatin1String("R"), Qt::CaseInsensitive) == 0) return placement.isReplicated();
  bool isNumber = false;
  const int dim = axis.toInt(&isNumber);
  return isNumber && placement.touches(dim);
}

}  // namespace

Result<SearchQuery> SearchQuery::parse(const QString& text) {
  static const std::pair<QLatin1String, Field> kFields[] = {{QLatin1String("op"), Field::Op},
                                                            {QLatin1String("axis"), Field::Axis},
                                                            {QLatin1String("in"), Field::In},
                                                            {QLatin1String("shape"), Field::Shape},
                                                            {QLatin1String("source"), Field::Source}};
  SearchQuery query;
  for (const QString& part : termsOf(text)) {
    Term term{Field::Word, part, {}};
    if (part.size() > 1 && part.startsWith(QLatin1Char('/'))) {
      term.field = Field::Regex;
      term.text = part.mid(1, part.size() - (part.size() > 2 && part.endsWith(QLatin1Char('/')) ? 2 : 1));
      term.pattern = QRegularExpression(term.text, QRegularExpression::CaseInsensitiveOption);
    } else if (const qsizetype colon = part.indexOf(QLatin1Char(':')); colon > 0 && !namesFile(part.left(colon))) {
      const QString key = part.left(colon).toLower();
      const auto* field =
          std::find_if(std::begin(kFields), std::end(kFields), [&](const auto& f) { return f.first == key; });
      if (field == std::end(kFields))
        return fail(ErrorCode::BadUsage,
                    "\"{}:\" is not a search key. Use op:, axis:, in:, shape:, source:, words or /regex/.", toStd(key));
      term.field = field->second;
      term.text = part.mid(colon + 1);
      if (term.field == Field::Shape) {
        QString shape = term.text;
        shape.replace(QChar(0x00D7), QLatin1Char('x')).replace(QLatin1Char(','), QLatin1Char('x'));
        term.pattern = QRegularExpression(
            QRegularExpression::wildcardToRegularExpression(shape, QRegularExpression::UnanchoredWildcardConversion));
        term.pattern.setPattern(QStringLiteral("^%1$").arg(term.pattern.pattern()));
      }
    }
    if (!term.pattern.isValid())
      return fail(ErrorCode::BadUsage, "The pattern {} is invalid: {}.", toStd(part),
                  toStd(term.pattern.errorString()));
    query.m_terms.push_back(std::move(term));
  }
  return query;
}

bool SearchQuery::holds(const Term& term, const graph::Graph& graph, graph::NodeId id, const SearchFacts& facts) const {
  const graph::Node& node = graph.node(id);
  const auto anyResult = [&](auto&& test) {
    return std::any_of(node.results.begin(), node.results.end(), [&](graph::ValueId value) { return test(value); });
  };
  const std::string& scope = graph.scope(node.scope).path;
  switch (term.field) {
    case Field::Word:
      return toQ(scope).contains(term.text, Qt::CaseInsensitive) ||
             toQ(graph.sourceOf(node)).contains(term.text, Qt::CaseInsensitive) ||
             nodeKindText(graph, id).contains(term.text, Qt::CaseInsensitive) ||
             abbreviated(nodeKindText(graph, id)).contains(term.text, Qt::CaseInsensitive) ||
             anyResult(
                 [&](graph::ValueId v) { return toQ(graph.value(v).name).contains(term.text, Qt::CaseInsensitive); });
    case Field::Regex:
      return toQ(scope).contains(term.pattern) || toQ(graph.sourceOf(node)).contains(term.pattern) ||
             anyResult([&](graph::ValueId v) { return toQ(graph.value(v).name).contains(term.pattern); });
    case Field::Op: {
      const QString full = toQ(graph.opName(node));
      return nodeKindText(graph, id).compare(term.text, Qt::CaseInsensitive) == 0 ||
             (!full.isEmpty() && (full == term.text || full.section(QLatin1String("::"), 1) == term.text));
    }
    case Field::Source: return toQ(graph.sourceOf(node)).contains(term.text, Qt::CaseInsensitive);
    case Field::In: return scopeContains(scope, toStd(term.text));
    case Field::Shape:
      return anyResult([&](graph::ValueId v) {
        return shapeText(graph.shapeOf(v)).replace(QChar(0x00D7), QLatin1Char('x')).contains(term.pattern);
      });
    case Field::Axis:
      if (facts.strategyOf)
        if (const auto strategy = facts.strategyOf(id))
          if (toQ(rules::axisOf(*strategy)).compare(term.text, Qt::CaseInsensitive) == 0 ||
              toQ(rules::toText(*strategy)).compare(term.text, Qt::CaseInsensitive) == 0)
            return true;
      return anyResult([&](graph::ValueId v) {
        const auto placement = facts.placementOf ? facts.placementOf(v) : std::nullopt;
        return placement && placementHasAxis(*placement, term.text);
      });
  }
  return false;
}

bool SearchQuery::asksForFacts() const {
  return std::any_of(m_terms.begin(), m_terms.end(), [](const Term& term) { return term.field == Field::Axis; });
}

bool SearchQuery::matches(const graph::Graph& graph, graph::NodeId node, const SearchFacts& facts) const {
  return std::all_of(m_terms.begin(), m_terms.end(), [&](const Term& term) { return holds(term, graph, node, facts); });
}

std::vector<graph::NodeId> SearchQuery::hits(const graph::Graph& graph, const SearchFacts& facts) const {
  std::vector<graph::NodeId> found;
  if (isEmpty()) return found;
  for (const graph::NodeId node : idRange<graph::NodeId>(graph.nodes.size()))
    if (matches(graph, node, facts)) found.push_back(node);
  return found;
}

}  // namespace cleave::views
