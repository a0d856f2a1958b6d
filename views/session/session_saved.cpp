// Saves and restores sessions. Restoring opens the model, solves branch by branch, and returns to the user's place.
#include <QFileInfo>

#include "pipeline/session/session_file.h"
#include "pipeline/solve/devices.h"
#include "pipeline/source/hub_model.h"
#include "pipeline/source/source.h"
#include "views/base/text.h"
#include "views/session/session.h"

namespace cleave::views {

namespace {
/// The key of a node: its first result, whose name is stable for equal captures.
std::string nameOf(const graph::Graph& graph, NodeId node) {
  const auto& results = graph.node(node).results;
  return results.empty() ? std::string() : graph.value(results.front()).name;
}

/// A name of the model that is valid wherever the file is opened.
std::string sourceOf(const OpenedModel& opened) {
  const std::string hubId = pipeline::hubIdOf(toStd(opened.source()));
  return hubId.empty() ? toStd(QFileInfo(opened.source()).absoluteFilePath()) : hubId;
}
}  // namespace

pipeline::SavedSession Session::saved() const {
  pipeline::SavedSession saved;
  const graph::Graph& graph = *m_opened.graph();
  saved.source = sourceOf(m_opened);
  if (m_opened.sample()) saved.sample = m_opened.sample()->name;
  saved.input = m_opened.input();
  saved.settings = m_settings.spec();
  for (const Branch& branch : m_plans.branches()) saved.branches.push_back(branch.spec);
  saved.shown = m_plans.shownBranch();
  saved.step = m_debugger.wantedStep();
  const Focus& focus = m_selection.focus();
  if (focus.value.isValid())
    saved.value = graph.value(focus.value).name;
  else if (focus.scope.isValid())
    saved.scope = graph.scope(focus.scope).path;
  for (const solve::Breakpoint& breakpoint : m_debugger.breakpoints()) {
    auto& entry = saved.breakpoints.emplace_back(pipeline::SavedBreakpoint{breakpoint, {}});
    if (breakpoint.node.isValid()) entry.value = nameOf(graph, breakpoint.node);
    entry.what.node = {};
  }
  return saved;
}

void Session::save(const QString& file, const SavedView& view) {
  if (!m_opened.model()) return;
  pipeline::SavedSession saved = this->saved();
  saved.unfolded = view.unfolded;
  saved.colours = view.colours;
  m_files.save(file, [saved = std::move(saved), file] {
    return QByteArray::fromStdString(pipeline::toText(saved, toStd(file)));
  });
}

Worker::Completion Session::loadSession(Session* session, const QString& path, const hub::Watcher& watcher,
                                        const Progress& progress) {
  const auto fails = [session](const Error& error) -> Worker::Completion { return [=] { session->failOpen(error); }; };
  const auto saved = pipeline::readSession(toStd(path));
  if (!saved) return fails(saved.error());
  const auto brought = pipeline::resolveModel(saved->source, hub::Wanted::Config, watcher, progress);
  const auto source = brought ? pipeline::recognise(*brought) : tl::unexpected<Error>(brought.error());
  if (!source) return fails(source.error());
  const QString found = toQ(source->path.string());
  Worker::Completion opened;
  switch (source->kind) {
    case pipeline::SourceKind::Model: {
      const auto& settings = saved->branches.empty() ? saved->settings : saved->branches.front();
      opened = loadModel(session, found, saved->input, settings, sampleOf(*saved), true, progress);
      break;
    }
    case pipeline::SourceKind::Plan: opened = loadPlan(session, found, progress); break;
    case pipeline::SourceKind::Trace: opened = loadTrace(session, found, progress); break;
    case pipeline::SourceKind::Session:
      return fails({ErrorCode::BadInput, fmt::format("{} refers to {}, which is a session itself. Open that session.",
                                                     toStd(path), toStd(found))});
  }
  return [=, saved = *saved] {
    session->m_restored = Restored{path, saved, source->kind == pipeline::SourceKind::Model, 0, true};
    opened();
  };
}

std::optional<pipeline::Sample> Session::sampleOf(const pipeline::SavedSession& saved) {
  const auto samples = pipeline::bundledSamples();
  if (saved.sample.empty() || !samples) return std::nullopt;
  const auto found = std::ranges::find(*samples, saved.sample, &pipeline::Sample::name);
  return found == samples->end() ? std::nullopt : std::optional(*found);
}

/// Starts the next piece of work after each one, until all branches are restored.
void Session::goOnRestoring(Activity what, bool hasSucceeded) {
  if (!m_restored || what == Activity::Running) return;
  if (what == Activity::Opening && std::exchange(m_restored->solvesAfterOpening, false)) return;
  const auto& wanted = m_restored->saved.branches;
  // A plan's file already contains its branch.
  const auto isThere = [this](const spec::PlanSpec& spec) {
    return std::ranges::any_of(m_plans.branches(),
                               [&](const Branch& branch) { return spec::isSameProblem(branch.spec, spec); });
  };
  std::size_t& next = m_restored->nextBranch;
  while (next < wanted.size() && isThere(wanted[next])) ++next;
  m_restored->isWhole = m_restored->isWhole && hasSucceeded;
  if (next == wanted.size()) return finishRestoring();
  m_settings.show(wanted[next++]);
  startSolve();
}

/// An action of the user in between ends the restore, with a message.
void Session::stopRestoring() {
  if (!m_restored) return;
  m_notices.say(QStringLiteral("The session %1 was only partly restored. Open it again to restore all of it.")
                    .arg(m_restored->file),
                Severity::Warning);
  m_restored.reset();
}

void Session::finishRestoring() {
  const Restored restored = *std::exchange(m_restored, std::nullopt);
  const pipeline::SavedSession& saved = restored.saved;
  if (saved.branches.size() == 1 && m_plans.branches().size() > 1) m_plans.keepBranch();
  const bool isWhole = restored.isWhole && m_plans.branches().size() >= saved.branches.size();
  if (isWhole) m_plans.showBranch(saved.shown);
  m_settings.show(saved.settings);
  if (const auto& device = saved.settings.cost.profile; !pipeline::isBundled(device))
    m_settings.noteDeviceFile(device, restored.file);
  restorePlace(saved);
  m_undo.clear();
  m_notices.log(QStringLiteral("Opened the session %1").arg(restored.file));
  if (!isWhole)
    m_notices.say(QStringLiteral("A plan of this session could not be rebuilt: %1. See the log. "
                                 "Save asks for a new file.")
                      .arg(restored.file),
                  Severity::Warning);
  emit sessionRestored(isWhole ? restored.file : QString(), {saved.unfolded, saved.colours});
}

/// Reports and skips elements that the model does not have any more.
void Session::restorePlace(const pipeline::SavedSession& saved) {
  const graph::Graph& graph = *m_opened.graph();
  std::vector<solve::Breakpoint> breakpoints;
  for (const pipeline::SavedBreakpoint& entry : saved.breakpoints) {
    solve::Breakpoint breakpoint = entry.what;
    const ValueId value = entry.value.empty() ? ValueId() : graph.findValue(entry.value);
    if (value.isValid()) breakpoint.node = graph.value(value).producer;
    if (entry.value.empty() || value.isValid()) breakpoints.push_back(breakpoint);
  }
  QStringList lost;
  if (const auto count = saved.breakpoints.size() - breakpoints.size(); count > 0)
    lost << QStringLiteral("the values of %1").arg(countedText(count, "breakpoint"));
  m_debugger.applyBreakpoints(std::move(breakpoints));
  m_debugger.visit(saved.step);
  const bool isFocused = saved.value.empty()
                             ? saved.scope.empty() || m_selection.focusScope(graph.findScope(saved.scope))
                             : m_selection.focusValue(graph.findValue(saved.value));
  if (!isFocused) lost << QStringLiteral("the focused element %1").arg(toQ(saved.value + saved.scope));
  if (!lost.isEmpty())
    m_notices.say(QStringLiteral("The session was restored, but this model does not have %1.")
                      .arg(lost.join(QStringLiteral(", and "))),
                  Severity::Warning);
}

}  // namespace cleave::views
