// The parts of the decision panel that speak of the plan: why a value is placed as it is, and what every other choice
// costs.
#include "views/panels/why_text.h"
#include "views/base/text.h"
#include "views/panels/figures.h"

namespace cleave::views {

QString whyChain(const std::vector<solve::WhyLink>& chain, const graph::Graph& graph, const TextColors& colors) {
  QStringList lines;
  for (const solve::WhyLink& step : chain) {
    QString line = sentenceHtml(step.sentence, graph);
    for (const std::string& alternative : step.alternatives)
      line += QStringLiteral("<br>&nbsp;&nbsp;%1")
                  .arg(quiet(QObject::tr("or %1").arg(proseHtml(alternative, graph)), colors));
    lines << line;
  }
  QStringList rows;
  for (qsizetype i = 0; i < lines.size(); ++i)
    rows << row({cell(quiet(i == 0 ? QString() : QStringLiteral("↑"), colors)), cell(lines[i])});
  return table(rows);
}

/// With slack the plan that answers a demand is not the fastest that meets it, whose time the heat of the canvas shows.
bool isFastestPassedOver(const solve::Regret& regret) {
  return regret.extraFs && regret.fastestExtraFs && regret.fastestExtraFs != regret.extraFs;
}

/// What its signs and words mean, where they are in the table.
QString regretNotes(const std::vector<solve::Regret>& regrets, double slackPercent, const TextColors& colors) {
  bool isFaster = false, isPassedOver = false, isOverBudget = false, isNotKnown = false, isNotProved = false;
  for (const solve::Regret& regret : regrets) {
    if (regret.isChosen) continue;
    isFaster |= regret.extraFs && *regret.extraFs < 0;
    isPassedOver |= isFastestPassedOver(regret);
    isOverBudget |= !regret.extraFs && regret.isProved;
    isNotKnown |= !regret.extraFs && !regret.isProved;
    isNotProved |= regret.extraFs && !regret.isProved;
  }
  QStringList notes;
  if (isFaster && slackPercent == 0)
    notes << QObject::tr(
        "− time: a faster plan, which the search for the plan did not find before it ended at its limit.");
  else if (isFaster)
    notes << QObject::tr("− time: a faster plan, given up because a rank holds more; the slack of %1 allows that.")
                 .arg(toQ(solve::slackText(slackPercent)));
  if (isPassedOver)
    notes << QObject::tr(
                 "(fastest …): the fastest plan with it, passed over for one that holds less; the slack of %1 allows "
                 "that.")
                 .arg(toQ(solve::slackText(slackPercent)));
  if (isNotProved) notes << QObject::tr("≤: the search for the best plan with it ended at its limit.");
  if (isOverBudget) notes << QObject::tr("over budget: every plan with it needs more than the memory budget.");
  if (isNotKnown)
    notes << QObject::tr("not known: the search ended at its limit before it found a plan within the budget.");
  QString html;
  for (const QString& note : notes) html += QStringLiteral("<p>%1</p>").arg(quiet(note, colors));
  return html;
}

QString regretTable(const std::vector<solve::Regret>& regrets, int ranks, double slackPercent,
                    const TextColors& colors) {
  QStringList rows;
  for (const solve::Regret& regret : regrets) {
    const QString name = toQ(regret.name());
    QStringList cells{
        cell(regret.isChosen ? QStringLiteral("<b>%1</b>").arg(name.toHtmlEscaped()) : name.toHtmlEscaped()),
        nameCell(regret.strategy ? chip(regret.placement, ranks) : QString())};
    if (regret.isChosen) {
      rows << row(
          cells << cell(QStringLiteral("<b style=\"color:%1\">✓ %2</b>").arg(colors.good, QObject::tr("in the plan")),
                        3));
      continue;
    }
    if (regret.extraFs)
      cells << numberCell((regret.isProved ? QString() : QStringLiteral("≤ ")) + timeChange(*regret.extraFs) +
                          (isFastestPassedOver(regret)
                               ? QStringLiteral("<br>") +
                                     quiet(QObject::tr("(fastest %1)").arg(timeChange(*regret.fastestExtraFs)), colors)
                               : QString()))
            << numberCell(bytesChange(regret.extraBytes.value_or(0)));
    else
      cells << numberCell(quiet(regret.isProved ? QObject::tr("over budget") : QObject::tr("not known"), colors))
            << numberCell({});
    rows << row(cells << cell(whyNotLink(regret.demand())));
  }
  return table(rows) + regretNotes(regrets, slackPercent, colors);
}

}  // namespace cleave::views
