// Hub ids on the command line: plans need only the config, and runs download the weights. Downloads that are killed at
// any moment continue, the token stays secret, and the cache is shared with huggingface_hub.
#include "hub/cache.h"
#include "hub/partial_blob.h"
#include "tests/support/cli_process.h"
#include "tests/support/files_below.h"
#include "tests/support/hub_server.h"
#include "tests/support/patience.h"
#include "tests/support/seeds.h"

#include <QCryptographicHash>
#include <QProcess>
#include <QRandomGenerator>
#include <QTest>

#include <csignal>

using namespace cleave;
using cleave::test::kPatience;
using test::contentOf;
using test::filesBelow;
using test::Finished;
using test::HubRequest;
using test::HubServer;
using test::someBytes;

namespace {

constexpr qsizetype kLarge = 24 << 20;
const QString kCli = QStringLiteral(CLEAVE_BIN_DIR "/cleave-cli");

}  // namespace

class TstCliDownload : public QObject {
  Q_OBJECT

  HubServer m_server;
  std::unique_ptr<QTemporaryDir> m_cache;

  QProcessEnvironment environment() const {
    QProcessEnvironment environment = m_server.environment(m_cache->path());
    environment.insert("HF_HOME", m_cache->path());
    environment.insert("HF_HUB_DISABLE_XET", "1");
    return environment;
  }
  Finished run(const QString& program, const QStringList& arguments, const QProcessEnvironment& environment) const {
    QProcess process;
    process.setProcessEnvironment(environment);
    process.start(program, arguments);
    return test::finishedOf(process);
  }
  Finished cli(const QStringList& arguments) const { return run(kCli, arguments, environment()); }
  void verifyNothingWasFetched() {
    for (const HubRequest& request : m_server.drainRequests())
      QVERIFY2(request.method == "HEAD" || !request.path.contains("/resolve/"), qPrintable(request.path));
  }

 private slots:
  void initTestCase() { QVERIFY2(m_server.isUp(), "python3 is needed to serve models"); }
  void init() {
    m_cache = std::make_unique<QTemporaryDir>();
    m_server.addFolder("org/tiny", CLEAVE_SOURCE_DIR "/resources/models/tiny-llama");
    m_server.drainRequests();
  }

  void planningNeedsTheConfigAlone() {
    const Finished planned = cli({"plan", "org/tiny", "--engine", "reference", "--ranks", "2"});
    QVERIFY2(planned.exitCode == 0, planned.err);
    QVERIFY2(planned.out.contains("LlamaForCausalLM"), planned.out);
    for (const HubRequest& request : m_server.drainRequests()) QCOMPARE(request.server, QStringLiteral("hub"));
    for (const QString& file : filesBelow(m_cache->path())) QVERIFY2(!file.endsWith(".safetensors"), qPrintable(file));
  }

  void aRunFetchesTheWeights() {
    const Finished ran = cli({"run", "org/tiny", "--engine", "reference", "--ranks", "2"});
    QVERIFY2(ran.exitCode == 0, ran.err);
    QVERIFY2(ran.out.contains("passed: LlamaForCausalLM"), ran.out);
    QVERIFY2(ran.err.contains("of weights in 3 files:") && ran.err.contains("are downloaded into"), ran.err);
  }

  void aPlanFetchesTheWeightsThatItWasMadeWithout() {
    const QString plan = m_cache->filePath("plan.json");
    QCOMPARE(cli({"plan", "org/tiny", "--engine", "reference", "--json", plan}).exitCode, 0);
    const Finished ran = cli({"run", plan});
    QVERIFY2(ran.exitCode == 0, ran.err);
    QVERIFY2(ran.out.contains("passed: LlamaForCausalLM"), ran.out);
    // The same on a machine whose cache is in another folder.
    QFile file(plan);
    QVERIFY(file.open(QFile::ReadOnly));
    const QByteArray moved = file.readAll().replace(m_cache->path().toUtf8(), "/home/nobody/hub");
    file.close();
    QVERIFY(file.open(QFile::WriteOnly) && file.write(moved) == moved.size());
    file.close();
    const Finished elsewhere = cli({"run", plan});
    QVERIFY2(elsewhere.exitCode == 0, elsewhere.err);
    QVERIFY2(elsewhere.out.contains("passed: LlamaForCausalLM"), elsewhere.out);
  }

  void downloadPrintsTheFolder() {
    const Finished downloaded = cli({"download", "org/tiny"});
    QVERIFY2(downloaded.exitCode == 0, downloaded.err);
    const QString folder = QString::fromUtf8(downloaded.out.trimmed());
    QVERIFY(QFile::exists(folder + "/model-00003-of-00003.safetensors"));
    const Finished again = cli({"download", "org/tiny", "--local-only", "--json", "-"});
    QVERIFY2(again.exitCode == 0, again.err);
    QCOMPARE(QJsonDocument::fromJson(again.out)["folder"].toString(), folder);
    QCOMPARE(cli({"info", folder}).exitCode, 0);
    const Finished none = cli({"download", "org/nowhere"});
    QCOMPARE(none.exitCode, 3);
    QVERIFY2(none.err.contains("has no model org/nowhere"), none.err);
    const Finished offline = cli({"plan", "org/other", "--engine", "reference"});
    QVERIFY2(offline.err.contains("(There is no file or folder org/other.)"), offline.err);
    QCOMPARE(cli({"download", "org/tiny@main", "--revision", "main"}).exitCode, 2);
  }

  void addressesAreRefusedByName() {
    for (const char* command : {"plan", "download"}) {
      const Finished file = cli({command, m_server.endpoint() + "/org/tiny/resolve/main/model.safetensors"});
      QCOMPARE(file.exitCode, 3);
      QVERIFY2(file.err.contains("the web address of one weight file") &&
                   file.err.contains("Hub id of the model, org/tiny."),
               file.err);
    }
    const Finished page = cli({"info", "https://huggingface.co/org/tiny/tree/main"});
    QVERIFY2(page.err.contains("Hub id of the model, org/tiny."), page.err);
  }

  /// A download that is killed at any moment continues: it does not request received bytes again.
  void killedAtAnyMoment() {
    const int rounds = static_cast<int>(test::rounds(10));
    const QByteArray weights = someBytes(kLarge, 21);
    m_server.add("org/killed/config.json", "{\"model_type\": \"llama\"}");
    m_server.add("org/killed/model.safetensors", weights);
    const std::string hash = QCryptographicHash::hash(weights, QCryptographicHash::Sha256).toHex().toStdString();
    int stopped = 0, kept = 0;
    for (int round = 0; round < rounds; ++round) {
      m_cache = std::make_unique<QTemporaryDir>();
      m_server.setFaults("org/killed", "{'bytes_per_s': 8000000}");
      std::int64_t before = 0;
      for (int kill = 0; kill < 3; ++kill) {
        QProcess process;
        process.setProcessEnvironment(environment());
        process.start(kCli, {"download", "org/killed"});
        QTest::qWait(100 + static_cast<int>(QRandomGenerator::global()->bounded(1500)));
        stopped += process.state() == QProcess::Running ? 1 : 0;
        process.kill();
        process.waitForFinished();
        const hub::Cache cache(m_cache->path().toStdString());
        const fs::path blob = cache.blob(*hub::HubId::parse("org/killed"), hash);
        const std::int64_t left = fs::exists(blob) ? std::int64_t{kLarge} : hub::PartialBlob::bytesAt(blob, kLarge);
        QVERIFY2(left >= before, qPrintable(QString("%1 bytes, then %2").arg(before).arg(left)));
        before = left;
      }
      kept += before > 0 ? 1 : 0;
      m_server.setFaults("org/killed", "{}");
      m_server.drainRequests();
      const Finished done = cli({"download", "org/killed"});
      QVERIFY2(done.exitCode == 0, done.err);
      QCOMPARE(contentOf(QString::fromUtf8(done.out.trimmed()) + "/model.safetensors"), weights);
      std::int64_t asked = 0;
      for (const HubRequest& request : m_server.drainRequests()) {
        const QStringList ends = request.range.section('=', 1).split('-');
        if (request.server == "second") asked += ends[1].toLongLong() - ends[0].toLongLong() + 1;
      }
      QCOMPARE(asked, kLarge - before);
    }
    qInfo("%d kills during downloads; %d of %d downloads had received bytes to continue from", stopped, kept, rounds);
    QVERIFY(stopped > 0);
  }

  void twoProcessesFetchOnce() {
    m_server.add("org/twice/config.json", "{\"model_type\": \"llama\"}");
    m_server.add("org/twice/model.safetensors", someBytes(kLarge, 22));
    m_server.setFaults("org/twice", "{'bytes_per_s': 8000000}");
    QProcess first, second;
    for (QProcess* process : {&first, &second}) {
      process->setProcessEnvironment(environment());
      process->start(kCli, {"download", "org/twice"});
    }
    const Finished one = test::finishedOf(first), two = test::finishedOf(second);
    QVERIFY2(one.exitCode == 0 && two.exitCode == 0, one.err + two.err);
    QCOMPARE(one.out, two.out);
    QCOMPARE(contentOf(QString::fromUtf8(one.out.trimmed()) + "/model.safetensors"), someBytes(kLarge, 22));
    QVERIFY2((one.err + two.err).contains("waiting for another process that downloads it"), one.err + two.err);
    std::int64_t parts = 0;
    for (const HubRequest& request : m_server.drainRequests()) parts += request.server == "second" ? 1 : 0;
    QCOMPARE(parts, 3);
  }

  /// Checks output, files, arguments, environments and core dumps of downloads that fail in every way.
  void theTokenStaysSecret() {
    const QByteArray token = "hf_cAnArYtOkEn0123456789";
    QTemporaryDir work;
    m_server.add("org/gated/config.json", "{\"model_type\": \"llama\"}");
    m_server.setFaults("org/gated", "{'status': {'*': [403, 'GatedRepo']}}");
    m_server.add("org/flipped/config.json", "{\"model_type\": \"llama\"}");
    m_server.add("org/flipped/model.safetensors", someBytes(100000, 23));
    m_server.setFaults("org/flipped", "{'flip': true}");
    m_server.add("org/slow/config.json", "{\"model_type\": \"llama\"}");
    m_server.add("org/slow/model.safetensors", someBytes(kLarge, 24));
    m_server.setFaults("org/slow", "{'bytes_per_s': 1000000}");
    QProcessEnvironment with = environment();
    with.insert("HF_TOKEN", token);
    QByteArray seen;
    for (const char* model : {"org/gated", "org/flipped", "org/nowhere", "bad--name/x", "org/tiny@nope"}) {
      const Finished failed = run(kCli, {"download", model}, with);
      QVERIFY(failed.exitCode != 0);
      seen += failed.out + failed.err;
    }
    with.insert("HF_ENDPOINT", "http://127.0.0.1:1");
    seen += run(kCli, {"plan", "org/gated"}, with).err;
    with.insert("HF_ENDPOINT", m_server.endpoint());

    // While one runs, and when it crashes.
    QProcess process;
    process.setProcessEnvironment(with);
    process.setWorkingDirectory(work.path());
    process.start("bash", {"-c", "ulimit -c unlimited; exec " + kCli + " download org/slow"});
    QTRY_VERIFY_WITH_TIMEOUT(filesBelow(m_cache->path()).filter(".incomplete").size() > 0, kPatience);
    const QString entry = QString("/proc/%1/").arg(process.processId());
    seen += contentOf(entry + "environ") + contentOf(entry + "cmdline");
    QVERIFY(contentOf(entry + "cmdline").contains("org/slow"));
    ::kill(static_cast<pid_t>(process.processId()), SIGABRT);
    QVERIFY(process.waitForFinished(kPatience));
    QCOMPARE(process.exitStatus(), QProcess::CrashExit);
    seen += process.readAllStandardError();
    for (const QString& folder : {work.path(), m_cache->path()})
      for (const QString& file : filesBelow(folder)) seen += contentOf(file);
    QVERIFY(filesBelow(work.path()).isEmpty());  // no core

    // Ranks read downloaded files and need no token.
    const Finished ran =
        run(kCli, {"run", "org/tiny", "--engine", "reference", "--json", work.filePath("run.json")}, with);
    QVERIFY2(ran.exitCode == 0, ran.err);
    seen += ran.out + ran.err + contentOf(work.filePath("run.json"));
    for (const HubRequest& request : m_server.drainRequests()) QVERIFY(request.hasToken == (request.server == "hub"));
    QVERIFY(!seen.contains(token));
    QVERIFY(!seen.contains("cAnArY"));
  }

  void huggingFaceReadsWhatWasFetched() {
    const QString interpreter = test::python();
    if (interpreter.isEmpty()) QSKIP("No Python with huggingface_hub here: packaging/setup --tests installs it");
    const Finished fetched = cli({"download", "org/tiny"});
    QVERIFY2(fetched.exitCode == 0, fetched.err);
    m_server.drainRequests();
    const QString script =
        "import huggingface_hub as h\n"
        "for name in ('config.json', 'model-00003-of-00003.safetensors'):\n"
        "  print(h.hf_hub_download('org/tiny', name))\n"
        "print(h.snapshot_download('org/tiny', local_files_only=True))\n"
        "info = h.scan_cache_dir()\n"
        "print(len(info.warnings), [r.repo_id for r in info.repos], [len(v.files) for r in info.repos for v in "
        "r.revisions])\n";
    const Finished read = run(interpreter, {"-c", script}, environment());
    QVERIFY2(read.exitCode == 0, read.err);
    const QByteArray folder = fetched.out.trimmed();
    QCOMPARE(read.out, folder + "/config.json\n" + folder + "/model-00003-of-00003.safetensors\n" + folder +
                           "\n0 ['org/tiny'] [5]\n");
    verifyNothingWasFetched();
  }

  void whatHuggingFaceFetchedIsRead() {
    const QString interpreter = test::python();
    if (interpreter.isEmpty()) QSKIP("No Python with huggingface_hub here: packaging/setup --tests installs it");
    const QString script =
        "import huggingface_hub as h\n"
        "print(h.snapshot_download('org/tiny', allow_patterns=['config.json', 'model*']))\n";
    const Finished fetched = run(interpreter, {"-c", script}, environment());
    QVERIFY2(fetched.exitCode == 0, fetched.err);
    m_server.drainRequests();
    const Finished local = cli({"download", "org/tiny", "--local-only"});
    QVERIFY2(local.exitCode == 0, local.err);
    QCOMPARE(local.out, fetched.out);
    const Finished online = cli({"download", "org/tiny"});
    QCOMPARE(online.out, fetched.out);
    verifyNothingWasFetched();
  }
};

QTEST_GUILESS_MAIN(TstCliDownload)
#include "tst_cli_download.moc"
