#include "views/window/graph_area.h"

#include <QActionGroup>
#include <QBuffer>
#include <QFileInfo>
#include <QHBoxLayout>
#include <QLabel>
#include <QMenu>
#include <QPainter>
#include <QPdfWriter>
#include <QSvgGenerator>
#include <QVBoxLayout>

#include "views/base/text.h"
#include "views/graph/view/graph_view.h"
#include "views/graph/view/picture.h"
#include "views/panels/change_marks.h"
#include "views/widgets/panel_parts.h"
#include "views/window/branch_bar.h"
#include "views/window/plan_strip.h"

namespace cleave::views {

namespace {
constexpr double kZoomStep = 1.25;

/// The scope with this path, or the first one whose path ends with it ("layers.0" for "model.layers.0").
ScopeId findScope(const graph::Graph& graph, const std::string& path) {
  if (const ScopeId exact = graph.findScope(path); exact.isValid()) return exact;
  for (const ScopeId scope : idRange<ScopeId>(graph.scopes.size()))
    if (graph.scope(scope).path.ends_with("." + path)) return scope;
  return {};
}

/// With slack, a faster plan may exist, so the extra time can be negative.
HeatAmounts regretsOf(const Heat& heat) {
  HeatAmounts amounts;
  amounts.reserve(heat.smallestRegrets.size());
  for (const solve::SmallestRegret& regret : heat.smallestRegrets) {
    amounts.emplace_back();
    if (regret.kind == solve::SmallestRegret::Kind::Costs) amounts.back() = static_cast<double>(regret.extra);
  }
  return amounts;
}

HeatGaps gapsOf(const Heat& heat) {
  HeatGaps gaps;
  gaps.reserve(heat.smallestRegrets.size());
  for (const solve::SmallestRegret& regret : heat.smallestRegrets)
    gaps.push_back(regret.kind == solve::SmallestRegret::Kind::OverBudget ? HeatGap::OverBudget
                   : regret.kind == solve::SmallestRegret::Kind::NotKnown ? HeatGap::NotKnown
                                                                          : HeatGap::None);
  return gaps;
}

/// The amounts for this colouring.
HeatAmounts amountsOf(const Heat& heat, ColorBy what) {
  if (what == ColorBy::Regret) return regretsOf(heat);
  HeatAmounts amounts;
  amounts.reserve(heat.costs.size());
  for (const solve::StepCost& cost : heat.costs)
    amounts.push_back(what == ColorBy::Time     ? static_cast<double>(cost.femtoseconds())
                      : what == ColorBy::Memory ? static_cast<double>(cost.bytes())
                                                : static_cast<double>(cost.trafficBytes));
  return amounts;
}

/// The largest error of a node's results, as a fraction of the tolerance. The node of the first difference is above the
/// tolerance because its elements were compared. Digests alone may not show it.
HeatAmounts errorsOf(const pipeline::Bisection& found, const graph::Graph& graph) {
  HeatAmounts amounts(graph.nodes.size());
  for (const auto node : idRange<NodeId>(graph.nodes.size())) {
    for (const ValueId value : graph.node(node).results) {
      if (value.index() >= found.errors.size() || found.errors[value.index()] < 0) continue;
      const double error = found.errors[value.index()];
      const double tolerated = found.tolerances[value.index()];
      const double part = error == 0 ? 0 : tolerated > 0 ? error / tolerated : HUGE_VAL;
      amounts[node.index()] = std::max(amounts[node.index()].value_or(0), part);
    }
  }
  if (!found.first) return amounts;
  auto& first = amounts[graph.value(found.first->value).producer.index()];
  first = std::max(first.value_or(0), std::nextafter(1.0, 2.0));
  return amounts;
}

HeatGaps notCompared(const HeatAmounts& amounts, const graph::Graph& graph) {
  HeatGaps gaps(amounts.size());
  for (const auto node : idRange<NodeId>(amounts.size()))
    if (!amounts[node.index()] && graph.node(node).kind == graph::NodeKind::Call)
      gaps[node.index()] = HeatGap::NotCompared;
  return gaps;
}

constexpr int kLeastPathLetters = 10;
}  // namespace

GraphArea::GraphArea(Session& session, QWidget* parent)
    : QWidget(parent),
      m_session(session),
      m_breadcrumb(new QLabel),
      m_view(new GraphView),
      m_colors(new QActionGroup(this)) {
  m_breadcrumb->setContentsMargins(8, 4, 8, 4);
  m_breadcrumb->setTextFormat(Qt::RichText);
  m_breadcrumb->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Fixed);
  m_breadcrumb->setMinimumWidth(fontMetrics().averageCharWidth() * kLeastPathLetters);
  setFocusProxy(m_view);
  auto* top = new QHBoxLayout;
  top->setContentsMargins(0, 0, 0, 0);
  top->addWidget(m_breadcrumb, 1);
  m_breadcrumb->installEventFilter(this);
  top->addWidget(new BranchBar(session.plans()));
  QVBoxLayout* layout = makeColumn(this, {});
  layout->addLayout(top);
  layout->addWidget(new PlanStrip(session.opened(), session.plans(), session.jobs(), session.selection()));
  layout->addWidget(m_view, 1);
  onLink(*m_breadcrumb, [this](const Target& target) { m_session.selection().follow(target); });
  followSession();
  followView();
}

void GraphArea::followSession() {
  connect(&m_session.opened(), &OpenedModel::changed, this, &GraphArea::showModel);
  connect(&m_session.settings(), &Settings::changed, this, &GraphArea::updateBreadcrumb);
  connect(&m_session.splits(), &Splits::changed, this, &GraphArea::showSplits);
  connect(&m_session.debugger(), &Debugger::stepChanged, this, &GraphArea::showStep);
  connect(&m_session.selection(), &Selection::focusChanged, this, &GraphArea::showFocus);
  connect(&m_session.selection(), &Selection::revealRequested, this, &GraphArea::reveal);
  connect(&m_session.selection(), &Selection::followRequested, this,
          [this] { m_view->follow(m_session.selection().focus().node); });
  connect(&m_session.plans(), &Plans::planChanged, this, &GraphArea::showPlan);
  connect(&m_session.answers(), &Answers::heatChanged, this, &GraphArea::showHeat);
  connect(&m_session.plans(), &Plans::planChanged, this, [this] {
    if (m_colorBy == ColorBy::Error) showErrors();
  });
  connect(&m_session.plans(), &Plans::branchesChanged, this, &GraphArea::showChanges);
  connect(&m_session.runs(), &Runs::firstDifferenceChanged, this, [this] {
    const FirstDifference* difference = m_session.runs().firstDifference();
    if (difference && difference->found) return setColorBy(ColorBy::Error);
    if (m_colorBy == ColorBy::Error) showHeat();
  });
  connect(&m_session.debugger(), &Debugger::breakpointsChanged, this, [this] {
    std::vector<NodeId> nodes;
    for (const solve::Breakpoint& breakpoint : m_session.debugger().breakpoints())
      if (breakpoint.enabled && breakpoint.node.isValid()) nodes.push_back(breakpoint.node);
    m_view->setBreakpoints(std::move(nodes));
  });
  connect(&m_session.selection(), &Selection::hitsChanged, this,
          [this] { m_view->setSearchHits(m_session.selection().hits()); });
}

void GraphArea::followView() {
  connect(m_view, &GraphView::nodeClicked, this,
          [this](NodeId node) { byUser([&] { m_session.selection().focusNode(node); }); });
  connect(m_view, &GraphView::scopeClicked, this,
          [this](ScopeId scope) { byUser([&] { m_session.selection().focusScope(scope); }); });
  connect(m_view, &GraphView::selectionCleared, this, [this] { byUser([&] { m_session.selection().clearFocus(); }); });
  connect(m_view, &GraphView::nodeActivated, this, [this](NodeId node) {
    byUser([&] { m_session.selection().focusNode(node); });
    emit decisionWanted();
  });
  connect(m_view, &GraphView::message, &m_session.notices(), &Notices::logged);
  connect(m_view, &GraphView::contextMenuRequested, this, &GraphArea::showContextMenu);
}

/// The user clicked it on the canvas: it is visible and must not move under the pointer.
void GraphArea::byUser(const std::function<void()>& change) {
  m_isOwnChange = true;
  change();
  m_isOwnChange = false;
}

void GraphArea::showModel() {
  m_view->setSplits(m_session.splits().counts());
  updateBreadcrumb();
}

void GraphArea::showSplits(const std::vector<NodeId>& changed) {
  m_view->showSplits(changed);
  const auto& state = m_session.debugger().state();
  // The last step shows the solution, which places more than the search assigned, so it is not highlighted as a step.
  const bool isAtEnd = state && state->step == state->size, wasAtEnd = m_shown && m_shown->step == m_shown->size;
  if (!state || !m_shown || isAtEnd || wasAtEnd) return;
  const bool isUndone =
      state->step < m_shown->step || (state->event && state->event->type == solve::EventType::Backtrack);
  m_view->flash(changed, isUndone);
}

/// After showSplits, because the counts follow a step first.
void GraphArea::showStep() {
  const auto& state = m_session.debugger().state();
  m_shown = state;
  if (!state) return;
  showPlan();
  std::vector<NodeId> conflicts;
  if (state->conflict) conflicts.push_back(state->conflict->node);
  m_view->setConflictNodes(std::move(conflicts));
  // The last step shows the solution and has no current node.
  m_view->setCurrentNode(state->event && state->step != state->size ? nodeOf(*state->event) : NodeId());
}

void GraphArea::showFocus() {
  updateBreadcrumb();
  if (m_isOwnChange) return;
  const Focus& focus = m_session.selection().focus();
  if (focus.node.isValid() && focus.value.isValid())
    m_view->selectValue(focus.value);
  else if (focus.node.isValid())
    m_view->selectNode(focus.node);
  else
    m_view->selectScope(focus.scope);
}

void GraphArea::reveal() {
  if (m_isOwnChange) return;
  const Focus& focus = m_session.selection().focus();
  if (focus.node.isValid())
    m_view->reveal(focus.node);
  else if (focus.scope.isValid())
    m_view->reveal(focus.scope);
}

/// The plan's collectives belong to its end. At earlier steps other choices, or fewer, have been made.
void GraphArea::showPlan() {
  const auto state = m_session.debugger().state();
  const bool isFinal = !state || state->step == state->size;
  m_view->setPlan(isFinal ? m_session.plans().plan().get() : nullptr);
}

void GraphArea::setColorBy(ColorBy what) {
  m_colorBy = what;
  m_colors->actions().at(static_cast<int>(what))->setChecked(true);
  showHeat();
}

void GraphArea::showHeat() {
  if (!isHeat(m_colorBy)) return m_view->setColorBy(m_colorBy, {});
  if (m_colorBy == ColorBy::Error) return showErrors();
  const auto& heat = m_session.answers().heat();
  const auto& solved = m_session.plans().solved();
  if (heat) {
    const bool lacksRegret = m_colorBy == ColorBy::Regret && heat->smallestRegrets.empty();
    m_view->setColorBy(m_colorBy, amountsOf(*heat, m_colorBy),
                       lacksRegret ? QStringLiteral("needs the engine optimal: choose it and solve") : QString(),
                       m_colorBy == ColorBy::Regret ? gapsOf(*heat) : HeatGaps());
  } else if (solved && solved->result.solution) {
    m_view->setColorBy(m_colorBy, {}, QStringLiteral("computing …"));
    m_session.answers().computeHeat();
  } else {
    const bool isOpenedTrace = m_session.debugger().trace() && !solved;
    m_view->setColorBy(m_colorBy, {},
                       isOpenedTrace ? QStringLiteral("a recorded search has no amounts: solve its model")
                                     : QStringLiteral("no solution yet"));
  }
}

void GraphArea::showErrors() {
  const FirstDifference* difference = m_session.runs().firstDifference();
  const graph::Graph* graph = m_session.opened().graph();
  if (!difference || !difference->found || !graph) {
    const QString why = !difference ? QStringLiteral("not compared yet: Run ▸ Find the First Difference")
                        : difference->isPending() ? QStringLiteral("comparing …")
                                                  : difference->failure;
    return m_view->setColorBy(m_colorBy, {}, why);
  }
  const HeatAmounts amounts = errorsOf(*difference->found, *graph);
  m_view->setColorBy(m_colorBy, amounts, {}, notCompared(amounts, *graph));
}

void GraphArea::showChanges() {
  const graph::Graph* graph = m_session.opened().graph();
  const auto& diff = m_session.plans().diff();
  m_view->setChangedNodes(diff && graph ? changedNodes(*diff, *graph) : std::vector<NodeId>());
}

/// A long path keeps its scroll position until it is set again. The available width changes with the window and the
/// neighbouring widgets.
bool GraphArea::eventFilter(QObject* watched, QEvent* event) {
  if (watched == m_breadcrumb && event->type() == QEvent::Resize) updateBreadcrumb();
  return QWidget::eventFilter(watched, event);
}

void GraphArea::updateBreadcrumb() {
  const graph::Graph* graph = m_session.opened().graph();
  if (!graph) return m_breadcrumb->clear();
  QStringList names, parts;  // plain text, and with links
  const auto prepend = [&](const QString& name, const QString& part) {
    names.prepend(name);
    parts.prepend(part);
  };
  const Focus& focus = m_session.selection().focus();
  if (focus.node.isValid()) {
    const QString name = nodeName(*graph, focus.node);
    prepend(name, QStringLiteral("<b>%1</b>").arg(name.toHtmlEscaped()));
  }
  for (ScopeId scope = focus.scope; scope.isValid() && scope.index() != 0; scope = graph->scope(scope).parent) {
    const QString name = toQ(graph->scope(scope).path.substr(graph->scope(scope).path.rfind('.') + 1));
    prepend(name, link(scope, name));
  }
  prepend(m_session.title(), link(ScopeId(0), m_session.title()));
  const QString separator = QStringLiteral(" › ");
  m_breadcrumb->setToolTip(names.join(separator).toHtmlEscaped());
  // A path that is too long loses its front, because the innermost module matters most.
  QFont bold = m_breadcrumb->font();
  bold.setBold(true);
  const QFontMetrics metrics(bold);
  const int room = m_breadcrumb->contentsRect().width();
  const auto fits = [&] { return metrics.horizontalAdvance(names.join(separator)) <= room; };
  if (!fits() && names.size() > 1) names.front() = parts.front() = QStringLiteral("…");
  while (!fits() && names.size() > 2) {
    names.removeAt(1);
    parts.removeAt(1);
  }
  m_breadcrumb->setText(QStringLiteral("<style>a{text-decoration:none}</style>") + parts.join(separator));
}

void GraphArea::showContextMenu(const QPoint& position, NodeId node, ScopeId scope) {
  QMenu menu;
  if (node.isValid()) {
    m_session.selection().focusNode(node);
    menu.addAction(m_session.debugger().hasBreakpoint(node) ? QStringLiteral("Remove Breakpoint")
                                                            : QStringLiteral("Set Breakpoint"),
                   [this, node] { m_session.debugger().toggleBreakpoint(node); });
    menu.addAction(QStringLiteral("Next Change"), [this, node] { m_session.debugger().toNextChange(node); });
  } else if (scope.isValid()) {
    menu.addAction(m_view->isExpanded(scope) ? QStringLiteral("Fold") : QStringLiteral("Unfold"),
                   [this, scope] { m_view->isExpanded(scope) ? m_view->collapse(scope) : m_view->expand(scope); });
  }
  menu.addAction(QStringLiteral("Fit"), m_view, &GraphView::fit);
  menu.exec(position);
}

Result<void> GraphArea::expand(const QString& scopePath) {
  const graph::Graph* graph = m_session.opened().graph();
  if (!graph) return fail(ErrorCode::BadUsage, "No model is open");
  const ScopeId scope = findScope(*graph, toStd(scopePath));
  if (!scope.isValid()) return fail(ErrorCode::Negative, "this model has no module \"{}\"", toStd(scopePath));
  m_view->expand(scope);
  m_view->reveal(scope);
  return {};
}

SavedView GraphArea::savedView() const {
  SavedView view{{}, toStd(colorName(m_colorBy))};
  const graph::Graph* graph = m_session.opened().graph();
  if (!graph) return view;
  for (const ScopeId scope : m_view->expandedScopes()) view.unfolded.push_back(graph->scope(scope).path);
  return view;
}

/// Ignores modules that this model lacks and colours that this version does not know.
void GraphArea::restore(const SavedView& view) {
  const graph::Graph* graph = m_session.opened().graph();
  if (!graph) return;
  m_view->collapseAll();
  for (const std::string& path : view.unfolded)
    if (const ScopeId scope = graph->findScope(path); scope.isValid()) m_view->expand(scope);
  setColorBy(parseColorBy(toQ(view.colours)).value_or(ColorBy::Axis));
  if (const NodeId node = m_session.selection().focus().node; node.isValid()) m_view->reveal(node);
}

Result<QString> GraphArea::drawPicture(const QString& kind, QIODevice& out) {
  const QSizeF size = m_view->pictureSize();
  const auto paint = [this](QPainter& painter, const QRectF& area, double zoom) {
    m_view->paintPicture(painter, area, zoom);
  };
  if (kind == QLatin1String("png")) return writePng(out, size, paint);
  const auto paintOn = [&](QPaintDevice& device) -> Result<QString> {
    QPainter painter;
    if (!painter.begin(&device))
      return fail(ErrorCode::Environment, "The picture could not be drawn as {}.", toStd(kind));
    paint(painter, QRectF({}, size), 1);
    return QString();
  };
  if (kind == QLatin1String("svg")) {
    QSvgGenerator svg;
    svg.setOutputDevice(&out);
    svg.setSize(size.toSize());
    svg.setViewBox(QRectF({}, size));
    svg.setTitle(m_session.title());
    return paintOn(svg);
  }
  QPdfWriter pdf(&out);
  pdf.setPageSize(QPageSize(size, QPageSize::Point));
  pdf.setPageMargins({});
  pdf.setResolution(72);
  return paintOn(pdf);
}

Result<GraphArea::Picture> GraphArea::exportPicture(const QString& kind) {
  if (m_view->pictureSize().isEmpty())
    return fail(ErrorCode::BadUsage, "There is no picture yet. Wait for the layout.");
  if (kind != QLatin1String("svg") && kind != QLatin1String("pdf") && kind != QLatin1String("png"))
    return fail(ErrorCode::BadUsage, "The picture's ending is \".{}\". Use .svg, .pdf or .png.", toStd(kind));
  QBuffer buffer;
  buffer.open(QIODevice::WriteOnly);
  CLEAVE_TRY(const QString note, drawPicture(kind, buffer));
  return Picture{buffer.data(), note};
}

void GraphArea::addActions(QMenu& menu) {
  menu.addAction(QStringLiteral("&Fit"), QKeySequence(QStringLiteral("Ctrl+0")), m_view, &GraphView::fit);
  menu.addAction(QStringLiteral("Zoom &In"), QKeySequence::ZoomIn, this, [this] { m_view->zoomBy(kZoomStep); });
  menu.addAction(QStringLiteral("Zoom &Out"), QKeySequence::ZoomOut, this, [this] { m_view->zoomBy(1 / kZoomStep); });
  addColorActions(*menu.addMenu(QStringLiteral("&Colour by")));
  menu.addAction(QStringLiteral("&Unfold All"), QKeySequence(QStringLiteral("Ctrl+Shift+U")), m_view,
                 &GraphView::expandAll);
  menu.addAction(QStringLiteral("F&old All"), QKeySequence(QStringLiteral("Ctrl+Shift+F")), m_view,
                 &GraphView::collapseAll);
  QAction* helpers = menu.addAction(QStringLiteral("Show &Helper Operators"), QKeySequence(QStringLiteral("Ctrl+H")),
                                    this, [this] { m_view->setHelpersFolded(!m_view->areHelpersFolded()); });
  helpers->setCheckable(true);
}

void GraphArea::addColorActions(QMenu& menu) {
  for (int i = 0; i < kColorByCount; ++i) {
    const auto what = static_cast<ColorBy>(i);
    QAction* action = menu.addAction(QStringLiteral("&%1  %2").arg(i + 1).arg(colorTitle(what)), this,
                                     [this, what] { setColorBy(what); });
    action->setShortcut(QKeySequence(QStringLiteral("Alt+%1").arg(i + 1)));
    action->setObjectName(QStringLiteral("color-") + colorName(what));
    action->setCheckable(true);
    action->setChecked(what == m_colorBy);
    m_colors->addAction(action);
  }
}

bool GraphArea::isSettled() const { return m_view->isReady(); }

}  // namespace cleave::views
