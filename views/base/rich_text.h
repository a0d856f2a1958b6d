#pragma once
/// The pieces that panels' rich text is made of: colours, headings, tables, names as links. QTextDocument knows no
/// palette roles, so colours are written into the text.
#include <QPalette>
#include <QString>
#include <QStringList>

#include "graph/graph.h"
#include "solve/explain/decision.h"
#include "views/base/theme.h"

namespace cleave::views {

/// What a palette lends to rich text.
struct TextColors {
  QString quiet, good, conflict, warning;
  static TextColors of(const QPalette& palette);
};

/// "<style>…</style>" for labels and browsers: link colour, fonts, spacing.
QString richTextStyle(const QPalette& palette);

QString escaped(std::string_view text);
QString quiet(const QString& html, const TextColors& colors);
QString mono(const QString& text);  ///< escaped, in the fixed font
QString heading(const QString& text, const TextColors& colors);
/// A placement as a coloured word, as on the canvas.
QString chip(const MaybePlacement& placement, int ranks);
/// Rows of one cell under each other.
QString lineList(const QStringList& htmls);
/// A table of rows of cells; numbers align right.
QString cell(const QString& html, int columns = 1);
QString numberCell(const QString& html);
QString nameCell(const QString& html);  ///< in one line
QString row(const QStringList& cells);
QString table(const QStringList& rows);

QString valueLink(const graph::Graph& graph, graph::ValueId value);
QString scopeLink(const graph::Graph& graph, graph::ScopeId scope);
/// "why not?", of a strategy or placement so named; empty for any other word.
QString whyNotLink(std::string_view choice);
/// Leads to the layer of this module where it has one, else to the module.
QString layerLink(const graph::Graph& graph, const std::string& name);
/// A sentence of the core with its links, names without back quotes.
QString sentenceHtml(const solve::Sentence& sentence, const graph::Graph& graph);
/// Plain text of the core in which names between back quotes become links where the graph has a value or module so
/// named.
QString proseHtml(std::string_view text, const graph::Graph& graph);

}  // namespace cleave::views
