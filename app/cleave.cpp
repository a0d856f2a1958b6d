// The window and its session. This file only connects them; views/ has the code.
#include <fmt/format.h>

#include <unistd.h>
#include <CLI/CLI.hpp>
#include <QApplication>
#include <QFileInfo>
#include <QScreen>
#include <QSettings>
#include <QStandardPaths>
#include <QTimer>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <thread>

#include "about/problem_report.h"
#include "base/ending_signals.h"
#include "base/files.h"
#include "base/output_file.h"
#include "base/secret.h"
#include "base/standard_streams.h"
#include "base/terminal_text.h"
#include "base/version.h"
#include "options/standard_flags.h"
#include "options/window_options.h"
#include "views/base/text.h"
#include "views/graph/layout/layout_worker.h"
#include "views/window/main_window.h"
#include "views/window/script.h"
#include "views/window/script_manual.h"

namespace {

using namespace cleave;

constexpr std::int64_t kMaxScriptBytes = 1 << 20;

bool hasArgument(int argc, char** argv, std::string_view wanted) {
  for (int i = 1; i < argc; ++i)
    if (argv[i] == wanted) return true;
  return false;
}

/// Without a display Qt aborts with an unhelpful message. This reports the problem first, and lets scripts run without
/// a display.
bool choosePlatform(int argc, char** argv) {
  const auto isSet = [](const char* name) { return std::getenv(name) && *std::getenv(name); };
  if (isSet("QT_QPA_PLATFORM") || isSet("DISPLAY") || isSet("WAYLAND_DISPLAY")) return true;
  if (!hasArgument(argc, argv, "--script")) return false;
  setenv("QT_QPA_PLATFORM", "offscreen", 1);
  return true;
}

/// A signal that ends the program stops the ranks and removes temporary files, as closing the window does. A second
/// signal exits at once. `ending`: from blockEndingSignals.
void endOnSignals(views::Session& session, const sigset_t& ending) {
  std::thread([&session, ending] {
    int received = 0;
    sigwait(&ending, &received);
    const int code = 128 + received;
    const auto end = [&session, code] {
      session.shutdown();
      std::fflush(nullptr);
      std::_Exit(code);
    };
    QMetaObject::invokeMethod(&session, end, Qt::QueuedConnection);
    sigwait(&ending, &received);
    std::_Exit(code);
  }).detach();
}

int fail(const Error& error) {
  fmt::print(stderr, "cleave: {}\n", terminalText(error.message));
  return exitCode(error.code);
}

/// Qt derives the folders for settings and runs from these names.
void nameApplication() {
  QCoreApplication::setOrganizationName(QStringLiteral("cleave"));
  QCoreApplication::setApplicationName(QStringLiteral("cleave"));
  QCoreApplication::setApplicationVersion(QString::fromUtf8(version()));
}

std::vector<about::Component> ownComponents() { return {{"Qt", qVersion()}, {"Graphviz", views::graphvizVersion()}}; }

/// The values of settings that cannot contain a path; for the others only their presence.
about::ReportSection settingsSection() {
  const QSettings settings;
  about::ReportSection section{"Settings of the window", {}};
  for (const QString& key : settings.allKeys()) {
    if (!key.startsWith(QLatin1String("solve/")) && key != QLatin1String("window/dark")) continue;
    const QString value = settings.value(key).toString();
    section.lines.push_back(
        fmt::format("{}: {}", views::toStd(key), value.contains(QLatin1Char('/')) ? "a path" : views::toStd(value)));
  }
  section.lines.push_back(
      fmt::format("recent files: {}", settings.value(QStringLiteral("recent")).toStringList().size()));
  return section;
}

about::ReportSection screensSection() {
  about::ReportSection section{"Screens", {"Qt platform: " + views::toStd(QGuiApplication::platformName())}};
  for (const QScreen* screen : QGuiApplication::screens()) {
    const QSize size = screen->size();
    section.lines.push_back(fmt::format("{} x {}, {} bits, {:.0f} dots an inch, scaled by {:.2f}", size.width(),
                                        size.height(), screen->depth(), screen->logicalDotsPerInch(),
                                        screen->devicePixelRatio()));
  }
  return section;
}

/// Qt's part comes last, because Qt aborts if there is a display that it cannot use.
int report(int argc, char** argv) {
  nameApplication();
  fmt::print("{}{}", about::problemReport("cleave", ownComponents()), about::toText(settingsSection()));
  std::fflush(stdout);
  if (!choosePlatform(argc, argv)) {
    fmt::print("{}", about::toText({"Screens", {"no display: DISPLAY and WAYLAND_DISPLAY are not set"}}));
    return 0;
  }
  const QGuiApplication app(argc, argv);
  fmt::print("{}", about::toText(screensSection()));
  return 0;
}

/// A reader may close the pipe (`| head`): that is not an error to print.
int printScriptManual() {
  errno = 0;
  const auto written = writeTo(STDOUT_FILENO, "to standard output", views::scriptManual());
  if (written) return 0;
  return errno == EPIPE ? exitCode(written.error().code) : fail(written.error());
}

int runScript(views::MainWindow& window, const options::WindowOptions& options) {
  const auto text = readTextFile(options.script, kMaxScriptBytes);
  if (!text) return fail(text.error());
  auto commands = views::parseScript(views::toQ(*text));
  if (!commands) return fail({commands.error().code, fmt::format("{}, {}", options.script, commands.error().message)});
  views::ScriptRunner runner(window, std::move(*commands), views::toQ(options.screenshots),
                             QFileInfo(views::toQ(options.script)).absolutePath());
  return runner.run();
}

}  // namespace

int main(int argc, char** argv) {
  hideSecretsOfEnvironment();
  holdStandardStreams();
  failWritesInsteadOfEnding();
  if (hasArgument(argc, argv, "--layout-worker")) return views::layoutWorkerMain();

  CLI::App cli;
  options::WindowOptions options;
  options::declareWindow(cli, options);
  options::addVersionFlag(cli, ownComponents);
  bool reports = false;
  cli.add_flag(options::kReportFlag, reports, options::kReportHelp);
  try {
    cli.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return cli.exit(error) == 0 ? 0 : exitCode(ErrorCode::BadUsage);
  }
  if (options.printsScriptManual) return printScriptManual();
  if (!options.platform.empty()) setenv("QT_QPA_PLATFORM", options.platform.c_str(), 1);
  if (reports) return report(argc, argv);
  if (!choosePlatform(argc, argv))
    return fail({ErrorCode::Environment, "No display found. Set DISPLAY, or use --script, which draws offscreen."});

  const sigset_t ending = blockEndingSignals();
  nameApplication();
  QApplication app(argc, argv);
  const bool isScript = !options.script.empty();
  const bool isDark = !isScript && QSettings().value(QStringLiteral("window/dark")).toBool();
  views::applyTheme(isDark);
  views::Session session;
  session.runs().history().keepIn(QStandardPaths::writableLocation(QStandardPaths::AppDataLocation) +
                                  QStringLiteral("/runs"));
  endOnSignals(session, ending);
  views::MainWindow window(session, !isScript);
  if (isDark) window.setDarkTheme(true);
  window.show();
  if (!isScript && !options.model.empty())
    QTimer::singleShot(0, &window, [&] { window.openPath(views::toQ(options.model)); });
  const int code = isScript ? runScript(window, options) : QApplication::exec();
  session.shutdown();
  if (!views::Worker::hasAbandonedThread()) return code;
  std::fflush(nullptr);
  std::_Exit(code);  // a thread still uses objects that destructors would destroy
}
