// The window: the time to open a model, unfold a module, step, seek, pan and zoom, each until the frame is painted.
// Limits: one second to open, one frame at 60 Hz for a step, at 30 Hz for a pan.
#include <time.h>

#include <QApplication>
#include <QElapsedTimer>
#include <QJsonDocument>
#include <QJsonObject>
#include <QRandomGenerator>
#include <QTemporaryDir>
#include <QTest>
#include <QWheelEvent>

#include "base/result.h"
#include "solve/engine.h"
#include "solve/trace/recorder.h"
#include "solve/trace/trace.h"
#include "tests/bench/bench.h"
#include "tests/support/deep_program.h"
#include "tests/support/llama_graph.h"
#include "tests/support/session_window.h"
#include "views/base/text.h"
#include "views/graph/view/graph_view.h"
#include "views/window/graph_area.h"

namespace {

using namespace cleave;
using namespace cleave::views;
using namespace cleave::views::testing;

constexpr int kSteps = 200, kFrames = 60, kModules = 9;

// Milliseconds, and MiB.
constexpr double kOpenLimit = 1000, kUnfoldLimit = 50, kStepLimit = 16, kSeekLimit = 50, kFrameLimit = 33,
                 kCloseLimit = 200, kMemoryLimit = 300;

/// A program with a window and no display.
struct Program {
  Program() {
    qputenv("QT_QPA_PLATFORM", "offscreen");
    qputenv("CLEAVE_LAYOUT_WORKER", CLEAVE_BIN_DIR "/cleave");
    app = std::make_unique<QApplication>(count, arguments);
  }
  int count = 1;
  char name[13] = "cleave-bench";
  char* arguments[2] = {name, nullptr};
  std::unique_ptr<QApplication> app;
};

/// Processor time of this thread in milliseconds, independent of other load.
double threadMs() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) / 1e6;
}

double residentMiB() {
  QFile file(QStringLiteral("/proc/self/statm"));
  if (!file.open(QFile::ReadOnly)) return 0;
  return file.readAll().split(' ').value(1).toDouble() * static_cast<double>(sysconf(_SC_PAGESIZE)) / (1 << 20);
}

void waitUntil(const std::function<bool()>& isDone) {
  while (!isDone()) QCoreApplication::processEvents(QEventLoop::AllEvents, 5);
}

void settle(MainWindow& window) {
  waitUntil([&] { return window.isSettled(); });
  QTest::qWait(150);  // tables gather bursts of steps
}

void paint() {
  QCoreApplication::sendPostedEvents();
  QCoreApplication::processEvents();
}

/// Until the new state is there and painted.
void go(MainWindow& window, StepId wanted, const std::function<void()>& move) {
  move();
  const auto& state = window.session().debugger().state();
  waitUntil([&] { return state && state->step == wanted; });
  paint();
}

void stepOnce(MainWindow& window) {
  go(window, window.session().debugger().wantedStep() + 1, [&] { QTest::keyClick(&window, Qt::Key_F10); });
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

void open(bench::Bench& bench, MainWindow& window, const QString& path, double limit) {
  window.resize(1400, 900);
  window.show();
  window.session().settings().setEngine(solve::Engine::Reference);
  GraphView& view = window.graphArea().view();
  QElapsedTimer clock;
  clock.start();
  window.openPath(path);
  waitUntil([&] { return view.model() && view.isReady() && view.scene(); });
  view.viewport()->grab();
  bench.hold("open_ms", static_cast<double>(clock.elapsed()), limit);
  waitUntil([&] { return window.session().debugger().state() && window.isSettled(); });
}

/// Decoder layers one after the other, each folded again.
void unfold(bench::Bench& bench, MainWindow& window) {
  GraphView& view = window.graphArea().view();
  const graph::Graph& graph = *window.session().opened().graph();
  int layer = 1;
  ScopeId open;
  const auto frame = [&] {
    waitUntil([&] { return view.isReady(); });
    view.viewport()->grab();
  };
  std::vector<double> times;
  for (int i = 0; i < (bench.isSmoke() ? 1 : kModules); ++i, layer += 3) {
    open = graph.findScope(fmt::format("model.layers.{}", layer));
    bench::need(open.isValid(), "the model has too few layers");
    QElapsedTimer clock;
    clock.start();
    view.expand(open);
    frame();
    times.push_back(static_cast<double>(clock.nsecsElapsed()) / 1e6);
    view.collapse(open);
    frame();
  }
  bench.hold("first_unfold_ms", times.front(), kUnfoldLimit);  // with layout; the others reuse it
  std::sort(times.begin(), times.end());
  bench.hold("unfold_ms", times[times.size() / 2], kUnfoldLimit);
}

void walk(bench::Bench& bench, MainWindow& window) {
  Debugger& debugger = window.session().debugger();
  debugger.seek(debugger.stepCount() / 3);
  settle(window);
  bench.hold(
      "step_ms", kStepLimit, [&] { stepOnce(window); }, kSteps);
  QRandomGenerator random(7);
  bench.hold(
      "seek_ms", kSeekLimit,
      [&] {
        const StepId wanted = random.bounded(static_cast<quint32>(debugger.stepCount()));
        go(window, wanted, [&] { debugger.seek(wanted); });
      },
      kFrames);
}

/// Like Shift and the wheel.
void pan(GraphView& view, int by) {
  const QPointF middle = QRectF(view.viewport()->rect()).center();
  QWheelEvent event(middle, view.viewport()->mapToGlobal(middle), {}, {0, by}, Qt::NoButton, Qt::ShiftModifier,
                    Qt::NoScrollPhase, false);
  QCoreApplication::sendEvent(view.viewport(), &event);
}

void look(bench::Bench& bench, MainWindow& window) {
  GraphView& view = window.graphArea().view();
  view.expandAll();
  settle(window);
  view.zoomTo(0.5);
  int way = 1;
  bench.hold(
      "pan_ms", kFrameLimit,
      [&] {
        const QRectF before = view.visibleArea();
        pan(view, way * 80);
        way = -way;
        bench::need(view.visibleArea() != before, "the picture did not move");
        view.viewport()->repaint();
        paint();
      },
      kFrames);
  double factor = 0.9;
  bench.hold(
      "zoom_ms", kFrameLimit,
      [&] {
        if (view.zoom() * factor < 0.1 || view.zoom() * factor > 1) factor = 1 / factor;
        const double before = view.zoom();
        view.zoomBy(factor);
        bench::need(view.zoom() != before, "the picture kept its size");
        view.viewport()->repaint();
        paint();
      },
      kFrames);
  view.collapseAll();
  settle(window);
}

void useAll(bench::Bench& bench, const QString& path, double openLimit) {
  auto window = std::make_unique<SessionWindow>();
  open(bench, *window, path, openLimit);
  const graph::Graph& graph = *window->session().opened().graph();
  bench.report("nodes", graph.nodes.size());
  bench.report("events", window->session().debugger().stepCount());
  unfold(bench, *window);
  walk(bench, *window);
  look(bench, *window);
  bench.hold("resident_mib", residentMiB(), kMemoryLimit);
  QElapsedTimer clock;
  clock.start();
  window->close();
  window.reset();
  bench.hold("close_ms", static_cast<double>(clock.elapsed()), kCloseLimit);
}

/// The bundled 126-layer model with another number of layers.
QString modelOf(const QTemporaryDir& folder, int layers) {
  QFile source(QStringLiteral(CLEAVE_SOURCE_DIR "/tests/data/models/llama-126-layers/config.json"));
  bench::need(source.open(QFile::ReadOnly), "the configuration of 126 layers is missing");
  QJsonObject config = QJsonDocument::fromJson(source.readAll()).object();
  config[QLatin1String("num_hidden_layers")] = layers;
  QFile file(folder.filePath(QStringLiteral("config.json")));
  bench::need(file.open(QFile::WriteOnly), "the folder for the model cannot be written");
  file.write(QJsonDocument(config).toJson());
  return folder.path();
}

/// A recorded search over a graph with at least this number of nodes.
QString traceOf(const QTemporaryDir& folder, std::size_t nodes) {
  const std::size_t perLayer =
      (test::llamaGraph({.layers = 3})->nodes.size() - test::llamaGraph({.layers = 2})->nodes.size());
  auto problem = std::make_shared<solve::Problem>();
  problem->graph = test::llamaGraph({.layers = static_cast<std::int64_t>(nodes / perLayer) + 1, .hasLoss = false});
  problem->context.worldSize = 4;
  solve::TraceRecorder recorder(problem);
  bench::need(solve::solve(*problem, solve::Engine::Reference, recorder));
  const QString file = folder.filePath(QStringLiteral("search.trace"));
  const auto saved = solve::saveTrace(*recorder.trace(), toStd(file));
  bench::need(saved.has_value(), "the trace could not be written");
  return file;
}

}  // namespace

BENCH_CASE("window/step-126-layers") {
  const Program program;
  SessionWindow window;
  window.resize(1400, 900);
  window.show();
  window.session().settings().setEngine(solve::Engine::Reference);
  window.openPath(QStringLiteral(CLEAVE_SOURCE_DIR "/tests/data/models/llama-126-layers"));
  waitUntil([&] { return window.session().plans().plan() && window.isSettled(); });
  for (const char* panel : {"Layers", "Nodes", "Search"}) stepThrough(bench, window, panel);
}

BENCH_CASE("view/080-layers") {
  const Program program;
  const QTemporaryDir folder;
  useAll(bench, modelOf(folder, bench.isSmoke() ? 8 : 80), kOpenLimit);
}

/// As many operators as torch.export produces for an 80-layer Llama.
BENCH_CASE("view/exported") {
  const Program program;
  const QTemporaryDir folder;
  const QString path = folder.filePath(QStringLiteral("deep.pt2"));
  QFile file(path);
  bench::need(file.open(QFile::WriteOnly), "the archive cannot be written");
  file.write(QByteArray::fromStdString(test::DeepProgram(CLEAVE_SOURCE_DIR "/tests/data/torch-versions/tiny-2.11.0.pt2")
                                           .bytes(bench.isSmoke() ? 8 : 215)));
  file.close();
  SessionWindow window;
  open(bench, window, path, kOpenLimit);
  bench.report("nodes", window.session().opened().graph()->nodes.size());
}

BENCH_CASE("view/010k-nodes") {
  const Program program;
  const QTemporaryDir folder;
  useAll(bench, traceOf(folder, bench.isSmoke() ? 500 : 10'000), kOpenLimit);
}

BENCH_CASE("view/100k-nodes") {
  const Program program;
  const QTemporaryDir folder;
  useAll(bench, traceOf(folder, bench.isSmoke() ? 1'000 : 100'000), kOpenLimit);
}
