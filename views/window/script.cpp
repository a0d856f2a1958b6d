#include "views/window/script.h"

#include "graph/layers.h"

#include <QDir>
#include <QElapsedTimer>
#include <QFileInfo>
#include <QTimer>

#include "base/quantities.h"
#include "views/base/text.h"
#include "views/run/history_page.h"
#include "views/run/run_view.h"
#include "views/window/graph_area.h"
#include "views/window/script_parse.h"
#include "views/window/script_values.h"

namespace cleave::views {

namespace {
constexpr int kWaitLimitMs = 600'000;
constexpr int kPollMs = 10;
}  // namespace

ScriptRunner::ScriptRunner(MainWindow& window, std::vector<ScriptCommand> commands, QString folder, QString beside,
                           QObject* parent)
    : QObject(parent),
      m_window(window),
      m_session(window.session()),
      m_commands(std::move(commands)),
      m_folder(std::move(folder)),
      m_beside(std::move(beside)) {
  connect(&m_session.jobs(), &Jobs::ended, this, [this](Activity what, bool succeeded, const QString& sentence) {
    const auto started = m_startedAt.find(what);
    const int line = started == m_startedAt.end() ? m_line : started->second;
    if (started != m_startedAt.end()) m_startedAt.erase(started);
    if (!succeeded && !m_failed) m_failed = {line, sentence};
  });
}

int ScriptRunner::run() {
  const auto say = [](int line, const std::string& text) {
    fmt::print(stderr, "cleave: script line {}: {}\n", line, text);
  };
  const auto workFailed = [&] {
    if (!m_failed) return false;
    say(m_failed->first, toStd(m_failed->second));
    return true;
  };
  for (const ScriptCommand& command : m_commands) {
    if (command.name == QLatin1String("quit")) break;
    m_line = command.line;
    const auto done = execute(command);
    if (workFailed()) return 1;
    if (!done) {
      say(command.line, done.error().message);
      return 1;
    }
  }
  // The end of the file stops all running work, as closing the window would.
  return workFailed() ? 1 : 0;
}

Result<void> ScriptRunner::execute(const ScriptCommand& command) {
  const QString& name = command.name;
  const auto is = [&](const char* text) { return name == QLatin1String(text); };
  if (is("open") || is("sample")) return open(command);
  if (is("wait")) return command.rest.isEmpty() ? wait() : pause(command.rest.toInt());
  if (is("shot")) return shoot(command.rest);
  if (is("theme")) return m_window.setDarkTheme(command.rest == QLatin1String("dark")), Result<void>();
  if (is("resize")) {
    m_window.resize(command.rest.section(QLatin1Char('x'), 0, 0).toInt(),
                    command.rest.section(QLatin1Char('x'), 1).toInt());
    return {};
  }
  if (is("history") || is("compare") || is("forget")) return showHistory(command);
  CLEAVE_TRY_VOID(needsModel());
  if (is("picture")) return savePicture(command.rest);
  if (is("save-session")) return saveSession(command.rest);
  if (is("solve")) return solve(command.rest);
  if (is("run")) return runRanks(command.rest);
  if (is("set-run")) return setRun(command.rest);
  if (is("bisect")) return bisect();
  if (is("view"))
    return command.rest == QLatin1String("run") ? m_window.showRun() : m_window.showGraph(), Result<void>();
  if (is("page")) {
    const QStringList pages{"overview", "lanes", "memory", "log", "history"};
    m_window.showRun();
    m_window.runView().showPage(static_cast<RunView::Page>(pages.indexOf(command.rest)));
    return {};
  }
  if (is("stop")) return m_session.jobs().stop(), wait();
  if (is("expand")) return m_window.graphArea().expand(command.rest);
  if (is("select")) return select(command.rest);
  if (is("preset")) {
    m_window.applyPreset(command.rest == QLatin1String("debug") ? MainWindow::Preset::Debug
                         : command.rest == QLatin1String("run") ? MainWindow::Preset::Run
                                                                : MainWindow::Preset::Inspect);
    return {};
  }
  if (is("panel"))
    return m_window.raiseDock(command.rest) ? Result<void>()
                                            : fail(ErrorCode::BadUsage, "unknown panel \"{}\"", toStd(command.rest));
  if (is("colour"))
    return m_window.graphArea().setColorBy(*parseColorBy(command.rest.section(QLatin1Char('='), 1))), Result<void>();
  if (is("branch")) return showBranch(command.rest);
  if (is("why-not")) return askWhyNot(command.rest);
  if (is("remedy")) return applyRemedy(command.rest.toInt());
  if (is("fit")) return applyFit(command.rest.toInt());
  if (is("world-sizes")) return m_session.answers().computeWorldSizes(), wait();
  if (is("front")) {
    CLEAVE_TRY_VOID(wait());
    m_session.answers().computeFront();
    CLEAVE_TRY_VOID(wait());
    const auto& front = m_session.answers().front();
    return !front || front->failure.isEmpty() ? Result<void>() : fail(ErrorCode::Negative, "{}", toStd(front->failure));
  }
  if (is("search")) {
    m_window.setSearchText(command.rest);
    const auto found = m_session.selection().find(command.rest);
    return found ? Result<void>() : tl::unexpected<Error>(found.error());
  }
  if (is("pin")) {
    CLEAVE_TRY_VOID(m_session.settings().addPin(command.rest));
    m_startedAt[Activity::Solving] = m_line;
    return {};
  }
  CLEAVE_TRY_VOID(needsTrace());
  if (is("step")) return step(command.rest);
  m_window.raiseDock(QStringLiteral("Conflict"));
  m_session.debugger().nextConflict();
  CLEAVE_TRY_VOID(waitUntil([this] { return !m_session.debugger().reads().isBusy(); }, "the next conflict"));
  const auto& state = m_session.debugger().state();
  const bool isThere = state && state->event && state->event->type == solve::EventType::Conflict;
  return isThere ? Result<void>() : fail(ErrorCode::Negative, "this search met no conflict");
}

Result<void> ScriptRunner::open(const ScriptCommand& command) {
  if (command.name == QLatin1String("sample")) {
    const auto& samples = m_window.samples();
    if (!samples) return tl::unexpected<Error>(samples.error());
    const auto sample = std::find_if(samples->begin(), samples->end(),
                                     [&](const pipeline::Sample& s) { return toQ(s.name) == command.rest; });
    if (sample == samples->end()) {
      std::string names;
      for (const pipeline::Sample& s : *samples) names += (names.empty() ? "" : ", ") + s.name;
      return fail(ErrorCode::Negative, "unknown sample \"{}\"; use one of {}", toStd(command.rest), names);
    }
    m_session.openSample(*sample);
  } else {
    const QString ours = QDir(m_beside).filePath(command.rest);
    const bool isBeside = !m_beside.isEmpty() && !QFileInfo::exists(command.rest) && QFileInfo::exists(ours);
    m_window.openPath(isBeside ? ours : command.rest);
  }
  m_startedAt[Activity::Opening] = m_startedAt[Activity::Solving] = m_line;
  return waitUntil([this] { return m_session.jobs().activity() != Activity::Opening; }, "the model");
}

Result<void> ScriptRunner::solve(const QString& arguments) {
  if (m_session.jobs().activity() == Activity::Running) CLEAVE_TRY_VOID(wait());
  pipeline::PlanSettings asked = m_session.settings().request();
  const std::string device = asked.device;
  for (const KeyValue& pair : keyValues(arguments)) CLEAVE_TRY_VOID(readSolveValue(pair, asked));
  if (asked.device != device) {
    CLEAVE_TRY_VOID(m_session.settings().setDeviceProfile(toQ(asked.device)));
    asked.plan.cost.profile = m_session.settings().spec().cost.profile;
  }
  m_startedAt[Activity::Solving] = m_line;
  m_session.settings().apply(asked.plan);  // solves
  return {};
}

Result<void> ScriptRunner::showBranch(const QString& which) {
  CLEAVE_TRY_VOID(wait());
  if (m_session.plans().branches().size() < 2 && which != QLatin1String("A"))
    return fail(ErrorCode::Negative, "there is no branch B; change a setting and solve first");
  if (which == QLatin1String("keep"))
    m_session.plans().keepBranch();
  else if (which == QLatin1String("drop"))
    m_session.plans().dropBranch();
  else
    m_session.plans().showBranch(which == QLatin1String("B") ? 1 : 0);
  return wait();
}

Result<void> ScriptRunner::askWhyNot(const QString& arguments) {
  CLEAVE_TRY_VOID(wait());
  CLEAVE_TRY_VOID(select(arguments.section(QLatin1Char(' '), 0, 0)));
  const std::string wanted = toStd(arguments.section(QLatin1Char(' '), 1).trimmed());
  const Focus focus = m_session.selection().focus();
  if (const auto strategy = rules::parseStrategy(wanted)) {
    m_session.answers().askWhyNot(focus.node, *strategy);
  } else if (const auto placement = rules::Placement::parse(wanted)) {
    m_session.answers().askWhyNot(focus.value, *placement);
  } else {
    return fail(ErrorCode::Negative, "\"{}\" is not a placement such as S(1) or a strategy such as column", wanted);
  }
  CLEAVE_TRY_VOID(wait());
  const auto& reply = m_session.answers().whyNot();
  if (reply && !reply->failure.isEmpty()) return fail(ErrorCode::Negative, "{}", toStd(reply->failure));
  return {};
}

Result<void> ScriptRunner::applyRemedy(int number) {
  CLEAVE_TRY_VOID(wait());
  const auto remedies = m_session.answers().remedies();
  const std::size_t count = remedies ? remedies->offers.size() : 0;
  if (static_cast<std::size_t>(number) > count)
    return fail(ErrorCode::Negative, "there is no remedy {}; the number of remedies is {}", number, count);
  m_startedAt[Activity::Solving] = m_line;
  m_session.plans().applyChange(remedies->offers[static_cast<std::size_t>(number) - 1].change);
  return {};
}

Result<void> ScriptRunner::applyFit(int number) {
  CLEAVE_TRY_VOID(wait());
  const auto remedies = m_session.answers().remedies();
  const std::size_t count = remedies && remedies->fits ? remedies->fits->found.size() : 0;
  if (static_cast<std::size_t>(number) > count)
    return fail(ErrorCode::Negative, "there is no fit {}; the number of fits is {}", number, count);
  m_startedAt[Activity::Opening] = m_startedAt[Activity::Solving] = m_line;
  m_session.plans().applyFit(remedies->fits->found[static_cast<std::size_t>(number) - 1]);
  return {};
}

Result<void> ScriptRunner::step(const QString& argument) {
  const bool isRelative = argument.startsWith(QLatin1Char('+')) || argument.startsWith(QLatin1Char('-'));
  const qint64 number = argument.toLongLong();
  const qint64 target = isRelative ? static_cast<qint64>(m_session.debugger().wantedStep()) + number : number;
  if (target < 0 || static_cast<StepId>(target) > m_session.debugger().stepCount())
    return fail(ErrorCode::Negative, "there is no step {}; the search has {}", target,
                m_session.debugger().stepCount());
  m_session.debugger().seek(static_cast<StepId>(target));
  return waitUntil([this] { return !m_session.debugger().reads().isBusy(); }, "the step");
}

Result<void> ScriptRunner::setRun(const QString& arguments) {
  RunSettings settings = m_session.runs().settings();
  for (const KeyValue& pair : keyValues(arguments)) {
    if (!readRunValue(pair, settings))
      return fail(ErrorCode::Negative, "{}={} conflicts with the other settings", toStd(pair.key), toStd(pair.value));
  }
  m_session.runs().setSettings(settings);
  return {};
}

Result<void> ScriptRunner::runRanks(const QString& arguments) {
  CLEAVE_TRY_VOID(waitUntil([this] { return m_session.jobs().activity() == Activity::Idle; }, "the previous job"));
  if (m_failed) return {};
  CLEAVE_TRY_VOID(setRun(arguments));
  m_startedAt[Activity::Running] = m_line;
  m_session.runs().run(m_session.runs().settings());
  return {};
}

Result<void> ScriptRunner::bisect() {
  CLEAVE_TRY_VOID(wait());
  if (!m_session.plans().plan()) return fail(ErrorCode::Negative, "there is no plan to compare with an unsplit run");
  m_startedAt[Activity::Running] = m_line;
  m_window.showRun();
  m_session.runs().findFirstDifference();
  return wait();
}

Result<void> ScriptRunner::showHistory(const ScriptCommand& command) {
  CLEAVE_TRY_VOID(wait());
  RunHistory& history = m_session.runs().history();
  const int number = command.rest.section(QLatin1Char(' '), 0, 0).toInt();
  const int other = command.rest.section(QLatin1Char(' '), -1).toInt();
  const int count = static_cast<int>(history.runs().size());
  if (std::max(number, other) > count)
    return fail(ErrorCode::Negative, "there is no run {}; the number of saved runs is {}", std::max(number, other),
                count);
  if (command.name == QLatin1String("forget")) {
    history.forget(static_cast<std::size_t>(number) - 1);
    return {};
  }
  m_window.showRun();
  m_window.runView().showPage(RunView::Page::History);
  const bool isPair = command.name == QLatin1String("compare");
  if (isPair ? m_window.runView().history().compare(number, other) : m_window.runView().history().showRun(number))
    return {};
  return fail(ErrorCode::Negative, "compare needs two different runs");
}

Result<void> ScriptRunner::select(const QString& name) {
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

Result<void> ScriptRunner::needsModel() {
  CLEAVE_TRY_VOID(waitUntil([this] { return m_session.jobs().activity() != Activity::Opening; }, "the model"));
  if (!m_session.opened().model()) return fail(ErrorCode::Negative, "no model is open");
  return {};
}

Result<void> ScriptRunner::needsTrace() {
  // A running search can be stepped through as soon as it is shown.
  CLEAVE_TRY_VOID(waitUntil(
      [this] {
        return (m_session.jobs().activity() != Activity::Solving || m_session.debugger().isLive()) &&
               !m_session.debugger().reads().isBusy();
      },
      "the search"));
  if (!m_session.debugger().trace()) return fail(ErrorCode::Negative, "there is no search to step through");
  return {};
}

/// Like File ▸ Save Session, after all work has ended.
Result<void> ScriptRunner::saveSession(const QString& name) {
  CLEAVE_TRY_VOID(wait());
  CLEAVE_TRY(const QString file, outputFile(name));
  m_session.save(file, m_window.graphArea().savedView());
  CLEAVE_TRY_VOID(waitUntil([this] { return !m_session.files().isBusy(); }, "the session"));
  const auto written = pipeline::readSession(toStd(file));
  return written ? Result<void>() : fail(ErrorCode::Environment, "{} was not written", toStd(file));
}

Result<QString> ScriptRunner::outputFile(const QString& name) const {
  const QDir folder(m_folder.isEmpty() ? QStringLiteral(".") : m_folder);
  if (!folder.mkpath(QStringLiteral(".")))
    return fail(ErrorCode::Environment, "the folder {} cannot be created", toStd(folder.path()));
  return folder.filePath(name);
}

Result<void> ScriptRunner::pause(int milliseconds) {
  QElapsedTimer elapsed;
  elapsed.start();
  return waitUntil([&] { return elapsed.elapsed() >= milliseconds; }, "the pause");
}

Result<void> ScriptRunner::wait() {
  return waitUntil([this] { return m_window.isSettled(); }, "the running work");
}

Result<void> ScriptRunner::waitUntil(const std::function<bool()>& isDone, const char* what) {
  QElapsedTimer elapsed;
  elapsed.start();
  // Two idle checks in a row, because a completion may start the next piece of work.
  for (int quietLooks = 0; quietLooks < 2;) {
    QEventLoop loop;
    QTimer::singleShot(kPollMs, &loop, &QEventLoop::quit);
    loop.exec();
    if (m_failed) return {};
    if (isDone())
      ++quietLooks;
    else
      quietLooks = 0;
    if (elapsed.elapsed() > kWaitLimitMs)
      return fail(ErrorCode::Negative, "timeout after {} s while waiting for {}", kWaitLimitMs / 1000, what);
  }
  return {};
}

}  // namespace cleave::views
