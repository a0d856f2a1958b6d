#include "views/panels/answer_offers.h"

#include "pipeline/source/open.h"
#include "views/base/text.h"
#include "views/panels/figures.h"

namespace cleave::views {

namespace {
Offer changeOffer(Plans& plans, const QString& html, const solve::Change& change) {
  return {html, changeText(change), QStringLiteral("%1 and solve again").arg(changeText(change)),
          [&plans, change] { plans.applyChange(change); }};
}

/// A constraint with its button. Without a button if no change that was tried leads to a plan.
Offer constraintOffer(Plans& plans, const graph::Graph& graph, const solve::Constraint& constraint) {
  QString html = proseHtml(constraint.text, graph);
  if (constraint.node.isValid() && constraint.node.index() < graph.nodes.size() && !html.contains(QLatin1String("<a ")))
    html = QStringLiteral("%1: %2").arg(nodeLink(graph, constraint.node), html);
  html = QStringLiteral("• %1").arg(html);
  if (constraint.offer) return changeOffer(plans, html, *constraint.offer);
  return {html, {}, {}, {}};
}

QString figureRow(const QString& name, const QString& before, const QString& after) {
  return row(
      {cell(name), numberCell(before), cell(QStringLiteral("→")), numberCell(QStringLiteral("<b>%1</b>").arg(after))});
}
}  // namespace

QString changeText(const solve::Change& change) { return capitalized(prose(solve::toText(change))); }

std::vector<Offer> coreOffers(Plans& plans, const graph::Graph& graph, const solve::Core& core) {
  std::vector<Offer> offers;
  for (const solve::Constraint& constraint : core.constraints)
    offers.push_back(constraintOffer(plans, graph, constraint));
  return offers;
}

QString figuresTable(const solve::Figures& before, const solve::Figures& after, const TextColors& colors) {
  const auto figure = [&](const solve::Figures& figures, const QString& text) {
    return figures.hasPlan ? text.toHtmlEscaped() : quiet(QStringLiteral("no plan"), colors);
  };
  const auto split = [&](const solve::Figures& f) {
    return figure(f, QStringLiteral("%1 of %2").arg(f.splitLayers).arg(f.layers));
  };
  const auto bytes = [&](const solve::Figures& f) { return figure(f, bytesText(f.rankBytes)); };
  const auto time = [&](const solve::Figures& f) { return figure(f, timeText(f.femtoseconds)); };
  return table({figureRow(QStringLiteral("layers split"), split(before), split(after)),
                figureRow(QStringLiteral("bytes per rank"), bytes(before), bytes(after)),
                figureRow(QStringLiteral("time per step"), time(before), time(after))});
}

std::vector<Offer> remedyOffers(Plans& plans, const graph::Graph& graph, const std::vector<solve::Remedy>& remedies,
                                const TextColors& colors) {
  std::vector<Offer> offers;
  for (const solve::Remedy& remedy : remedies) {
    const QString html =
        QStringLiteral("%1%2").arg(proseHtml(remedy.text, graph), figuresTable(remedy.before, remedy.after, colors));
    offers.push_back(changeOffer(plans, html, remedy.change));
  }
  return offers;
}

std::vector<Offer> fitOffers(Plans& plans, const plan::ModelInfo& info, const pipeline::Fits& fits,
                             const TextColors& colors) {
  std::vector<Offer> offers;
  if (!fits.found.empty())
    offers.push_back({heading(QStringLiteral("Changes that fit the budget, each tried alone"), colors), {}, {}, {}});
  for (const pipeline::Fit& fit : fits.found) {
    const QString change = toQ(fit.change);
    const bool isOtherGraph = fit.input != info.input;
    QString tip = QStringLiteral("Command line: %1").arg(toQ(fit.flags));
    if (isOtherGraph)
      tip += QStringLiteral("\nCaptures the model again. This discards plans A and B and the undo history.");
    offers.push_back({QStringLiteral("With <b>%1</b>: %2 per rank, %3 per step")
                          .arg(change.toHtmlEscaped(), bytesText(fit.rankBytes), timeText(fit.femtoseconds)),
                      isOtherGraph ? QStringLiteral("Capture again with %1").arg(change)
                                   : QStringLiteral("Solve with %1").arg(change),
                      tip, [&plans, fit] { plans.applyFit(fit); }});
  }
  QStringList rest = toQ(pipeline::restText(fits)).trimmed().split(QLatin1Char('\n'), Qt::SkipEmptyParts);
  for (QString& line : rest) line = line.toHtmlEscaped();
  if (!rest.isEmpty()) offers.push_back({quiet(rest.join(QStringLiteral("<br>")), colors), {}, {}, {}});
  return offers;
}

AnswerText answerText(Plans& plans, const graph::Graph& graph, const WhyNotReply& reply, const TextColors& colors) {
  if (reply.isPending()) return {quiet(QStringLiteral("Solving with this choice …"), colors), {}};
  if (!reply.answer) return {reply.failure.toHtmlEscaped(), {}};
  const solve::WhyNot& answer = *reply.answer;
  AnswerText text;
  QStringList sentences;
  for (const solve::Sentence& sentence : answer.sentences) sentences << sentenceHtml(sentence, graph);
  for (const QString& sentence : sentences) text.html += QStringLiteral("<p>%1</p>").arg(sentence);
  if (answer.extraFs || answer.extraBytes)
    text.html += QStringLiteral("<p><b>%1</b> %2</p>")
                     .arg(costChange(answer.extraFs.value_or(0), answer.extraBytes.value_or(0)),
                          quiet(QStringLiteral("compared with the plan shown"), colors));
  if (!answer.core.constraints.empty())
    text.html += heading(answer.core.isIrreducible ? QStringLiteral("These constraints conflict; each one is needed")
                                                   : QStringLiteral("These constraints conflict"),
                         colors);
  text.offers = coreOffers(plans, graph, answer.core);
  if (answer.pin) {
    const solve::Change pin{solve::ChangeKind::AddPin, *answer.pin};
    text.offers.push_back(changeOffer(plans, {}, pin));
  }
  return text;
}

}  // namespace cleave::views
