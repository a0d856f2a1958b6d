// The window and the session it shows. Wires; what they do lives in views/.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <QApplication>
#include <QSettings>
#include <QStandardPaths>
#include <QTimer>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <thread>

#include "base/ending_signals.h"
#include "base/files.h"
#include "base/secret.h"
#include "base/standard_streams.h"
#include "base/version.h"
#include "views/base/text.h"
#include "views/graph/layout/layout_worker.h"
#include "views/window/main_window.h"
#include "views/window/script.h"

namespace {

using namespace cleave;

constexpr std::int64_t kMaxScriptBytes = 1 << 20;

struct Options {
  std::string model, script, screenshots;
};

bool hasArgument(int argc, char** argv, std::string_view wanted) {
  for (int i = 1; i < argc; ++i)
    if (argv[i] == wanted) return true;
  return false;
}

/// Qt ends the program without a word to act on when there is no display; say it first, and let scripts do without one.
bool choosePlatform(int argc, char** argv) {
  const auto isSet = [](const char* name) { return std::getenv(name) && *std::getenv(name); };
  if (isSet("QT_QPA_PLATFORM") || isSet("DISPLAY") || isSet("WAYLAND_DISPLAY")) return true;
  if (!hasArgument(argc, argv, "--script")) return false;
  setenv("QT_QPA_PLATFORM", "offscreen", 1);
  return true;
}

/// Who ends the program from outside has ranks stopped and temporary files removed, as who closes the window. A second
/// signal waits for nothing. `ending`: of blockEndingSignals.
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
  fmt::print(stderr, "cleave: {}\n", error.message);
  return exitCode(error.code);
}

int runScript(views::MainWindow& window, const Options& options) {
  const auto text = readTextFile(options.script, kMaxScriptBytes);
  if (!text) return fail(text.error());
  auto commands = views::parseScript(views::toQ(*text));
  if (!commands) return fail({commands.error().code, fmt::format("{}, {}", options.script, commands.error().message)});
  views::ScriptRunner runner(window, std::move(*commands), views::toQ(options.screenshots));
  return runner.run();
}

}  // namespace

int main(int argc, char** argv) {
  hideSecretsOfEnvironment();
  holdStandardStreams();
  failWritesInsteadOfEnding();
  if (hasArgument(argc, argv, "--layout-worker")) return views::layoutWorkerMain();

  CLI::App cli("Shows how a Transformer splits across GPUs, why, and whether it works.", "cleave");
  Options options;
  std::string platform;
  cli.set_version_flag("--version", std::string(cleave::version()));
  cli.add_option("model", options.model, "Model folder, exported program (.pt2), plan or recorded search to open");
  cli.add_option("--script", options.script, "Drive the window by this file, one command a line, then end");
  cli.add_option("--screenshot", options.screenshots, "Folder for the script's screenshots")->needs("--script");
  cli.add_option("--platform", platform, "Qt platform, as QT_QPA_PLATFORM");
  try {
    cli.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return cli.exit(error) == 0 ? 0 : exitCode(ErrorCode::BadUsage);
  }
  if (!platform.empty()) setenv("QT_QPA_PLATFORM", platform.c_str(), 1);
  if (!choosePlatform(argc, argv))
    return fail({ErrorCode::Environment,
                 "There is no display: set DISPLAY, or drive the window with --script (which draws offscreen)."});

  const sigset_t ending = blockEndingSignals();
  QApplication app(argc, argv);
  QApplication::setOrganizationName(QStringLiteral("cleave"));
  QApplication::setApplicationName(QStringLiteral("cleave"));
  QApplication::setApplicationVersion(QString::fromUtf8(cleave::version()));
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
  if (!views::Worker::hasLeftBehind()) return code;
  std::fflush(nullptr);
  std::_Exit(code);  // a thread still works on what destructors would take apart
}
