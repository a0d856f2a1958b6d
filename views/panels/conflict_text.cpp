#include "views/panels/conflict_text.h"

#include "views/base/target.h"
#include "views/base/text.h"

namespace cleave::views {

QString conflictText(const Plans& plans, const Debugger& debugger, const TextColors& colors) {
  const auto& state = debugger.state();
  if (!debugger.trace() || !state) return {};
  const graph::Graph& graph = *debugger.trace()->problem()->graph;
  if (!state->conflict) {
    const solve::SearchStats stats = debugger.trace()->stats();
    if (const auto& solved = plans.solved(); solved && solved->result.outcome == solve::Outcome::NoSolution) {
      QString html = QStringLiteral("<p><b style=\"color:%1\">✕ %2</b></p>")
                         .arg(colors.conflict, toQ(solve::noSolutionText(solved->result)) + QLatin1Char('.'));
      QStringList lines;
      for (const solve::ConflictRecord& cause : solved->result.causes)
        lines << (cause.isOfWholePlan()
                      ? prose(cause.reason).toHtmlEscaped()
                      : QStringLiteral("%1: %2").arg(nodeLink(graph, cause.node), prose(cause.reason).toHtmlEscaped()));
      if (!lines.isEmpty())
        html += heading(QStringLiteral("Dead ends of the search, most frequent first (F8 goes to the next)"), colors) +
                lineList(lines);
      return html;
    }
    const bool isWeighed = debugger.trace()->engine() == solve::Engine::Optimal;
    if (stats.conflicts == 0 && isWeighed)
      return QStringLiteral(
          "<p>This search met no conflict: it compares whole plans by time and memory instead of trying one "
          "candidate after another.</p>");
    return stats.conflicts == 0
               ? QStringLiteral(
                     "<p>This search met no conflict: every layer kept the first candidate that its sizes and the "
                     "pins allow.</p>")
               : QStringLiteral(
                     "<p>No conflict at this step. The search met %1 conflicts: F8 goes to the next one, Shift+F8 to "
                     "the previous one.</p>")
                     .arg(countText(stats.conflicts));
  }
  const solve::ConflictCard& card = *state->conflict;
  const graph::Node& node = graph.node(card.node);
  const QString where =
      card.conflict.isOfWholePlan()
          ? QStringLiteral("for the whole plan, at step %1").arg(stepLink(card.step))
          : QStringLiteral("in %1, at step %2").arg(scopeLink(graph, node.scope), stepLink(card.step));
  QString html;
  if (const auto& solved = plans.solved();
      solved && solved->result.outcome == solve::Outcome::NoSolution && !solved->result.core.constraints.empty())
    html = quiet(QStringLiteral("%1. This is one dead end of the search; the reason is below.")
                     .arg(toQ(solve::noSolutionText(solved->result))),
                 colors);
  html += QStringLiteral("<p><b style=\"color:%1\">✕</b> %2</p><p>%3</p>")
              .arg(colors.conflict, sentenceHtml(card.headline, graph), quiet(where, colors));
  const auto section = [&](const QString& title, const std::vector<solve::Sentence>& sentences) {
    QStringList lines;
    for (const solve::Sentence& sentence : sentences) lines << sentenceHtml(sentence, graph);
    if (!lines.isEmpty()) html += heading(title, colors) + lineList(lines);
  };
  std::vector<solve::Sentence> causes;
  for (const solve::CulpritLine& culprit : card.culprits) causes.push_back(culprit.sentence);
  section(QStringLiteral("Causes"), causes);
  section(QStringLiteral("Rejected here"), card.tried);
  if (!card.goesBack.empty()) html += QStringLiteral("<p>%1</p>").arg(sentenceHtml(card.goesBack, graph));
  return html;
}

}  // namespace cleave::views
