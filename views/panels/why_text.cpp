// The decision panel's sections about the plan: why a value has its placement, and the cost of every other choice.
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
                  .arg(quiet(QStringLiteral("or %1").arg(proseHtml(alternative, graph)), colors));
    lines << line;
  }
  QStringList rows;
  for (qsizetype i = 0; i < lines.size(); ++i)
    rows << row({cell(quiet(i == 0 ? QString() : QStringLiteral("↑"), colors)), cell(lines[i])});
  return table(rows);
}

/// With slack, the plan for a demand may differ from the fastest plan that meets it. The canvas's heat shows the
/// fastest one's time.
bool isFastestPassedOver(const solve::Regret& regret) {
  return regret.extraFs && regret.fastestExtraFs && regret.fastestExtraFs != regret.extraFs;
}

/// Explains the signs and words that the table contains.
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
    notes << QStringLiteral("− time: a faster plan. The plan's search stopped at its limit before it found that one.");
  else if (isFaster)
    notes << QStringLiteral("− time: a faster plan that needs more memory per rank; rejected within the slack of %1.")
                 .arg(toQ(solve::slackText(slackPercent)));
  if (isPassedOver)
    notes << QStringLiteral(
                 "(fastest …): the fastest plan with this choice; another one needs less memory, within the slack of "
                 "%1.")
                 .arg(toQ(solve::slackText(slackPercent)));
  if (isNotProved)
    notes << QStringLiteral("≤: an upper bound, because the search for this choice stopped at its limit.");
  if (isOverBudget) notes << QStringLiteral("over budget: every plan with this choice exceeds the memory budget.");
  if (isNotKnown)
    notes << QStringLiteral("unknown: the search stopped at its limit before it found a plan within the budget.");
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
          cells << cell(
              QStringLiteral("<b style=\"color:%1\">✓ %2</b>").arg(colors.good, QStringLiteral("in the plan")), 3));
      continue;
    }
    if (regret.extraFs)
      cells << numberCell(
                   (regret.isProved ? QString() : QStringLiteral("≤ ")) + timeChange(*regret.extraFs) +
                   (isFastestPassedOver(regret)
                        ? QStringLiteral("<br>") +
                              quiet(QStringLiteral("(fastest %1)").arg(timeChange(*regret.fastestExtraFs)), colors)
                        : QString()))
            << numberCell(bytesChange(regret.extraBytes.value_or(0)));
    else
      cells << numberCell(quiet(regret.isProved ? QStringLiteral("over budget") : QStringLiteral("unknown"), colors))
            << numberCell({});
    rows << row(cells << cell(whyNotLink(regret.demand())));
  }
  return table(rows) + regretNotes(regrets, slackPercent, colors);
}

}  // namespace cleave::views
