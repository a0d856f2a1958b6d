// Opening, stopping, solving, running and closing at random moments: the window responds within a second, and the open
// model stays open until another one is.
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

class TstWindowMoments : public QObject {
  Q_OBJECT

  test::HubServer m_server;
  QTemporaryDir m_cache;

 private slots:
  void initTestCase() {
    QVERIFY2(m_server.isUp(), "python3 is needed to serve models");
    m_server.addFolder(QStringLiteral("org/tiny"), QStringLiteral(CLEAVE_SOURCE_DIR "/resources/models/tiny-llama"));
    m_server.becomeTheHub(m_cache.path());
  }

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
    qint64 longest = 0;
    const auto rounds = static_cast<int>(test::rounds(20));
    for (int round = 0; round < rounds; ++round) {
      auto window = std::make_unique<SessionWindow>();
      Session& session = window->session();
      window->resize(1000, 700);
      window->show();
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
      QElapsedTimer timer;
      timer.start();
      session.jobs().stop();
      window->close();
      session.shutdown();
      longest = std::max(longest, timer.elapsed());
      QVERIFY2(!Worker::hasAbandonedThread(), qPrintable(QString("round %1 abandoned a thread").arg(round)));
      window.reset();
    }
    qInfo("%d times closed, at most %lld ms", rounds, static_cast<long long>(longest));
    // A sanitizer's slowdown must not fail the test.
    if (test::rounds(10) >= 10) QVERIFY(longest <= 1000);
  }
};

QTEST_MAIN(TstWindowMoments)
#include "tst_window_moments.moc"
