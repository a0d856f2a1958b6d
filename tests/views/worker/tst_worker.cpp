// The request queue: newest wins, cancelled work reports, nothing runs after the end.
#include <QSignalSpy>
#include <QtTest>
#include <atomic>

#include "tests/support/patience.h"
#include "views/worker/worker.h"

using cleave::Progress;
using cleave::test::kPatience;
using cleave::views::Worker;

class TestWorker : public QObject {
  Q_OBJECT
 private slots:
  void newerRequestReplacesOlderWithTheSameTag();
  void cancelledRequestStillCompletes();
  void shutdownStopsAndDropsEverything();
  void reportsProgress();
};

namespace {
void spinUntilCancelled(const Progress& progress) {
  while (!progress.cancelled()) std::this_thread::yield();
}
}  // namespace

void TestWorker::newerRequestReplacesOlderWithTheSameTag() {
  Worker worker;
  QStringList completed;
  std::atomic<bool> hasStarted = false;
  worker.post("seek", {}, [&](const Progress& progress) -> Worker::Completion {
    hasStarted = true;
    spinUntilCancelled(progress);
    return [&] { completed << "running"; };
  });
  QTRY_VERIFY_WITH_TIMEOUT(hasStarted, kPatience);
  worker.post("other", {}, [&](const Progress&) -> Worker::Completion { return [&] { completed << "other"; }; });
  worker.post("seek", {}, [&](const Progress&) -> Worker::Completion { return [&] { completed << "queued"; }; });
  worker.post("seek", {}, [&](const Progress&) -> Worker::Completion { return [&] { completed << "newest"; }; });
  QTRY_VERIFY_WITH_TIMEOUT(!worker.isBusy(), kPatience);
  QCOMPARE(completed, QStringList({"other", "newest"}));
}

void TestWorker::cancelledRequestStillCompletes() {
  Worker worker;
  bool sawCancel = false;
  worker.post("solve", {}, [&](const Progress& progress) -> Worker::Completion {
    spinUntilCancelled(progress);
    return [&] { sawCancel = true; };
  });
  worker.cancelAll();
  QTRY_VERIFY_WITH_TIMEOUT(sawCancel, kPatience);
  QVERIFY(!worker.isBusy("solve"));
}

void TestWorker::shutdownStopsAndDropsEverything() {
  bool completed = false;
  {
    Worker worker;
    for (const char* tag : {"a", "b"})
      worker.post(tag, {}, [&](const Progress& progress) -> Worker::Completion {
        spinUntilCancelled(progress);
        return [&] { completed = true; };
      });
    worker.shutdown();
    worker.post("late", {}, [&](const Progress&) -> Worker::Completion { return [&] { completed = true; }; });
    QVERIFY(!worker.isBusy());
  }
  QCoreApplication::processEvents();
  QVERIFY(!completed);
}

void TestWorker::reportsProgress() {
  Worker worker;
  QSignalSpy progressed(&worker, &Worker::progressed);
  QSignalSpy started(&worker, &Worker::started);
  QSignalSpy finished(&worker, &Worker::finished);
  worker.post("load", "Loading", [](const Progress& progress) -> Worker::Completion {
    progress.report("weights", 3, 4);
    progress.report("check");  // immediately after, yet not dropped
    return {};
  });
  QTRY_COMPARE_WITH_TIMEOUT(finished.count(), 1, kPatience);
  QCOMPARE(started.first().at(1).toString(), QStringLiteral("Loading"));
  QCOMPARE(progressed.first().mid(1), QVariantList({QStringLiteral("weights"), 3ll, 4ll}));
  QCOMPARE(progressed.last().at(1).toString(), QStringLiteral("check"));
}

QTEST_GUILESS_MAIN(TestWorker)
#include "tst_worker.moc"
