/// Resources of this machine for ranks: GPUs, backends, memory.
#include "base/machine_memory.h"
#include "base/output_file.h"
#include "launch/backend.h"
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
  void signsOfAGpuAreItsDeviceFilesAndThatOfWsl_data() {
    QTest::addColumn<QStringList>("files");
    QTest::addColumn<bool>("isSign");
    QTest::newRow("nothing") << QStringList{"dev/null"} << false;
    QTest::newRow("a GPU") << QStringList{"dev/nvidia0", "dev/nvidiactl"} << true;
    QTest::newRow("the eleventh alone") << QStringList{"dev/nvidia10"} << true;
    QTest::newRow("a driver without a GPU") << QStringList{"dev/nvidiactl", "dev/nvidia-uvm"} << false;
    QTest::newRow("WSL2") << QStringList{"dev/dxg"} << true;
    QTest::newRow("a driver that made no files yet") << QStringList{"proc/driver/nvidia/gpus/0000:01:00.0"} << true;
  }
  void signsOfAGpuAreItsDeviceFilesAndThatOfWsl() {
    QFETCH(QStringList, files);
    QTemporaryDir root;
    for (const QString& file : files) write(root, qPrintable(file), "");
    QTEST(mayHaveGpu(root.path().toStdString()), "isSign");
  }

  /// CUDA's answers, and the resulting choices of `auto` and `nccl`.
  void theBackendIsWhatCudaCanDo_data() {
    QTest::addColumn<GpuProbe>("probe");
    QTest::addColumn<int>("ranks");
    QTest::addColumn<qint64>("bytes");
    QTest::addColumn<QString>("obstacle");  // "": NCCL
    const qint64 gib = 1 << 30;
    const CudaFound cuda{.driver = 13000, .runtime = 13000, .nccl = 22809, .gpus = 2, .error = {}};
    const auto gpu = [&](int index) {
      return GpuFound{.index = index,
                      .name = "H100",
                      .uuid = "GPU-" + std::to_string(index),
                      .capability = 90,
                      .freeBytes = 70 * gib,
                      .totalBytes = 80 * gib,
                      .error = {}};
    };
    const GpuProbe two{cuda, {gpu(0), gpu(1)}, {}};
    QTest::newRow("two of two") << two << 2 << 0 * gib << "";
    QTest::newRow("room enough") << two << 2 << 70 * gib << "";
    QTest::newRow("too few") << two << 4 << 0 * gib << "NCCL needs one GPU per rank, but CUDA lists 2 GPUs for 4 ranks";
    QTest::newRow("too small") << two << 2 << 71 * gib
                               << "a rank needs 71 GiB on its GPU, but GPU 0 (H100, sm_90) has 70 GiB free";
    GpuProbe old = two;
    old.cuda = {.driver = 12080,
                .runtime = 13000,
                .nccl = 22809,
                .gpus = 0,
                .error = "CUDA driver version is insufficient for CUDA runtime version"};
    old.gpus.clear();
    QTest::newRow("an old driver") << old << 1 << 0 * gib
                                   << "the NVIDIA driver supports CUDA 12.8; CUDA 13.0 needs driver 580 or newer";
    old.cuda.driver = 0;
    QTest::newRow("no driver") << old << 1 << 0 * gib
                               << "no NVIDIA driver is loaded; CUDA 13.0 needs driver 580 or newer";
    GpuProbe pascal = two;
    pascal.gpus[0].capability = 60;
    pascal.gpus[0].error = "no kernel image is available for execution on the device";
    QTest::newRow("an old GPU before a new one")
        << pascal << 1 << 0 * gib
        << "GPU 0 (H100, sm_60) cannot run a kernel of this LibTorch: no kernel image is available for execution on "
           "the device (CUDA_VISIBLE_DEVICES=GPU-1 excludes it)";
    QTest::newRow("an old GPU that is needed")
        << pascal << 2 << 0 * gib
        << "GPU 0 (H100, sm_60) cannot run a kernel of this LibTorch: no kernel image is available for execution on "
           "the device";
    GpuProbe mig{cuda, {gpu(0)}, {}};
    mig.gpus[0].name = "H100 MIG 1g.10gb";
    QTest::newRow("MIG") << mig << 2 << 0 * gib
                         << "NCCL needs one GPU per rank, but CUDA lists 1 GPU for 2 ranks; CUDA gives a process at "
                            "most one MIG instance";
    const GpuProbe none{{}, {}, "libcleave_nccl.so is not beside cleave-rank, because it was built without CUDA"};
    QTest::newRow("no library") << none << 1 << 0 * gib
                                << "libcleave_nccl.so is not beside cleave-rank, because it was built without CUDA";
  }
  void theBackendIsWhatCudaCanDo() {
    QFETCH(GpuProbe, probe);
    QFETCH(int, ranks);
    QFETCH(qint64, bytes);
    QFETCH(QString, obstacle);
    QCOMPARE(QString::fromStdString(whyNoNccl(probe, ranks, bytes)), obstacle);
    const auto chosen = chooseBackend(Backend::Auto, ranks, bytes, probe);
    QVERIFY(chosen);
    QCOMPARE(chosen->backend, obstacle.isEmpty() ? Backend::Nccl : Backend::Gloo);
    if (!obstacle.isEmpty())
      QCOMPARE(QString::fromStdString(chosen->why), QStringLiteral("Gloo on CPUs: %1.").arg(obstacle));
    // If NCCL is requested, memory is checked elsewhere, because the user may start the ranks anyway.
    const auto asked = chooseBackend(Backend::Nccl, ranks, 0, probe);
    QCOMPARE(asked.has_value(), whyNoNccl(probe, ranks).empty());
    if (!asked) QCOMPARE(asked.error().code, ErrorCode::Environment);
  }

  void gpusThatCannotReachEachOtherAreNamed() {
    GpuProbe probe;
    for (int i = 0; i < 4; ++i) probe.gpus.push_back({.index = i, .name = "L40S", .capability = 89});
    QCOMPARE(peerAccessText(probe, 4), std::string());
    probe.gpus[0].withoutAccess = 0b0100;
    probe.gpus[2].withoutAccess = 0b0001;
    QCOMPARE(QString::fromStdString(peerAccessText(probe, 4)),
             "GPUs 0 and 2 have no direct access to each other's memory: NCCL copies through host memory.");
    QCOMPARE(peerAccessText(probe, 2), std::string());
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

  /// The process's own group counts kills for lack of memory.
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
        << "its control group is limited to 64 MiB";
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
        << "its control group is limited to 32 MiB";
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
