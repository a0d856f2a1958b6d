// The window: what one step of the search costs, from the key to the painted frame.
#include <time.h>

#include <QApplication>
#include <QTest>

#include "base/result.h"
#include "tests/bench/bench.h"
#include "tests/support/session_window.h"
#include "views/window/graph_area.h"
#include "views/window/main_window.h"

namespace {

using namespace cleave;
using namespace cleave::views;
using namespace cleave::views::testing;

constexpr int kSteps = 200;

/// Milliseconds that this thread has computed, whatever else the machine does.
double threadMs() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) / 1e6;
}

void waitUntil(const std::function<bool()>& isDone) {
  while (!isDone()) QCoreApplication::processEvents(QEventLoop::AllEvents, 5);
}

void settle(MainWindow& window) {
  waitUntil([&] { return window.isSettled(); });
  QTest::qWait(150);  // tables gather bursts of steps
}

/// F10, until the new state is there and painted.
void stepOnce(MainWindow& window) {
  Session& session = window.session();
  const StepId wanted = session.debugger().wantedStep() + 1;
  QTest::keyClick(&window, Qt::Key_F10);
  waitUntil([&] { return session.debugger().state() && session.debugger().state()->step == wanted; });
  QCoreApplication::sendPostedEvents();
  QCoreApplication::processEvents();
}

void stepThrough(bench::Bench& bench, MainWindow& window, const std::string& panel) {
  window.raiseDock(QString::fromStdString(panel));
  window.session().debugger().seek(window.session().debugger().stepCount() / 3);
  settle(window);
  const double before = threadMs();
  bench.measure(
      panel + "_f10_ms", [&] { stepOnce(window); }, kSteps);
  QTest::qWait(150);
  bench.report(panel + "_f10_gui_cpu_ms", (threadMs() - before) / kSteps);
}

}  // namespace

BENCH_CASE("window/step-126-layers") {
  qputenv("QT_QPA_PLATFORM", "offscreen");
  int count = 1;
  char name[] = "cleave-bench";
  char* arguments[] = {name, nullptr};
  QApplication app(count, arguments);
  SessionWindow window;
  window.resize(1400, 900);
  window.show();
  window.session().settings().setEngine(solve::Engine::Reference);
  window.openPath(QStringLiteral(CLEAVE_SOURCE_DIR "/tests/data/models/llama-126-layers"));
  waitUntil([&] { return window.session().plans().plan() && window.isSettled(); });
  for (const char* panel : {"Layers", "Nodes", "Search"}) stepThrough(bench, window, panel);
}
