// The parts of the decision panel that speak of the plan: why a value lies as it does, and what every other choice
// costs.
#include "panels/explain_text.h"
#include "panels/figures.h"
#include "text.h"

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

QString regretTable(const std::vector<solve::Regret>& regrets, const TextColors& colors) {
  QStringList rows;
  for (const solve::Regret& regret : regrets) {
    const QString name = toQ(regret.strategy ? std::string(rules::toText(*regret.strategy)) : regret.placement.text());
    QStringList cells{
        cell(regret.isChosen ? QStringLiteral("<b>%1</b>").arg(name.toHtmlEscaped()) : name.toHtmlEscaped()),
        cell(regret.strategy ? chip(regret.placement) : QString())};
    if (regret.isChosen) {
      rows << row(
          cells << cell(QStringLiteral("<b style=\"color:%1\">✓ %2</b>").arg(colors.good, QObject::tr("in the plan")),
                        3));
      continue;
    }
    if (regret.extraFs)
      cells << numberCell(timeChange(*regret.extraFs)) << numberCell(bytesChange(regret.extraBytes.value_or(0)));
    else
      cells << numberCell(quiet(regret.isProved ? QObject::tr("no plan") : QObject::tr("not known"), colors)) << numberCell({});
    rows << row(cells << cell(link(QStringLiteral("whynot:%1").arg(name), QObject::tr("why not?"))));
  }
  return table(rows);
}

}  // namespace cleave::views
