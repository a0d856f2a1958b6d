// Opening, stopping, solving, running and closing at random moments: the window closes about as fast as it opens, and
// the open model stays open until another one is.
#include <QDialog>
#include <QElapsedTimer>
#include <random>

#include "tests/support/hub_server.h"
#include "tests/support/seeds.h"
#include "tests/views/window/window_fixture.h"
#include "views/run/run_view.h"

using namespace cleave;
using namespace cleave::views;
using namespace cleave::views::testing;

constexpr int kClosings = 10;  ///< a closing takes at most this multiple of an opening

class TstWindowMoments : public QObject {
  Q_OBJECT

  test::TinyHub m_hub;

 private slots:
  void initTestCase() { QVERIFY2(m_hub.begin(), "python3 is needed to serve models"); }

  void atAnyMoment() {
    // Questions are answered with no: a model with weights on its Hub asks before it runs.
    QTimer answers;
    connect(&answers, &QTimer::timeout, this, [] {
      if (auto* dialog = qobject_cast<QDialog*>(QApplication::activeModalWidget())) dialog->reject();
    });
    answers.start(50);
    std::mt19937_64 random(test::seed());
    const auto below = [&](int end) { return static_cast<int>(random() % static_cast<unsigned>(end)); };
    const QStringList models{QStringLiteral(CLEAVE_TEST_DATA "/models/llama"),
                             QStringLiteral(CLEAVE_TEST_DATA "/configs/Llama-3.1-405B"),
                             QStringLiteral(CLEAVE_TEST_DATA "/configs/Qwen3-235B-A22B"),
                             QStringLiteral(CLEAVE_SOURCE_DIR "/resources/models/seven-layers"),
                             QStringLiteral("org/tiny"),
                             QStringLiteral("org/nowhere"),
                             QStringLiteral("/nowhere/at/all")};
    qint64 longestOpening = 0, longestClosing = 0;
    QElapsedTimer timer;
    const auto rounds = static_cast<int>(test::rounds(20));
    for (int round = 0; round < rounds; ++round) {
      timer.start();
      auto window = std::make_unique<SessionWindow>();
      Session& session = window->session();
      window->resize(1000, 700);
      window->show();
      QCoreApplication::processEvents();
      longestOpening = std::max(longestOpening, timer.elapsed());
      if (below(2)) session.settings().setEngine(solve::Engine::Reference);
      for (int act = 1 + below(4); act > 0; --act) {
        switch (below(5)) {
          case 0:
          case 1: window->openPath(models[below(static_cast<int>(models.size()))]); break;
          case 2: session.jobs().stop(); break;
          case 3: session.settings().setRanks(1 << below(4)); break;
          default: window->runView().run(2); break;
        }
        QTest::qWait(below(250));
      }
      timer.start();
      session.jobs().stop();
      window->close();
      session.shutdown();
      longestClosing = std::max(longestClosing, timer.elapsed());
      QVERIFY2(!Worker::hasAbandonedThread(), qPrintable(QString("round %1 abandoned a thread").arg(round)));
      window.reset();
    }
    qInfo("%d times opened within %lld ms and closed within %lld ms", rounds, longestOpening, longestClosing);
    QVERIFY(longestClosing <= kClosings * longestOpening);
  }
};

QTEST_MAIN(TstWindowMoments)
#include "tst_window_moments.moc"
