/// What this machine offers to ranks: GPUs, backends, memory.
#include "base/machine_memory.h"
#include "base/output_file.h"
#include "launch/launcher.h"
#include "launch/oom_watch.h"

#include <QTemporaryDir>
#include <QTest>

using namespace cleave;
using namespace cleave::launch;
using namespace cleave::protocol;

class BackendTest : public QObject {
  Q_OBJECT

  static void write(const QTemporaryDir& root, const char* file, const char* text) {
    const fs::path path = fs::path(root.path().toStdString()) / file;
    fs::create_directories(path.parent_path());
    const auto written = writeFile(path, text);
    if (!written) qFatal("%s", written.error().message.c_str());
  }

 private slots:
  void readsCudaVisibleDevicesAsCudaDoes_data() {
    QTest::addColumn<int>("present");
    QTest::addColumn<QByteArray>("variable");
    QTest::addColumn<QString>("gpus");
    QTest::newRow("not set") << 3 << QByteArray() << "0 1 2";
    QTest::newRow("some") << 4 << QByteArray("3,1") << "3 1";
    QTest::newRow("with spaces") << 4 << QByteArray(" 2 , 0 ") << "2 0";
    QTest::newRow("empty hides all") << 4 << QByteArray("") << "";
    QTest::newRow("-1 hides all") << 4 << QByteArray("-1") << "";
    QTest::newRow("up to the first wrong one") << 2 << QByteArray("1,2,0") << "1";
    QTest::newRow("up to a repeated one") << 2 << QByteArray("1,1,0") << "1";
    QTest::newRow("by identifier") << 2 << QByteArray("GPU-8932f937") << "GPU-8932f937";
    QTest::newRow("no more than there are") << 1 << QByteArray("GPU-1,GPU-2") << "GPU-1";
    QTest::newRow("no GPU") << 0 << QByteArray("0") << "";
  }
  void readsCudaVisibleDevicesAsCudaDoes() {
    QFETCH(int, present);
    QFETCH(QByteArray, variable);
    QFETCH(QString, gpus);
    QStringList found;
    for (const std::string& gpu : visibleGpus(present, variable.isNull() ? nullptr : variable.constData()))
      found << QString::fromStdString(gpu);
    QCOMPARE(found.join(' '), gpus);
  }

  void hiddenGpusAreNotOffered() {
    qputenv("CUDA_VISIBLE_DEVICES", "-1");
    std::string why;
    QCOMPARE(localGpuCount(), 0);
    QCOMPARE(*resolveBackend(Backend::Auto, 1, &why), Backend::Gloo);
    const auto refused = resolveBackend(Backend::Nccl, 2);
    qunsetenv("CUDA_VISIBLE_DEVICES");
    QVERIFY(!why.empty());
    QVERIFY(!refused);
    QCOMPARE(refused.error().code, ErrorCode::Environment);
    QVERIFY2(refused.error().message.find("CUDA_VISIBLE_DEVICES") != std::string::npos,
             refused.error().message.c_str());
  }

  void memoryIsTheMachinesOrTheContainers_data() {
    QTest::addColumn<QList<QByteArray>>("files");  // name, content, name, content …
    QTest::addColumn<qint64>("total");
    QTest::addColumn<qint64>("available");
    using Files = QList<QByteArray>;
    const qint64 mib = 1 << 20;
    const Files machine{"proc/meminfo", "MemTotal:       1048576 kB\nMemFree:  10 kB\nMemAvailable:    524288 kB\n"};
    QTest::newRow("machine alone") << machine << 1024 * mib << 512 * mib;
    QTest::newRow("groups without a limit")
        << machine + Files{"proc/self/cgroup", "0::/user/x\n", "sys/fs/cgroup/user/x/memory.max", "max\n"} << 1024 * mib
        << 512 * mib;
    const Files container{"proc/self/cgroup",
                          "0::/\n",
                          "sys/fs/cgroup/memory.max",
                          "268435456\n",
                          "sys/fs/cgroup/memory.current",
                          "201326592\n",
                          "sys/fs/cgroup/memory.stat",
                          "anon 1\ninactive_file 33554432\nactive_file 33554432\n"};
    QTest::newRow("a container, its cache given back") << machine + container << 256 * mib << 128 * mib;
    QTest::newRow("a parent's limit holds the child") << machine + Files{"proc/self/cgroup",
                                                                         "0::/a/b\n",
                                                                         "sys/fs/cgroup/a/memory.max",
                                                                         "104857600\n",
                                                                         "sys/fs/cgroup/a/memory.current",
                                                                         "52428800\n",
                                                                         "sys/fs/cgroup/a/b/memory.max",
                                                                         "max\n"}
                                                      << 100 * mib << 50 * mib;
    QTest::newRow("version 1") << machine +
                                      Files{"proc/self/cgroup",
                                            "7:cpu:/x\n5:memory:/docker/x\n",
                                            "sys/fs/cgroup/memory/docker/x/memory.limit_in_bytes",
                                            "104857600\n",
                                            "sys/fs/cgroup/memory/docker/x/memory.usage_in_bytes",
                                            "62914560\n",
                                            "sys/fs/cgroup/memory/docker/x/memory.stat",
                                            "inactive_file 7\ntotal_inactive_file 10485760\ntotal_active_file 0\n"}
                               << 100 * mib << 50 * mib;
    QTest::newRow("version 1 without a limit")
        << machine + Files{"proc/self/cgroup", "5:memory:/\n", "sys/fs/cgroup/memory/memory.limit_in_bytes",
                           "9223372036854771712\n"}
        << 1024 * mib << 512 * mib;
    QTest::newRow("more used than allowed") << machine + Files{"proc/self/cgroup",
                                                               "0::/\n",
                                                               "sys/fs/cgroup/memory.max",
                                                               "1048576\n",
                                                               "sys/fs/cgroup/memory.current",
                                                               "2097152\n"}
                                            << 1 * mib << qint64(0);
    QTest::newRow("a kernel that says nothing") << Files{} << qint64(0) << qint64(0);
  }
  void memoryIsTheMachinesOrTheContainers() {
    QFETCH(QList<QByteArray>, files);
    QTemporaryDir root;
    for (int i = 0; i + 1 < files.size(); i += 2) write(root, files[i].constData(), files[i + 1].constData());
    const MachineMemory memory = machineMemory(root.path().toStdString());
    QTEST(static_cast<qint64>(memory.total), "total");
    QTEST(static_cast<qint64>(memory.available), "available");
  }

  /// What the kernel ended for want of memory is counted in the process's own group.
  void aKillIsTakenForOneOfTheKernelWhereItsGroupCountsOne_data() {
    QTest::addColumn<QList<QByteArray>>("files");
    QTest::addColumn<QByteArray>("counter");  // a file
    QTest::addColumn<QByteArray>("counted");
    QTest::addColumn<QString>("why");
    const QByteArray meminfo = "MemTotal: 1048576 kB\nMemAvailable: 524288 kB\n";
    const QList<QByteArray> second = {"proc/meminfo",
                                      meminfo,
                                      "proc/7/cgroup",
                                      "0::/a/b\n",
                                      "sys/fs/cgroup/a/memory.max",
                                      "67108864\n",
                                      "sys/fs/cgroup/a/b/memory.max",
                                      "max\n",
                                      "sys/fs/cgroup/a/b/memory.events",
                                      "oom 3\noom_kill 2\n"};
    QTest::newRow("version 2, its parent's limit")
        << second << QByteArray("sys/fs/cgroup/a/b/memory.events") << QByteArray("oom 4\noom_kill 3\n")
        << "the processes of its control group may have 64 MiB together";
    QTest::newRow("version 2, nothing new")
        << second << QByteArray("sys/fs/cgroup/a/b/memory.events") << QByteArray("oom 4\noom_kill 2\n") << "";
    QTest::newRow("version 1 of a container, whose path is the host's")
        << QList<QByteArray>{"proc/meminfo",
                             meminfo,
                             "proc/7/cgroup",
                             "5:memory:/docker/x\n",
                             "sys/fs/cgroup/memory/memory.limit_in_bytes",
                             "33554432\n",
                             "sys/fs/cgroup/memory/memory.oom_control",
                             "under_oom 0\noom_kill 0\n"}
        << QByteArray("sys/fs/cgroup/memory/memory.oom_control") << QByteArray("under_oom 0\noom_kill 1\n")
        << "the processes of its control group may have 32 MiB together";
    QTest::newRow("no groups") << QList<QByteArray>{"proc/meminfo", meminfo, "proc/vmstat",
                                                    "nr_free_pages 7\noom_kill 4\n"}
                               << QByteArray("proc/vmstat") << QByteArray("oom_kill 5\n") << "this machine has 1 GiB";
  }
  void aKillIsTakenForOneOfTheKernelWhereItsGroupCountsOne() {
    QFETCH(QList<QByteArray>, files);
    QFETCH(QByteArray, counter);
    QFETCH(QByteArray, counted);
    QTemporaryDir root;
    for (int i = 0; i + 1 < files.size(); i += 2) write(root, files[i].constData(), files[i + 1].constData());
    OomWatch watch(root.path().toStdString());
    watch.look(7);
    QCOMPARE(watch.why(), std::string());
    watch.look(7);
    write(root, counter.constData(), counted.constData());
    QTEST(QString::fromStdString(watch.why()), "why");
  }

  void thisMachineHasMemory() {
    const MachineMemory memory = machineMemory();
    QVERIFY(memory.available > 0 && memory.available <= memory.total);
  }
};

QTEST_GUILESS_MAIN(BackendTest)
#include "tst_backend.moc"
