#include "panels/explain_text.h"

#include <algorithm>

#include "canvas/theme.h"
#include "text.h"

namespace cleave::views {

namespace {

QString escape(std::string_view text) {
  return toQ(text).toHtmlEscaped();
}
QString quiet(const QString& html, const TextColors& colors) {
  return QStringLiteral("<span style=\"color:%1\">%2</span>").arg(colors.quiet, html);
}
QString mono(const QString& text) {
  return QStringLiteral("<code>%1</code>").arg(text.toHtmlEscaped());
}
QString heading(const QString& text, const TextColors& colors) {
  return QStringLiteral("<p style=\"margin:10px 0 2px 0\"><b style=\"color:%1\">%2</b></p>").arg(colors.quiet, text);
}

QString chip(const MaybePlacement& placement) {
  if (!placement) return QObject::tr("not assigned yet");
  const Theme theme = Theme::light();
  const QColor color = theme.placementColor(placement);
  return QStringLiteral("<span style=\"background-color:%1;color:%2\">&nbsp;%3&nbsp;</span>")
      .arg(color.name(), theme.textOn(color).name(), escape(placement->text()));
}

QString scopeLink(const std::string& path) {
  if (path.empty()) return QObject::tr("the model");
  return link(QStringLiteral("scope:%1").arg(toQ(path)), shortScope(path, 3));
}

QString valueLine(const Document& document, ValueId value) {
  const graph::Graph& graph = *document.graph();
  const graph::Value& v = graph.value(value);
  return QStringLiteral("%1 %2 %3")
      .arg(link(QStringLiteral("value:%1").arg(toQ(v.name)), toQ(v.name)), mono(shapeText(v.type.shape)),
           chip(document.placementOf(value)));
}

QString list(const QStringList& lines) {
  QString html = QStringLiteral("<table cellspacing=\"0\" cellpadding=\"1\">");
  for (const QString& line : lines) html += QStringLiteral("<tr><td>%1</td></tr>").arg(line);
  return html + QStringLiteral("</table>");
}

/// A sentence of the core with its links.
QString sentenceHtml(const solve::Sentence& sentence, const graph::Graph& graph) {
  QString html;
  for (const solve::SentencePart& part : sentence) {
    QString target;
    if (const auto* value = std::get_if<ValueId>(&part.link))
      target = QStringLiteral("value:%1").arg(toQ(graph.value(*value).name));
    else if (const auto* node = std::get_if<NodeId>(&part.link))
      target = QStringLiteral("node:%1").arg(node->raw());
    else if (const auto* seek = std::get_if<solve::SeekTo>(&part.link))
      target = QStringLiteral("step:%1").arg(seek->step);
    const QString text = prose(part.text);
    html += target.isEmpty() ? text.toHtmlEscaped() : link(target, text);
  }
  return html;
}

QString collectiveText(const rules::StrategyOption& option) {
  QStringList parts;
  const auto name = [](rules::CollectiveKind kind) {
    return toQ(rules::toText(kind)).replace(QLatin1Char('_'), QLatin1Char('-'));
  };
  if (option.before) parts << QObject::tr("%1 before").arg(name(*option.before));
  if (option.after) parts << QObject::tr("%1 after").arg(name(*option.after));
  return parts.isEmpty() ? QObject::tr("no collective") : parts.join(QStringLiteral(", "));
}

bool hasPin(const Document& document, const QString& spec) {
  return std::any_of(document.pins().begin(), document.pins().end(),
                     [&](const solve::Pin& pin) { return toQ(pin.text) == spec; });
}

QString fateText(const solve::CandidateFate& candidate, const TextColors& colors) {
  const QString name = toQ(solve::toText(candidate.fate));
  switch (candidate.fate) {
    case solve::Fate::Chosen: return QStringLiteral("<b style=\"color:%1\">✓ %2</b>").arg(colors.good, name);
    case solve::Fate::Failed: {
      const QString text = QStringLiteral("<span style=\"color:%1\">✕ %2</span>").arg(colors.conflict, name);
      return candidate.failedAt ? QObject::tr("%1 at step %2").arg(text, stepLink(*candidate.failedAt)) : text;
    }
    case solve::Fate::Refused: return QStringLiteral("<span style=\"color:%1\">%2</span>").arg(colors.conflict, name);
    default: return quiet(name, colors);
  }
}

QString candidateRow(const solve::CandidateFate& candidate, const TextColors& colors) {
  const QString collective =
      candidate.choice && candidate.choice->strategy ? collectiveText(*candidate.choice->strategy) : QString();
  QString why = prose(candidate.why).toHtmlEscaped();
  if (!candidate.conflict.empty())
    why += (why.isEmpty() ? QString() : QStringLiteral("<br>")) + prose(candidate.conflict).toHtmlEscaped();
  return QStringLiteral(
             "<tr><td><b>%1</b>&nbsp;</td><td>%2&nbsp;</td><td>%3</td></tr><tr><td></td><td colspan=\"2\">%4</td></tr>")
      .arg(toQ(candidate.name).toHtmlEscaped(), fateText(candidate, colors), quiet(collective, colors),
           quiet(why, colors));
}

struct LayerSections {
  QString html;
  std::vector<PinOffer> pins, forbids;
  QString strategy;
};

LayerSections layerSections(const Document& document, NodeId node, const graph::LayerShape& layer,
                            const TextColors& colors) {
  const graph::Graph& graph = *document.graph();
  const auto& settings = document.settings();
  const auto problem = document.trace() ? document.trace()->problem() : nullptr;
  const rules::StrategyContext context =
      problem ? problem->context
              : rules::StrategyContext{settings.ranks, rules::Menu::Optimum, settings.sequenceParallel};
  const rules::LayerOptions options = rules::layerOptions(graph, node, layer, context);
  const auto taken = document.strategyOf(node);
  LayerSections sections;
  if (taken) sections.strategy = toQ(rules::toText(*taken));

  const auto chosen =
      std::find_if(options.offered.begin(), options.offered.end(), [&](const rules::StrategyOption& option) {
        return taken && option.strategy == *taken && document.placementOf(layer.input) == MaybePlacement(option.input);
      });
  if (layer.weight.isValid()) {
    const graph::Value& weight = graph.value(layer.weight);
    QString line = QStringLiteral("%1 %2").arg(link(QStringLiteral("value:%1").arg(toQ(weight.name)), toQ(weight.name)),
                                               mono(shapeText(weight.type.shape)));
    if (chosen != options.offered.end())
      if (const auto local = chosen->weight.localShape(weight.type.shape, context.worldSize); local)
        line += QObject::tr(" → %1 on a rank").arg(mono(shapeText(*local)));
    sections.html += heading(QObject::tr("Weight"), colors) + line;
  }

  const QString name = toQ(graph::layerName(graph, node));
  for (const char* axis : {"column", "row", "vocab", "replicated"}) {
    const auto isOfAxis = [&](const auto& o) { return rules::axisOf(o.strategy) == axis; };
    if (std::none_of(options.offered.begin(), options.offered.end(), isOfAxis)) continue;
    const QString label = QString::fromLatin1(axis);
    const QString pin = QStringLiteral("%1=%2").arg(name, label), forbid = QStringLiteral("%1!=%2").arg(name, label);
    sections.pins.push_back({label, pin, hasPin(document, pin)});
    sections.forbids.push_back({label, forbid, hasPin(document, forbid)});
  }
  return sections;
}

DecisionText moduleText(const Document& document, ScopeId scope, const TextColors& colors) {
  const graph::Graph& graph = *document.graph();
  const std::string& path = graph.scope(scope).path;
  DecisionText text;
  text.title = path.empty() ? QObject::tr("the whole model") : shortScope(path, 3);
  int operators = 0, layers = 0;
  QStringList lines;
  for (const NodeId node : idRange<NodeId>(graph.nodes.size())) {
    const graph::Node& n = graph.node(node);
    const std::string& own = graph.scope(n.scope).path;
    if (n.kind != graph::NodeKind::Call || !(path.empty() || own == path || own.starts_with(path + "."))) continue;
    ++operators;
    if (!graph::layerShape(graph, node)) continue;
    if (++layers > 40) continue;
    const auto strategy = document.strategyOf(node);
    lines << QStringLiteral("%1 <b>%2</b> %3")
                 .arg(link(QStringLiteral("node:%1").arg(node.raw()), shortScope(graph::layerName(graph, node), 2)),
                      strategy ? escape(rules::toText(*strategy)) : QStringLiteral("–"),
                      n.results.empty() ? QString() : chip(document.placementOf(n.results[0])));
  }
  text.html = QStringLiteral("<p>%1</p>")
                  .arg(QObject::tr("Module %1 with %2 operators, %3 of them layers.")
                           .arg(scopeLink(path))
                           .arg(operators)
                           .arg(layers));
  if (!graph.scope(scope).className.empty()) text.html += quiet(escape(graph.scope(scope).className), colors);
  if (!lines.isEmpty()) text.html += heading(QObject::tr("Layers"), colors) + list(lines);
  if (layers > 40) text.html += quiet(QObject::tr("… and %1 more: see the layers table.").arg(layers - 40), colors);
  return text;
}

QString assignedLine(const Document& document, NodeId node) {
  const auto& state = document.stepState();
  if (!state || node.index() >= state->assignedAt.size()) return {};
  const StepId at = state->assignedAt[node.index()];
  return at == kNoStep ? QObject::tr("not assigned at this step") : QObject::tr("set at step %1").arg(stepLink(at + 1));
}

}  // namespace

TextColors TextColors::of(const QPalette& palette) {
  const Theme theme = Theme::of(palette);
  return {theme.textQuiet.name(), theme.good.name(), theme.conflict.name()};
}

DecisionText decisionText(const Document& document, const TextColors& colors) {
  const Focus& focus = document.focus();
  if (!document.graph()) return {};
  if (!focus.node.isValid()) return focus.scope.isValid() ? moduleText(document, focus.scope, colors) : DecisionText{};
  const graph::Graph& graph = *document.graph();
  const graph::Node& node = graph.node(focus.node);
  DecisionText text;
  text.title = nodeName(graph, focus.node);

  const std::string op = graph.opName(node);
  text.html = QStringLiteral("<p><b>%1</b> %2<br>%3 %4</p>")
                  .arg(nodeKindText(graph, focus.node), quiet(op.empty() ? QString() : escape(op), colors),
                       quiet(QObject::tr("in"), colors), scopeLink(graph.scope(node.scope).path));
  for (const ValueId result : node.results) {
    const graph::Value& value = graph.value(result);
    const auto placement = document.placementOf(result);
    text.html += QStringLiteral("<p>%1 %2 &nbsp;%3 %4</p>")
                     .arg(mono(shapeText(value.type.shape)), escape(graph::toText(value.type.dtype)), chip(placement),
                          placement ? describe(placement) : QString());
  }
  if (const QString assigned = assignedLine(document, focus.node);
      !assigned.isEmpty() && node.kind == graph::NodeKind::Call && !document.decision())
    text.html += QStringLiteral("<p>%1</p>").arg(assigned);

  if (const auto& decision = document.decision(); decision && decision->node == focus.node) {
    for (const solve::Sentence& sentence : decision->sentences)
      text.html += QStringLiteral("<p>%1</p>").arg(sentenceHtml(sentence, graph));
    if (!decision->candidates.empty()) {
      QString rows;
      for (const solve::CandidateFate& candidate : decision->candidates) rows += candidateRow(candidate, colors);
      text.html += heading(QObject::tr("Candidates, in order"), colors) +
                   QStringLiteral("<table cellspacing=\"0\" cellpadding=\"2\">%1</table>").arg(rows);
    }
  }
  if (const auto layer = graph::layerShape(graph, focus.node)) {
    LayerSections sections = layerSections(document, focus.node, *layer, colors);
    if (!sections.strategy.isEmpty()) text.title += QStringLiteral(" · ") + sections.strategy;
    text.html += sections.html;
    text.pins = std::move(sections.pins);
    text.forbids = std::move(sections.forbids);
  }
  QStringList inputs, users;
  for (const ValueId operand : graph::operandsOf(node)) inputs << valueLine(document, operand);
  for (const ValueId result : node.results)
    for (const NodeId user : graph.value(result).users)
      if (!graph.node(user).results.empty()) users << valueLine(document, graph.node(user).results.front());
  if (!inputs.isEmpty()) text.html += heading(QObject::tr("Inputs"), colors) + list(inputs);
  if (!users.isEmpty()) text.html += heading(QObject::tr("Used by"), colors) + list(users.mid(0, 24));
  if (users.size() > 24) text.html += quiet(QObject::tr("… and %1 more").arg(users.size() - 24), colors);
  return text;
}

QString conflictText(const Document& document, const TextColors& colors) {
  const auto& state = document.stepState();
  if (!document.trace() || !state) return {};
  const graph::Graph& graph = *document.trace()->problem()->graph;
  if (!state->conflict) {
    const solve::SearchStats stats = document.trace()->stats();
    if (const auto& solved = document.solved(); solved && solved->result.outcome == solve::Outcome::NoSolution) {
      QString html =
          QObject::tr("<p><b>There is no solution.</b> The search met these dead ends, most often first:</p>");
      QStringList lines;
      for (const solve::ConflictRecord& cause : solved->result.causes)
        lines << QStringLiteral("%1: %2").arg(nodeLink(graph, cause.node), prose(cause.reason).toHtmlEscaped());
      return html + list(lines) +
             QObject::tr("<p>F8 goes to the next conflict. Lifting a pin (Model ▸ Pins) may make it solvable.</p>");
    }
    return stats.conflicts == 0
               ? QObject::tr("<p>This search met no conflict: the first candidate of every layer held.</p>")
               : QObject::tr(
                     "<p>No conflict at this step. The search met %1 of them: F8 goes to the next, Shift+F8 to the one "
                     "before.</p>")
                     .arg(countText(stats.conflicts));
  }
  const solve::ConflictCard& card = *state->conflict;
  const graph::Node& node = graph.node(card.node);
  QString html =
      QStringLiteral("<p><b style=\"color:%1\">✕</b> %2</p><p>%3</p>")
          .arg(colors.conflict, sentenceHtml(card.headline, graph),
               quiet(QObject::tr("in %1, at step %2").arg(scopeLink(graph.scope(node.scope).path), stepLink(card.step)),
                     colors));
  const auto section = [&](const QString& title, const std::vector<solve::Sentence>& sentences) {
    QStringList lines;
    for (const solve::Sentence& sentence : sentences) lines << sentenceHtml(sentence, graph);
    if (!lines.isEmpty()) html += heading(title, colors) + list(lines);
  };
  std::vector<solve::Sentence> causes;
  for (const solve::CulpritLine& culprit : card.culprits) causes.push_back(culprit.sentence);
  section(QObject::tr("Because of"), causes);
  section(QObject::tr("What else was possible here"), card.tried);
  if (!card.goesBack.empty()) html += QStringLiteral("<p>%1</p>").arg(sentenceHtml(card.goesBack, graph));
  section(QObject::tr("What you can change"), card.suggestions);
  QStringList buttons;
  for (const std::string& pin : card.pinsToLift)
    buttons << link(QStringLiteral("unpin:%1").arg(toQ(pin)), QObject::tr("Lift %1").arg(toQ(pin)));
  for (const std::string& pin : card.pinsToTry)
    buttons << link(QStringLiteral("pin:%1").arg(toQ(pin)), QObject::tr("Pin %1").arg(toQ(pin)));
  if (!buttons.isEmpty()) html += QStringLiteral("<p>%1</p>").arg(buttons.join(QStringLiteral(" &nbsp;·&nbsp; ")));
  return html;
}

}  // namespace cleave::views
