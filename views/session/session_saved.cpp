// A session's way into a file, and back: what was open is opened and solved again, branch by branch, and then its user
// stands where they stood.
#include <QFileInfo>

#include "pipeline/hub_model.h"
#include "pipeline/source.h"
#include "views/base/text.h"
#include "views/session/session.h"

namespace cleave::views {

namespace {
/// By its first result, which keeps its name as long as the model is captured alike.
std::string nameOf(const graph::Graph& graph, NodeId node) {
  const auto& results = graph.node(node).results;
  return results.empty() ? std::string() : graph.value(results.front()).name;
}

/// What the model is called wherever the file is opened.
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
  saved.capture = m_opened.captureOptions();
  saved.settings = m_settings.options();
  for (const Branch& branch : m_plans.branches()) saved.branches.push_back(branch.options);
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
  const auto brought = pipeline::bringModel(saved->source, hub::Wanted::Config, watcher, progress);
  const auto source = brought ? pipeline::recognise(*brought) : tl::unexpected<Error>(brought.error());
  if (!source) return fails(source.error());
  const QString found = toQ(source->path.string());
  Worker::Completion opened;
  switch (source->kind) {
    case pipeline::SourceKind::Model: {
      const auto& settings = saved->branches.empty() ? saved->settings : saved->branches.front();
      opened = loadModel(session, found, saved->capture, settings, sampleOf(*saved), true, progress);
      break;
    }
    case pipeline::SourceKind::Plan: opened = loadPlan(session, found, progress); break;
    case pipeline::SourceKind::Trace: opened = loadTrace(session, found, progress); break;
    case pipeline::SourceKind::Session:
      return fails({ErrorCode::BadInput,
                    fmt::format("{} is about {}, which is a session itself: open that.", toStd(path), toStd(found))});
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

/// After each piece of work: the next one, until all of the branches are there.
void Session::goOnRestoring(Activity what, bool hasSucceeded) {
  if (!m_restored || what == Activity::Running) return;
  if (what == Activity::Opening && std::exchange(m_restored->solvesAfterOpening, false)) return;
  const auto& wanted = m_restored->saved.branches;
  // A plan's file brings its own branch.
  const auto isThere = [this](const pipeline::SolveOptions& options) {
    return std::ranges::any_of(m_plans.branches(),
                               [&](const Branch& branch) { return isSameProblem(branch.options, options); });
  };
  std::size_t& next = m_restored->nextBranch;
  while (next < wanted.size() && isThere(wanted[next])) ++next;
  m_restored->isWhole = m_restored->isWhole && hasSucceeded;
  if (next == wanted.size()) return finishRestoring();
  showSaved(wanted[next++]);
  startSolve();
}

/// What the user does meanwhile counts: the rest of the session is left out, and said.
void Session::stopRestoring() {
  if (!m_restored) return;
  m_notices.say(tr("The session %1 was not restored to its end: open it again for all of it.").arg(m_restored->file),
                Severity::Warning);
  m_restored.reset();
}

void Session::showSaved(pipeline::SolveOptions options) {
  options.cache = m_settings.options().cache;
  m_settings.show(options);
}

void Session::finishRestoring() {
  const Restored restored = *std::exchange(m_restored, std::nullopt);
  const pipeline::SavedSession& saved = restored.saved;
  if (saved.branches.size() == 1 && m_plans.branches().size() > 1) m_plans.keepBranch();
  const bool isWhole = restored.isWhole && m_plans.branches().size() >= saved.branches.size();
  if (isWhole) m_plans.showBranch(saved.shown);
  showSaved(saved.settings);
  if (const auto& device = saved.settings.cost.profile; !pipeline::isBundled(device))
    m_settings.noteDeviceFile(device, restored.file);
  restorePlace(saved);
  m_undo.clear();
  m_notices.log(tr("Opened the session %1").arg(restored.file));
  if (!isWhole)
    m_notices.say(
        tr("A plan of the session %1 could not be made again, so that it stands here without: the log says why. "
           "Saving asks for another file.")
            .arg(restored.file),
        Severity::Warning);
  emit sessionRestored(isWhole ? restored.file : QString(), {saved.unfolded, saved.colours});
}

/// What is not in this model any more is left out, and said.
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
    lost << tr("the values of %1").arg(countedText(count, "breakpoint"));
  m_debugger.applyBreakpoints(std::move(breakpoints));
  m_debugger.visit(saved.step);
  const bool isFocused = saved.value.empty()
                             ? saved.scope.empty() || m_selection.focusScope(graph.findScope(saved.scope))
                             : m_selection.focusValue(graph.findValue(saved.value));
  if (!isFocused) lost << tr("%1, which was in focus").arg(toQ(saved.value + saved.scope));
  if (!lost.isEmpty())
    m_notices.say(tr("This model lacks %1: the session is shown without.").arg(lost.join(tr(", and "))),
                  Severity::Warning);
}

}  // namespace cleave::views
