#include "views/window/script_actions.h"

#include <QDir>
#include <QFileInfo>

#include "graph/layers.h"
#include "pipeline/session/session_file.h"
#include "views/base/text.h"
#include "views/window/graph_area.h"
#include "views/window/script_values.h"

namespace cleave::views {

ScriptActions::ScriptActions(MainWindow& window, ScriptJobs& jobs, QString folder, QString beside)
    : m_window(window),
      m_session(window.session()),
      m_jobs(jobs),
      m_folder(std::move(folder)),
      m_beside(std::move(beside)) {}

Result<void> ScriptActions::open(const QStringList& values) {
  const QString& path = values[0];
  const QString ours = QDir(m_beside).filePath(path);
  const bool isBeside = !m_beside.isEmpty() && !QFileInfo::exists(path) && QFileInfo::exists(ours);
  m_window.openPath(isBeside ? ours : path);
  return {};
}

Result<void> ScriptActions::openSample(const QStringList& values) {
  const auto& samples = m_window.samples();
  if (!samples) return tl::unexpected<Error>(samples.error());
  std::vector<std::string> names;
  for (const pipeline::Sample& sample : *samples) {
    if (toQ(sample.name) == values[0]) return m_session.openSample(sample), Result<void>();
    names.push_back(sample.name);
  }
  return fail(ErrorCode::Negative, "unknown sample \"{}\"; use {}", toStd(values[0]), settings::orText(names));
}

/// Like File ▸ Save Session.
Result<void> ScriptActions::saveSession(const QStringList& values) {
  CLEAVE_TRY(const QString file, outputFile(values[0]));
  m_session.save(file, m_window.graphArea().savedView());
  return {};
}

Result<void> ScriptActions::checkSession(const QStringList& values) {
  CLEAVE_TRY(const QString file, outputFile(values[0]));
  const auto written = pipeline::readSession(toStd(file));
  return written ? Result<void>() : fail(ErrorCode::Environment, "{} was not written", toStd(file));
}

Result<void> ScriptActions::solve(const QStringList& values) {
  pipeline::PlanSettings asked = m_session.settings().request();
  const std::string device = asked.device;
  for (const KeyValue& pair : keyValues(values[0])) CLEAVE_TRY_VOID(readSolveValue(pair, asked));
  if (asked.device != device) {
    CLEAVE_TRY_VOID(m_session.settings().setDeviceProfile(toQ(asked.device)));
    asked.plan.cost.profile = m_session.settings().spec().cost.profile;
  }
  if (asked.plan.dropout && !asked.plan.cost.isTraining)
    return fail(ErrorCode::BadUsage, "dropout=on applies to training: add train=on, or leave it out.");
  m_session.settings().apply(asked.plan);  // solves
  return {};
}

Result<void> ScriptActions::pin(const QStringList& values) { return m_session.settings().addPin(values[0]); }

Result<void> ScriptActions::showBranch(const QStringList& values) {
  const QString& which = values[0];
  if (m_session.plans().branches().size() < 2 && which != QLatin1String("A"))
    return fail(ErrorCode::Negative, "there is no branch B; change a setting and solve first");
  if (which == QLatin1String("keep"))
    m_session.plans().keepBranch();
  else if (which == QLatin1String("drop"))
    m_session.plans().dropBranch();
  else
    m_session.plans().showBranch(which == QLatin1String("B") ? 1 : 0);
  return {};
}

Result<void> ScriptActions::applyRemedy(const QStringList& values) {
  const std::size_t number = values[0].toUInt();
  const auto remedies = m_session.answers().remedies();
  const std::size_t count = remedies ? remedies->offers.size() : 0;
  if (number > count)
    return fail(ErrorCode::Negative, "there is no remedy {}; the number of remedies is {}", number, count);
  m_session.plans().applyChange(remedies->offers[number - 1].change);
  return {};
}

Result<void> ScriptActions::applyFit(const QStringList& values) {
  const std::size_t number = values[0].toUInt();
  const auto remedies = m_session.answers().remedies();
  const std::size_t count = remedies && remedies->fits ? remedies->fits->found.size() : 0;
  if (number > count) return fail(ErrorCode::Negative, "there is no fit {}; the number of fits is {}", number, count);
  m_session.plans().applyFit(remedies->fits->found[number - 1]);
  return {};
}

Result<void> ScriptActions::computeFront(const QStringList&) {
  m_session.answers().computeFront();
  return {};
}

Result<void> ScriptActions::checkFront(const QStringList&) {
  const auto& front = m_session.answers().front();
  return !front || front->failure.isEmpty() ? Result<void>() : fail(ErrorCode::Negative, "{}", toStd(front->failure));
}

Result<void> ScriptActions::computeWorldSizes(const QStringList&) {
  m_session.answers().computeWorldSizes();
  return {};
}

Result<void> ScriptActions::askWhyNot(const QStringList& values) {
  CLEAVE_TRY_VOID(focus(values[0]));
  const std::string wanted = toStd(values[1]);
  const Focus focused = m_session.selection().focus();
  if (const auto strategy = rules::parseStrategy(wanted))
    m_session.answers().askWhyNot(focused.node, *strategy);
  else if (const auto placement = rules::Placement::parse(wanted))
    m_session.answers().askWhyNot(focused.value, *placement);
  return {};
}

Result<void> ScriptActions::checkWhyNot(const QStringList&) {
  const auto& reply = m_session.answers().whyNot();
  return !reply || reply->failure.isEmpty() ? Result<void>() : fail(ErrorCode::Negative, "{}", toStd(reply->failure));
}

Result<void> ScriptActions::step(const QStringList& values) {
  const QString& text = values[0];
  const bool isRelative = text.startsWith(QLatin1Char('+')) || text.startsWith(QLatin1Char('-'));
  const qint64 number = text.toLongLong();
  const qint64 target = isRelative ? static_cast<qint64>(m_session.debugger().wantedStep()) + number : number;
  if (target < 0 || static_cast<StepId>(target) > m_session.debugger().stepCount())
    return fail(ErrorCode::Negative, "the search has steps 0 to {}, and not {}", m_session.debugger().stepCount(),
                target);
  m_session.debugger().seek(static_cast<StepId>(target));
  return {};
}

Result<void> ScriptActions::nextConflict(const QStringList&) {
  m_window.raiseDock(QStringLiteral("Conflict"));
  m_session.debugger().nextConflict();
  return {};
}

Result<void> ScriptActions::checkConflict(const QStringList&) {
  const auto& state = m_session.debugger().state();
  const bool isThere = state && state->event && state->event->type == solve::EventType::Conflict;
  return isThere ? Result<void>() : fail(ErrorCode::Negative, "this search met no conflict");
}

Result<void> ScriptActions::focus(const QString& name) {
  const graph::Graph& graph = *m_session.opened().graph();
  ValueId value = graph.findValue(toStd(name));
  // A layer's module name is accepted too: "lm_head" is its result.
  for (const graph::NodeId node : idRange<graph::NodeId>(graph.nodes.size())) {
    if (value.isValid()) break;
    if (graph::layerShape(graph, node) && graph::layerName(graph, node) == toStd(name))
      value = graph.node(node).results[0];
  }
  if (!value.isValid()) return fail(ErrorCode::Negative, "this graph has no value or layer \"{}\"", toStd(name));
  m_session.selection().focusValue(value);
  return {};
}

Result<QString> ScriptActions::outputFile(const QString& name) const {
  const QDir folder(m_folder.isEmpty() ? QStringLiteral(".") : m_folder);
  if (!folder.mkpath(QStringLiteral(".")))
    return fail(ErrorCode::Environment, "the folder {} cannot be created", toStd(folder.path()));
  return folder.filePath(name);
}

}  // namespace cleave::views
