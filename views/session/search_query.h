#pragma once
/// The language of the search box: words, `op:mm`, `axis:1` (or `axis:column`, `axis:R`), `in:layers.3`,
/// `shape:*x4096`, `source:modeling_llama.py:244`, `/regex/`. All parts must match. Words and patterns also find lines
/// of the model's code. Pure: text in, matches out.
///
///     CLEAVE_TRY(auto query, SearchQuery::parse("op:linear in:layers.3"));
///     for (NodeId hit : query.hits(graph, placements, strategies)) ...
#include <QRegularExpression>
#include <QString>
#include <functional>
#include <optional>
#include <vector>

#include "graph/graph.h"
#include "rules/strategies.h"

namespace cleave::views {

/// Facts about a node besides the graph itself. Both may be empty.
struct SearchFacts {
  std::function<std::optional<rules::Placement>(graph::ValueId)> placementOf;
  std::function<std::optional<rules::Strategy>(graph::NodeId)> strategyOf;
};

class SearchQuery {
 public:
  /// BadUsage for an unknown `key:` or an invalid regular expression.
  static Result<SearchQuery> parse(const QString& text);
  bool isEmpty() const { return m_terms.empty(); }
  /// True if the hits depend on the step, because the query contains an axis.
  bool asksForFacts() const;
  bool matches(const graph::Graph& graph, graph::NodeId node, const SearchFacts& facts = {}) const;
  /// In graph order.
  std::vector<graph::NodeId> hits(const graph::Graph& graph, const SearchFacts& facts = {}) const;

 private:
  enum class Field { Word, Op, Axis, In, Shape, Source, Regex };
  struct Term {
    Field field = Field::Word;
    QString text;
    QRegularExpression pattern;  ///< Shape and Regex
  };
  bool holds(const Term& term, const graph::Graph& graph, graph::NodeId node, const SearchFacts& facts) const;
  std::vector<Term> m_terms;
};

}  // namespace cleave::views
