#pragma once
/// A window with a model, for tests that act like a user.
#include <QMimeData>
#include <QtTest>

#include "tests/support/patience.h"
#include "tests/support/session_window.h"
#include "views/graph/view/graph_view.h"
#include "views/window/graph_area.h"
#include "views/window/message_bar.h"

namespace cleave::views::testing {

using cleave::test::kPatience;

inline void settle(MainWindow& window) { QTRY_VERIFY_WITH_TIMEOUT(window.isSettled(), kPatience); }

/// A model of the tests' data. Solved by `reference`, because the fastest plan of a tiny model is replicated.
inline void openModel(MainWindow& window, const char* model = "llama") {
  window.resize(1400, 900);
  window.show();
  window.session().settings().setEngine(solve::Engine::Reference);
  window.openPath(QStringLiteral(CLEAVE_TEST_DATA "/models/") + QLatin1String(model));
  QTRY_VERIFY_WITH_TIMEOUT(window.session().plans().plan() && window.session().debugger().state() && window.isSettled(),
                           kPatience);
}

inline void openSample(MainWindow& window, const std::string& name) {
  window.resize(1400, 900);
  window.show();
  QVERIFY(window.samples().has_value());
  for (const pipeline::Sample& sample : *window.samples())
    if (sample.name == name) window.session().openSample(sample);
  QTRY_VERIFY_WITH_TIMEOUT(
      window.session().plans().solved() && window.session().debugger().state() && window.isSettled(), kPatience);
}

inline void drop(MainWindow& window, const QString& path) {
  QMimeData data;
  data.setUrls({QUrl::fromLocalFile(path)});
  QDragEnterEvent enter({200, 200}, Qt::CopyAction, &data, Qt::LeftButton, Qt::NoModifier);
  QCoreApplication::sendEvent(&window, &enter);
  QVERIFY(enter.isAccepted());
  QDropEvent event({200, 200}, Qt::CopyAction, &data, Qt::LeftButton, Qt::NoModifier);
  QCoreApplication::sendEvent(&window, &event);
}

inline QString message(MainWindow& window) { return window.findChild<MessageBar*>()->text(); }

}  // namespace cleave::views::testing
