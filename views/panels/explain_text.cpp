#include "panels/explain_text.h"

#include <algorithm>

#include "canvas/theme.h"
#include "text.h"

namespace cleave::views {

namespace {

QString escape(std::string_view text) { return toQ(text).toHtmlEscaped(); }
QString quiet(const QString& html, const TextColors& colors) { return QStringLiteral("<span style=\"color:%1\">%2</span>").arg(colors.quiet, html); }
QString mono(const QString& text) { return QStringLiteral("<code>%1</code>").arg(text.toHtmlEscaped()); }
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
  return QStringLiteral("%1 %2 %3").arg(link(QStringLiteral("value:%1").arg(toQ(v.name)), toQ(v.name)), mono(shapeText(v.type.shape)), chip(document.placementOf(value)));
}

QString list(const QStringList& lines) {
  QString html = QStringLiteral("<table cellspacing=\"0\" cellpadding=\"1\">");
  for (const QString& line : lines) html += QStringLiteral("<tr><td>%1</td></tr>").arg(line);
  return html + QStringLiteral("</table>");
}

QString collectiveText(const rules::StrategyOption& option) {
  QStringList parts;
  const auto name = [](rules::CollectiveKind kind) { return toQ(rules::toText(kind)).replace(QLatin1Char('_'), QLatin1Char('-')); };
  if (option.before) parts << QObject::tr("%1 before").arg(name(*option.before));
  if (option.after) parts << QObject::tr("%1 after").arg(name(*option.after));
  return parts.isEmpty() ? QObject::tr("no collective") : parts.join(QStringLiteral(", "));
}

bool hasPin(const Document& document, const QString& spec) {
  return std::any_of(document.pins().begin(), document.pins().end(), [&](const solve::Pin& pin) { return toQ(pin.text) == spec; });
}

/// What became of one candidate, as far as the present step tells.
QString fate(const Document& document, const graph::LayerShape& layer, const rules::StrategyOption& option, bool isChosen, const TextColors& colors) {
  if (isChosen) return QStringLiteral("<b style=\"color:%1\">%2</b>").arg(colors.good, QObject::tr("taken"));
  const auto input = document.placementOf(layer.input);
  if (input && !(option.input == *input))
    return quiet(QObject::tr("needs its input as %1, but it is %2").arg(escape(option.input.text()), escape(input->text())), colors);
  return quiet(QObject::tr("possible here"), colors);
}

struct LayerSections {
  QString html;
  std::vector<PinOffer> pins, forbids;
  QString strategy;
};

LayerSections layerSections(const Document& document, NodeId node, const graph::LayerShape& layer, const TextColors& colors) {
  const graph::Graph& graph = *document.graph();
  const auto& settings = document.settings();
  const auto problem = document.trace() ? document.trace()->problem() : nullptr;
  const rules::StrategyContext context = problem ? problem->context : rules::StrategyContext{settings.ranks, rules::Menu::Optimum, settings.sequenceParallel};
  const rules::LayerOptions options = rules::layerOptions(graph, node, layer, context);
  const auto taken = document.strategyOf(node);
  LayerSections sections;
  if (taken) sections.strategy = toQ(rules::toText(*taken));

  QString rows;
  const rules::StrategyOption* chosen = nullptr;
  for (const rules::StrategyOption& option : options.offered) {
    const bool isTaken = taken && option.strategy == *taken && (!chosen) && document.placementOf(layer.input) == MaybePlacement(option.input);
    if (isTaken) chosen = &option;
    rows += QStringLiteral("<tr><td><b>%1</b></td><td>%2</td><td>%3</td></tr><tr><td></td><td colspan=\"2\">%4</td></tr>")
                .arg(escape(rules::toText(option.strategy)), fate(document, layer, option, isTaken, colors), collectiveText(option),
                     quiet(escape(option.reason), colors));
  }
  for (const rules::Refusal& refusal : options.refused)
    rows += QStringLiteral("<tr><td><s>%1</s></td><td colspan=\"2\"><span style=\"color:%2\">%3</span></td></tr>")
                .arg(escape(rules::toText(refusal.strategy)), colors.conflict, escape(refusal.reason));
  sections.html += heading(QObject::tr("Candidates on %1 ranks, in order").arg(context.worldSize), colors);
  sections.html += QStringLiteral("<table cellspacing=\"0\" cellpadding=\"2\">%1</table>").arg(rows);

  if (layer.weight.isValid()) {
    const graph::Value& weight = graph.value(layer.weight);
    QString line = QStringLiteral("%1 %2").arg(link(QStringLiteral("value:%1").arg(toQ(weight.name)), toQ(weight.name)), mono(shapeText(weight.type.shape)));
    if (chosen)
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
    lines << QStringLiteral("%1 <b>%2</b> %3").arg(link(QStringLiteral("node:%1").arg(node.raw()), shortScope(graph::layerName(graph, node), 2)),
                                                   strategy ? escape(rules::toText(*strategy)) : QStringLiteral("–"),
                                                   n.results.empty() ? QString() : chip(document.placementOf(n.results[0])));
  }
  text.html = QStringLiteral("<p>%1</p>").arg(QObject::tr("Module %1 with %2 operators, %3 of them layers.").arg(scopeLink(path)).arg(operators).arg(layers));
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
                  .arg(nodeKindText(graph, focus.node), quiet(op.empty() ? QString() : escape(op), colors), quiet(QObject::tr("in"), colors), scopeLink(graph.scope(node.scope).path));
  for (const ValueId result : node.results) {
    const graph::Value& value = graph.value(result);
    const auto placement = document.placementOf(result);
    text.html += QStringLiteral("<p>%1 %2 &nbsp;%3 %4</p>").arg(mono(shapeText(value.type.shape)), escape(graph::toText(value.type.dtype)), chip(placement),
                                                                placement ? describe(placement) : QString());
  }
  if (const QString assigned = assignedLine(document, focus.node); !assigned.isEmpty() && node.kind == graph::NodeKind::Call)
    text.html += QStringLiteral("<p>%1</p>").arg(assigned);

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
      QString html = QObject::tr("<p><b>There is no solution.</b> The search met these dead ends, most often first:</p>");
      QStringList lines;
      for (const solve::ConflictRecord& cause : solved->result.causes) lines << QStringLiteral("%1: %2").arg(nodeLink(graph, cause.node), escape(cause.reason));
      return html + list(lines) + QObject::tr("<p>F8 goes to the next conflict. Lifting a pin (Model ▸ Pins) may make it solvable.</p>");
    }
    return stats.conflicts == 0 ? QObject::tr("<p>This search met no conflict: the first candidate of every layer held.</p>")
                                : QObject::tr("<p>No conflict at this step. The search met %1 of them: F8 goes to the next, Shift+F8 to the one before.</p>").arg(countText(stats.conflicts));
  }
  const solve::ConflictRecord& conflict = *state->conflict;
  const graph::Node& node = graph.node(conflict.node);
  QString html = QStringLiteral("<p><b style=\"color:%1\">✕ %2</b> %3</p><p>%4</p>")
                     .arg(colors.conflict, nodeLink(graph, conflict.node), quiet(QObject::tr("in %1, at step %2").arg(scopeLink(graph.scope(node.scope).path), stepLink(state->step)), colors), escape(conflict.reason));
  QStringList lines;
  for (const ValueId culprit : conflict.culprits) {
    const NodeId producer = graph.value(culprit).producer;
    QString line = valueLine(document, culprit);
    if (const auto strategy = document.strategyOf(producer)) line += QStringLiteral(" %1").arg(escape(rules::toText(*strategy)));
    if (const QString assigned = assignedLine(document, producer); !assigned.isEmpty()) line += QStringLiteral(", ") + assigned;
    lines << line;
  }
  if (!lines.isEmpty()) html += heading(QObject::tr("Because of"), colors) + list(lines);
  for (const std::string& pin : conflict.pins) html += QStringLiteral("<p>%1</p>").arg(QObject::tr("The pin %1 takes part. %2").arg(mono(toQ(pin)), link(QStringLiteral("unpin:%1").arg(toQ(pin)), QObject::tr("Lift it"))));
  if (state->next && state->next->type == solve::EventType::Backtrack) {
    const NodeId target(state->next->target);
    html += QStringLiteral("<p>%1</p>").arg(state->next->detail > 1
                ? QObject::tr("The search goes back to %1 and undoes %2 decisions.").arg(nodeLink(graph, target), countText(state->next->detail))
                : QObject::tr("The search goes back to %1 and tries its next candidate.").arg(nodeLink(graph, target)));
  } else if (state->next && state->next->type == solve::EventType::Exhausted) {
    html += QStringLiteral("<p>%1</p>").arg(QObject::tr("No candidate is left anywhere: there is no solution."));
  }
  return html;
}

}  // namespace cleave::views
