#include "views/panels/decision_text.h"

#include <algorithm>

#include "plan/text/gradient_text.h"
#include "solve/problem/strategy_text.h"
#include "solve/problem/wording.h"
#include "views/base/text.h"
#include "views/panels/why_text.h"

namespace cleave::views {

namespace {

int ranksOf(const DecisionSources& from) { return from.debugger.state() ? from.debugger.state()->ranks : 0; }

QString valueLine(const DecisionSources& from, ValueId value) {
  const graph::Graph& graph = *from.opened.graph();
  const graph::Value& v = graph.value(value);
  return QStringLiteral("%1 %2 %3")
      .arg(valueLink(graph, value), mono(shapeText(v.type.shape)),
           chip(from.debugger.placementOf(value), ranksOf(from)));
}

QString collectiveText(const rules::LayerStrategy& option) {
  QStringList parts;
  const auto name = [](rules::CollectiveKind kind) {
    return toQ(rules::toText(kind)).replace(QLatin1Char('_'), QLatin1Char('-'));
  };
  if (option.before) parts << QStringLiteral("%1 before").arg(name(*option.before));
  if (option.after) parts << QStringLiteral("%1 after").arg(name(*option.after));
  return parts.isEmpty() ? QStringLiteral("no collective") : parts.join(QStringLiteral(", "));
}

bool hasPin(const DecisionSources& from, const QString& spec) {
  return std::any_of(from.settings.pins().begin(), from.settings.pins().end(),
                     [&](const solve::Pin& pin) { return toQ(pin.text) == spec; });
}

QString stateText(const solve::CandidateEntry& candidate, const TextColors& colors) {
  const QString name = toQ(solve::toText(candidate.state));
  switch (candidate.state) {
    case solve::CandidateState::Chosen: return QStringLiteral("<b style=\"color:%1\">✓ %2</b>").arg(colors.good, name);
    case solve::CandidateState::Failed: {
      const QString text = QStringLiteral("<span style=\"color:%1\">✕ %2</span>").arg(colors.conflict, name);
      return candidate.failedAt ? QStringLiteral("%1 at step %2").arg(text, stepLink(*candidate.failedAt)) : text;
    }
    case solve::CandidateState::Refused:
      return QStringLiteral("<span style=\"color:%1\">%2</span>").arg(colors.conflict, name);
    default: return quiet(name, colors);
  }
}

/// `asks`: with a "why not?" link, if the panel has no other link for it.
QString candidateRow(const solve::CandidateEntry& candidate, int ranks, bool asks, const TextColors& colors) {
  const rules::ChosenStrategy split = candidate.choice ? candidate.choice->strategy : rules::ChosenStrategy();
  const QString collective = split ? collectiveText(*split) : QString();
  QString why = prose(candidate.why).toHtmlEscaped();
  if (!candidate.conflict.empty())
    why += (why.isEmpty() ? QString() : QStringLiteral("<br>")) + prose(candidate.conflict).toHtmlEscaped();
  // A copy shows its placement, because its strategy's name describes the part that is split.
  const bool isCopied = split && solve::effectiveStrategy(*split, ranks) != split->strategy;
  const std::string demand = isCopied ? candidate.choice->results.front().text() : candidate.name;
  const QString ask = asks && candidate.state != solve::CandidateState::Chosen ? whyNotLink(demand) : QString();
  // Two columns: the text next to the name wraps between words, at any width of the panel.
  QStringList facts{stateText(candidate, colors), quiet(collective, colors), ask};
  facts.removeAll(QString());
  QString rows = row(
      {nameCell(QStringLiteral("<b>%1</b>").arg(escaped(candidate.name))), cell(facts.join(QStringLiteral(" · ")))});
  if (!why.isEmpty()) rows += row({cell({}), cell(quiet(why, colors))});
  return rows;
}

struct LayerSections {
  QString html;
  std::vector<PinOffer> pins, forbids;
  std::vector<WhyNotTarget> questions;
  QString strategy;
  QString split;  ///< for the title
};

/// The name that the canvas and the table of layers use.
QString effectiveStrategy(const DecisionSources& from, rules::Strategy strategy, ValueId weight, int ranks) {
  const MaybePlacement lies = weight.isValid() ? from.debugger.placementOf(weight) : std::nullopt;
  return strategyText(strategy, plan::layerSplit(strategy, lies.value_or(rules::Placement()), ranks));
}

void addDemand(std::vector<PinOffer>& offers, const DecisionSources& from, const QString& label, const QString& spec) {
  offers.push_back({label, spec, hasPin(from, spec)});
}

/// A demand on a layer: any strategy of an axis, or one strategy.
struct Demand {
  QString label;
  std::string word;                         ///< name of the axis
  std::optional<rules::Strategy> strategy;  ///< set: only this strategy
  QString spec(const std::string& name, bool forbids) const {
    std::string text = strategy ? solve::demandFor(name, *strategy) : fmt::format("{}={}", name, word);
    if (forbids) text.insert(name.size(), "!");
    return toQ(text);
  }
};

/// An axis by its name if the layer has only one strategy of it. Otherwise any strategy of the axis, and each one.
std::vector<Demand> demandsFor(const rules::LayerStrategies& options) {
  std::vector<std::pair<std::string, std::vector<rules::Strategy>>> axes;
  for (const rules::LayerStrategy& option : options.offered) {
    const std::string axis(rules::axisOf(option.strategy));
    auto known = std::find_if(axes.begin(), axes.end(), [&](const auto& entry) { return entry.first == axis; });
    if (known == axes.end()) known = axes.insert(axes.end(), {axis, {}});
    auto& splits = known->second;
    if (std::find(splits.begin(), splits.end(), option.strategy) == splits.end()) splits.push_back(option.strategy);
  }
  std::vector<Demand> demands;
  for (const auto& [axis, splits] : axes) {
    const bool isOne = splits.size() == 1;
    demands.push_back({isOne ? toQ(axis) : QStringLiteral("%1 by any strategy").arg(toQ(axis)), axis, {}});
    if (isOne) continue;
    for (const rules::Strategy split : splits) demands.push_back({toQ(rules::toText(split)), axis, split});
  }
  return demands;
}

/// Demands for this layer and for all layers like it, and strategies for why-not questions.
void addDemands(LayerSections& sections, const DecisionSources& from, NodeId node,
                const rules::LayerStrategies& options) {
  const graph::Graph& graph = *from.opened.graph();
  const std::string name = graph::layerName(graph, node);
  const auto demands = demandsFor(options);
  const auto add = [&](const Demand& demand, const QString& label, const std::string& pattern) {
    addDemand(sections.pins, from, label, demand.spec(pattern, false));
    addDemand(sections.forbids, from, label, demand.spec(pattern, true));
  };
  for (const Demand& demand : demands) add(demand, demand.label, name);
  const LikeLayers alike = layersLike(graph, node);
  if (alike.count > 1)
    for (const Demand& demand : demands)
      add(demand, QStringLiteral("%1 on all %2 layers like it").arg(demand.label, countText(alike.count)),
          alike.pattern);
  const auto ask = [&](rules::Strategy strategy) {
    const WhyNotTarget question{strategy};
    const auto known = std::find(sections.questions.begin(), sections.questions.end(), question);
    if (question.text() != sections.strategy && known == sections.questions.end())
      sections.questions.push_back(question);
  };
  for (const rules::LayerStrategy& option : options.offered) ask(option.strategy);
  for (const rules::Refusal& refusal : options.refused) ask(refusal.strategy);
}

LayerSections layerSections(const DecisionSources& from, NodeId node, const graph::LayerShape& layer,
                            const TextColors& colors) {
  const graph::Graph& graph = *from.opened.graph();
  const auto& settings = from.settings.spec();
  const auto problem = from.debugger.trace() ? from.debugger.trace()->problem() : nullptr;
  const rules::StrategyContext context =
      problem ? problem->context
              : rules::StrategyContext{settings.ranks, rules::CandidateSet::Optimum, settings.sequenceParallel};
  const rules::LayerStrategies options = rules::layerStrategies(graph, node, layer, context);
  const auto taken = from.debugger.strategyOf(node);
  LayerSections sections;
  if (taken) sections.strategy = toQ(rules::toText(*taken));
  if (taken) sections.split = effectiveStrategy(from, *taken, layer.weight, context.worldSize);

  const auto chosen =
      std::find_if(options.offered.begin(), options.offered.end(), [&](const rules::LayerStrategy& option) {
        return taken && option.strategy == *taken &&
               from.debugger.placementOf(layer.input) == MaybePlacement(option.input);
      });
  if (layer.weight.isValid()) {
    const graph::Value& weight = graph.value(layer.weight);
    QString line = QStringLiteral("%1 %2").arg(valueLink(graph, layer.weight), mono(shapeText(weight.type.shape)));
    if (chosen != options.offered.end())
      if (const auto local = chosen->weight.localShape(weight.type.shape, context.worldSize); local)
        line += QStringLiteral(" → %1 per rank").arg(mono(shapeText(*local)));
    sections.html += heading(QStringLiteral("Weight"), colors) + line;
  }

  addDemands(sections, from, node, options);
  return sections;
}

DecisionText moduleText(const DecisionSources& from, ScopeId scope, const TextColors& colors) {
  const graph::Graph& graph = *from.opened.graph();
  const std::string& path = graph.scope(scope).path;
  DecisionText text;
  text.title = path.empty() ? QStringLiteral("the model") : shortScope(path, 3);
  int operators = 0, layers = 0;
  QStringList lines;
  for (const NodeId node : idRange<NodeId>(graph.nodes.size())) {
    const graph::Node& n = graph.node(node);
    const std::string& own = graph.scope(n.scope).path;
    if (n.kind != graph::NodeKind::Call || !(path.empty() || own == path || own.starts_with(path + "."))) continue;
    ++operators;
    if (!graph::layerShape(graph, node)) continue;
    if (++layers > 40) continue;
    const auto strategy = from.debugger.strategyOf(node);
    lines << QStringLiteral("%1 <b>%2</b> %3")
                 .arg(link(node, shortScope(graph::layerName(graph, node), 2)),
                      strategy ? escaped(rules::toText(*strategy)) : QStringLiteral("–"),
                      n.results.empty() ? QString() : chip(from.debugger.placementOf(n.results[0]), ranksOf(from)));
  }
  text.html = QStringLiteral("<p>%1</p>")
                  .arg(QStringLiteral("Module %1: %2, including %3.")
                           .arg(scopeLink(graph, scope), countedText(static_cast<std::uint64_t>(operators), "operator"),
                                countedText(static_cast<std::uint64_t>(layers), "layer")));
  if (!graph.scope(scope).className.empty()) text.html += quiet(escaped(graph.scope(scope).className), colors);
  if (!lines.isEmpty()) text.html += heading(QStringLiteral("Layers"), colors) + lineList(lines);
  if (layers > 40) text.html += quiet(QStringLiteral("… and %1 more in the layers table.").arg(layers - 40), colors);
  return text;
}

bool hasSolution(const DecisionSources& from) { return from.plans.solved() && from.plans.solved()->result.solution; }

bool hasRegrets(const DecisionSources& from) {
  const auto& analysis = from.answers.analysis();
  return analysis && analysis->node == from.selection.focus().node && analysis->regrets && !analysis->regrets->empty();
}

QString planSections(const DecisionSources& from, const TextColors& colors) {
  const graph::Graph& graph = *from.opened.graph();
  QString html;
  const auto& analysis = from.answers.analysis();
  if (!analysis || analysis->node != from.selection.focus().node) return html;
  if (!analysis->why.empty())
    html += heading(QStringLiteral("Why the plan places it so"), colors) + whyChain(analysis->why, graph, colors);
  if (hasRegrets(from))
    html += heading(QStringLiteral("Extra cost of each choice in its best plan"), colors) +
            regretTable(*analysis->regrets, ranksOf(from), from.plans.solved()->spec.cost.slackPercent, colors);
  return html;
}

QString candidateSection(const DecisionSources& from, const TextColors& colors) {
  const auto& decision = from.debugger.decision();
  if (!decision || decision->node != from.selection.focus().node || decision->candidates.empty()) return {};
  QStringList rows;
  for (const solve::CandidateEntry& candidate : decision->candidates)
    rows << candidateRow(candidate, ranksOf(from), hasSolution(from) && !hasRegrets(from), colors);
  return heading(QStringLiteral("Candidates at this step, in order"), colors) + table(rows);
}

/// The placements still possible for each result, and the reasons why others are not.
QString domainSection(const DecisionSources& from, const TextColors& colors) {
  constexpr std::size_t kMostShown = 24;
  const graph::Graph& graph = *from.opened.graph();
  const auto found = from.debugger.domains();
  if (!found || found->node != from.selection.focus().node) return {};
  QString html;
  for (const solve::LiveDomain& domain : found->domains) {
    const QString what = found->domains.size() == 1
                             ? QStringLiteral("Domain at this step")
                             : QStringLiteral("Domain of %1 at this step").arg(escaped(graph.value(domain.value).name));
    QStringList open;
    for (const rules::Placement& placement : domain.open) open << chip(placement, ranksOf(from));
    const QString is = domain.isAssigned     ? QStringLiteral("Placed: %1")
                       : domain.open.empty() ? QStringLiteral("No placement is left: this is a dead end.")
                                             : QStringLiteral("Still possible: %1");
    html += heading(what, colors) + QStringLiteral("<p>%1</p>").arg(open.isEmpty() ? is : is.arg(open.join(' ')));
    QStringList rows;
    for (const solve::GonePlacement& gone : domain.gone) {
      if (rows.size() == static_cast<int>(kMostShown)) break;
      rows << row({cell(chip(gone.placement, ranksOf(from))), cell(quiet(sentenceHtml(gone.why, graph), colors), 3)});
    }
    html += table(rows);
    if (domain.gone.size() > kMostShown)
      html += quiet(QStringLiteral("… and %1 more").arg(domain.gone.size() - kMostShown), colors);
    if (!domain.isComplete)
      html += quiet(QStringLiteral("There are too many combinations to list all placements."), colors);
  }
  return html;
}

/// Sections about the plan and about the step. The one the user looks at is first.
QString choiceSections(const DecisionSources& from, const TextColors& colors) {
  const auto& state = from.debugger.state();
  const bool isUnderWay = state && state->step < state->size;
  const QString atStep = candidateSection(from, colors) + domainSection(from, colors);
  const QString inPlan = planSections(from, colors);
  return isUnderWay ? atStep + inPlan : inPlan + atStep;
}

/// Placements that the user may demand for a value: replicated, and split on each dimension that divides.
QStringList placementsFor(const graph::Shape& shape, int ranks, bool onlyDividing) {
  QStringList texts{QStringLiteral("R")};
  for (std::size_t dim = 0; dim < shape.size(); ++dim) {
    const auto split = rules::Placement::split(static_cast<int>(dim));
    if (!onlyDividing || split.localShape(shape, ranks)) texts << toQ(split.text());
  }
  return texts;
}

void addValueDemands(DecisionText& text, const DecisionSources& from, const Focus& focus) {
  const graph::Graph& graph = *from.opened.graph();
  if (graph.node(focus.node).kind != graph::NodeKind::Call || !focus.value.isValid()) return;
  const graph::Value& value = graph.value(focus.value);
  for (const QString& placement : placementsFor(value.type.shape, from.settings.spec().ranks, true)) {
    addDemand(text.pins, from, placement, QStringLiteral("%1=%2").arg(toQ(value.name), placement));
    addDemand(text.forbids, from, placement, QStringLiteral("%1!=%2").arg(toQ(value.name), placement));
  }
}

void addPlacementQuestions(std::vector<WhyNotTarget>& questions, const DecisionSources& from, const Focus& focus) {
  if (!focus.value.isValid()) return;
  const rules::Placement& lies = from.plans.solved()->result.solution->of(focus.value);
  const graph::Shape& shape = from.opened.graph()->shapeOf(focus.value);
  for (const QString& placement : placementsFor(shape, from.settings.spec().ranks, false))
    if (const auto question = WhyNotTarget::parse(placement); question && placement != toQ(lies.text()))
      questions.push_back(*question);
}

/// Placements of the gradients of the node's results and of a layer's parameters.
QString gradientSection(const DecisionSources& from, NodeId id, const TextColors& colors) {
  const auto& plan = from.plans.plan();
  if (!plan || !plan->backward) return {};
  const graph::Graph& graph = *from.opened.graph();
  std::vector<ValueId> values = graph.node(id).results;
  if (const auto layer = graph::layerShape(graph, id)) {
    for (const ValueId parameter : {layer->weight, layer->bias, layer->down})
      if (parameter.isValid()) values.push_back(parameter);
  }
  QStringList lines;
  for (const ValueId value : values) {
    const std::string text = plan::gradientText(*plan, value);
    if (!text.empty()) lines << QStringLiteral("%1: %2").arg(mono(toQ(graph.value(value).name)), escaped(text));
  }
  return lines.isEmpty() ? QString() : heading(QStringLiteral("Gradients in training"), colors) + lineList(lines);
}

QString assignedLine(const DecisionSources& from, NodeId node) {
  const auto& state = from.debugger.state();
  if (!state || node.index() >= state->assignedAt.size()) return {};
  const StepId at = state->assignedAt[node.index()];
  return at == kNoStep ? QStringLiteral("not assigned at this step")
                       : QStringLiteral("set at step %1").arg(stepLink(at + 1));
}

}  // namespace

LikeLayers layersLike(const graph::Graph& graph, NodeId layer) {
  const auto shape = graph::layerShape(graph, layer);
  if (!shape) return {};
  const std::string pattern = solve::withoutIndices(graph::layerName(graph, layer));
  const auto pin = solve::Pin::parse(pattern + "=replicated");
  if (!pin) return {};
  const auto weightOf = [&](const graph::LayerShape& other) {
    return other.weight.isValid() ? graph.shapeOf(other.weight) : graph::Shape{};
  };
  // A pattern covers everything it matches. If other layers match too, it would demand more than the user asked for.
  const std::vector<NodeId> matched = solve::targetsOf(*pin, graph).layers;
  for (const NodeId node : matched)
    if (const auto other = graph::layerShape(graph, node);
        !other || other->kind != shape->kind || weightOf(*other) != weightOf(*shape))
      return {};
  return {pattern, matched.size()};
}

DecisionText decisionText(const DecisionSources& from, const TextColors& colors) {
  const Focus& focus = from.selection.focus();
  if (!from.opened.graph()) return {};
  if (!focus.node.isValid()) return focus.scope.isValid() ? moduleText(from, focus.scope, colors) : DecisionText{};
  const graph::Graph& graph = *from.opened.graph();
  const graph::Node& node = graph.node(focus.node);
  DecisionText text;
  text.title = nodeName(graph, focus.node);

  const std::string op = graph.opName(node);
  text.html = QStringLiteral("<p><b>%1</b> %2<br>%3 %4</p>")
                  .arg(nodeKindText(graph, focus.node), quiet(op.empty() ? QString() : escaped(op), colors),
                       quiet(QStringLiteral("in"), colors), scopeLink(graph, node.scope));
  if (const std::string& source = graph.sourceOf(node); !source.empty())
    text.html += QStringLiteral("<p>%1 %2</p>").arg(quiet(QStringLiteral("Source"), colors), mono(escaped(source)));
  for (const ValueId result : node.results) {
    const graph::Value& value = graph.value(result);
    const auto placement = from.debugger.placementOf(result);
    text.html += QStringLiteral("<p>%1 %2 &nbsp;%3 %4</p>")
                     .arg(mono(shapeText(value.type.shape)), escaped(graph::toText(value.type.dtype)),
                          chip(placement, ranksOf(from)), placement ? describe(placement, ranksOf(from)) : QString());
  }
  if (const QString assigned = assignedLine(from, focus.node);
      !assigned.isEmpty() && node.kind == graph::NodeKind::Call && !from.debugger.decision())
    text.html += QStringLiteral("<p>%1</p>").arg(assigned);

  const auto& decision = from.debugger.decision();
  if (decision && decision->node == focus.node)
    for (const solve::Sentence& sentence : decision->sentences)
      text.html += QStringLiteral("<p>%1</p>").arg(sentenceHtml(sentence, graph));
  text.html += choiceSections(from, colors);
  if (const auto layer = graph::layerShape(graph, focus.node)) {
    LayerSections sections = layerSections(from, focus.node, *layer, colors);
    if (!sections.split.isEmpty()) text.title += QStringLiteral(" · ") + sections.split;
    text.html += sections.html;
    text.pins = std::move(sections.pins);
    text.forbids = std::move(sections.forbids);
    text.questions = std::move(sections.questions);
  } else {
    addValueDemands(text, from, focus);
  }
  if (hasSolution(from))
    addPlacementQuestions(text.questions, from, focus);
  else
    text.questions.clear();
  text.html += gradientSection(from, focus.node, colors);
  QStringList inputs, users;
  for (const ValueId operand : graph::operandsOf(node)) inputs << valueLine(from, operand);
  for (const ValueId result : node.results)
    for (const NodeId user : graph.value(result).users)
      if (!graph.node(user).results.empty()) users << valueLine(from, graph.node(user).results.front());
  if (!inputs.isEmpty()) text.html += heading(QStringLiteral("Inputs"), colors) + lineList(inputs);
  if (!users.isEmpty()) text.html += heading(QStringLiteral("Used by"), colors) + lineList(users.mid(0, 24));
  if (users.size() > 24) text.html += quiet(QStringLiteral("… and %1 more").arg(users.size() - 24), colors);
  return text;
}

}  // namespace cleave::views
