#pragma once
/// The pieces of the panels' rich text: colours, headings, tables, names as links. QTextDocument has no palette roles,
/// so the colours are written into the text.
#include <QPalette>
#include <QString>
#include <QStringList>

#include "graph/graph.h"
#include "solve/explain/sentences.h"
#include "views/base/theme.h"

namespace cleave::views {

/// The palette's colours for rich text.
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
/// A table with one cell per row.
QString lineList(const QStringList& htmls);
/// A table of rows of cells. Numbers are right-aligned.
QString cell(const QString& html, int columns = 1);
QString numberCell(const QString& html);
QString nameCell(const QString& html);  ///< on one line
QString row(const QStringList& cells);
QString table(const QStringList& rows);

QString valueLink(const graph::Graph& graph, graph::ValueId value);
QString scopeLink(const graph::Graph& graph, graph::ScopeId scope);
/// "why not?" as a link for a strategy or placement of this name. Empty for any other word.
QString whyNotLink(std::string_view choice);
/// A link to the module's layer if it has one, else to the module.
QString layerLink(const graph::Graph& graph, const std::string& name);
/// A sentence from core with its links, and names without back quotes.
QString sentenceHtml(const solve::Sentence& sentence, const graph::Graph& graph);
/// Plain text from core. A name between back quotes becomes a link if the graph has a value or module of that name.
QString proseHtml(std::string_view text, const graph::Graph& graph);

}  // namespace cleave::views
