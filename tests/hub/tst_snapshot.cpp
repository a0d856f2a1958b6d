// Downloads of a model from a Hub and the errors, against a real server with the faults of real servers.
#include "hub/snapshot.h"
#include "tests/support/files_below.h"
#include "tests/support/hub_server.h"

#include <QCryptographicHash>
#include <QTest>

#include <algorithm>
#include <set>
#include <thread>

#include <sys/stat.h>

using namespace cleave;
using namespace cleave::hub;
using test::filesBelow;
using test::HubRequest;
using test::HubServer;
using test::someBytes;

namespace {

constexpr qsizetype kLarge = 20 << 20;  // three parts
const QByteArray kConfig = "{\"model_type\": \"llama\"}";

QByteArray index(const QStringList& files) {
  QJsonObject map;
  for (const QString& file : files) map[QStringLiteral("weight.of.") + file] = file;
  return QJsonDocument(QJsonObject{{QStringLiteral("weight_map"), map}}).toJson();
}

QByteArray contentOf(const fs::path& file) { return test::contentOf(QString::fromStdString(file.string())); }

}  // namespace

class TstSnapshot : public QObject {
  Q_OBJECT

  HubServer m_server;
  std::unique_ptr<QTemporaryDir> m_cache;
  QStringList m_notes;
  std::vector<DownloadState> m_states;

  Result<Snapshot> fetch(const QString& id, Wanted wanted = Wanted::Weights, bool isLocalOnly = false,
                         const Progress& progress = {}) {
    SnapshotRequest request{*HubId::parse(id.toStdString()), wanted, m_server.settings(m_cache->path()), isLocalOnly};
    return fetchWith(request, progress);
  }
  Result<Snapshot> fetchWith(const SnapshotRequest& request, const Progress& progress = {}) {
    m_notes.clear();
    m_states.clear();
    Watcher watcher;
    watcher.onNote = [this](const std::string& note) { m_notes << QString::fromStdString(note); };
    watcher.onState = [this](const DownloadState& state) { m_states.push_back(state); };
    return fetchSnapshot(request, watcher, progress);
  }
  /// A safetensors file.
  static QByteArray someWeights(int size) {
    QByteArray header = R"({"a":{"dtype":"U8","shape":[%],"data_offsets":[0,%]}})";
    header.replace("%", QByteArray::number(size));
    header = header.leftJustified((header.size() + 7) / 8 * 8, ' ');
    return QByteArray(1, static_cast<char>(header.size())) + QByteArray(7, 0) + header + QByteArray(size, 'x');
  }
  void addModel(const QString& repo, const QByteArray& weights, const QByteArray& faults = {}) {
    m_server.add(repo + "/config.json", kConfig);
    m_server.add(repo + "/model.safetensors", weights);
    if (!faults.isEmpty()) m_server.setFaults(repo, faults);
  }
  /// A failing download has this message, and leaves no file under its final name.
  void verifyRefused(const Result<Snapshot>& fetched, ErrorCode code, const QString& text) {
    QVERIFY(!fetched);
    const QString message = QString::fromStdString(fetched.error().message);
    QVERIFY2(message.contains(text), qPrintable(message));
    QCOMPARE(static_cast<int>(fetched.error().code), static_cast<int>(code));
    QVERIFY2(message.endsWith('.') || message.endsWith(')'), qPrintable(message));
    for (const QString& file : filesBelow(m_cache->path()))
      QVERIFY2(!file.endsWith("model.safetensors"), qPrintable(file));
  }

  void verifyRefusedOffline(const Result<Snapshot>& fetched, const char* text) {
    QVERIFY(!fetched);
    QVERIFY2(fetched.error().message.find(text) != std::string::npos, fetched.error().message.c_str());
    QCOMPARE(exitCode(fetched.error().code), 4);
  }

  /// Requests the stop of a download when some of a file has arrived.
  void stopWithAPart(std::stop_source& stop, const std::stop_token& end) const {
    constexpr blkcnt_t kEnough = (2 << 20) / 512;
    const auto hasEnough = [](const QString& file) {
      struct stat found {};
      return file.endsWith(".cleave.incomplete") && ::stat(qPrintable(file), &found) == 0 && found.st_blocks > kEnough;
    };
    while (!end.stop_requested() && std::ranges::none_of(filesBelow(m_cache->path()), hasEnough))
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    stop.request_stop();
  }

 private slots:
  void initTestCase() { QVERIFY2(m_server.isUp(), "python3 is needed to serve models"); }
  void init() { m_cache = std::make_unique<QTemporaryDir>(); }

  void onlyWhatIsNeededComes() {
    const QStringList shards{"model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"};
    m_server.add("org/sharded/config.json", kConfig);
    m_server.add("org/sharded/model.safetensors.index.json", index(shards));
    for (const QString& shard : shards) m_server.add("org/sharded/" + shard, someBytes(1000, 7));
    for (const char* other : {"README.md", "pytorch_model.bin", "tokenizer.json", "expected.safetensors"})
      m_server.add(QStringLiteral("org/sharded/") + other, "x");

    const auto config = fetch("org/sharded", Wanted::Config);
    QVERIFY2(config, config ? "" : config.error().message.c_str());
    QCOMPARE(filesBelow(QString::fromStdString(config->folder.string())).size(), 1);
    QVERIFY(m_notes.isEmpty());
    const auto all = fetch("org/sharded");
    QVERIFY2(all, all ? "" : all.error().message.c_str());
    QCOMPARE(all->folder, config->folder);
    QCOMPARE(filesBelow(QString::fromStdString(all->folder.string())).size(), 4);
    QCOMPARE(m_notes.size(), 1);
    QVERIFY2(m_notes[0].contains("1.95 KiB of weights in 2 files: 1000 B are downloaded") ||
                 m_notes[0].contains("1.95 KiB of weights in 2 files: 1.95 KiB are downloaded"),
             qPrintable(m_notes[0]));
  }

  void theCacheIsHuggingFaces() {
    addModel("org/layout", someBytes(3000));
    const auto fetched = fetch("org/layout@refs/pr/1");
    QVERIFY2(fetched, fetched ? "" : fetched.error().message.c_str());
    const fs::path model = fs::path(m_cache->path().toStdString()) / "models--org--layout";
    QCOMPARE(fetched->folder, model / "snapshots" / fetched->commit);
    QCOMPARE(contentOf(model / "refs" / "refs" / "pr" / "1"), QByteArray::fromStdString(fetched->commit));
    const fs::path link = fs::read_symlink(fetched->folder / "model.safetensors");
    QVERIFY(link.is_relative());
    QCOMPARE(link.parent_path(), fs::path("../../blobs"));
    const QByteArray hash = QCryptographicHash::hash(someBytes(3000), QCryptographicHash::Sha256).toHex();
    QCOMPARE(QByteArray::fromStdString(link.filename().string()), hash);
    QCOMPARE(contentOf(fetched->folder / "model.safetensors"), someBytes(3000));
  }

  void whatIsThereIsNotFetchedAgain() {
    addModel("org/again", someWeights(3000));
    const auto first = fetch("org/again");
    QVERIFY(first);
    m_server.drainRequests();
    const auto second = fetch("org/again");
    QVERIFY(second);
    for (const HubRequest& request : m_server.drainRequests()) QCOMPARE(request.method, QStringLiteral("HEAD"));
    // A commit never changes, so the Hub is not asked.
    const auto commit = fetch("org/again@" + QString::fromStdString(first->commit));
    QVERIFY(commit);
    QVERIFY(m_server.drainRequests().isEmpty());
    QVERIFY(fetch("org/again", Wanted::Weights, true));
    QVERIFY(m_server.drainRequests().isEmpty());
  }

  void aLargeFileComesInParts() {
    addModel("org/large", someBytes(kLarge));
    const auto fetched = fetch("org/large");
    QVERIFY2(fetched, fetched ? "" : fetched.error().message.c_str());
    QCOMPARE(contentOf(fetched->folder / "model.safetensors"), someBytes(kLarge));
    QStringList ranges;
    for (const HubRequest& request : m_server.drainRequests())
      if (request.server == "second") ranges << request.range;
    ranges.sort();
    QCOMPARE(ranges, QStringList({"bytes=0-8388607", "bytes=16777216-20971519", "bytes=8388608-16777215"}));
    QVERIFY(!m_states.empty());
    QCOMPARE(m_states.back().totalBytes, std::int64_t{kLarge});
  }

  void faultsThatPass_data() {
    QTest::addColumn<QByteArray>("faults");
    QTest::newRow("connections are cut") << QByteArray("{'cut_after': 300000}");
    QTest::newRow("no ranges") << QByteArray("{'no_ranges': true}");
    QTest::newRow("short ranges") << QByteArray("{'short_ranges': 1000000}");
    QTest::newRow("503 twice") << QByteArray("{'status': {'*': [503]}, 'times': 2}");
    QTest::newRow("429 with Retry-After") << QByteArray("{'status': {'*': [429]}, 'times': 1, 'retry_after': 1}");
    QTest::newRow("the signature expires") << QByteArray("{'expires': 1}");
    QTest::newRow("no listing") << QByteArray("{'no_listing': true}");
    QTest::newRow("slow") << QByteArray("{'bytes_per_s': 4000000}");
  }
  void faultsThatPass() {
    QFETCH(QByteArray, faults);
    const QString repo = QStringLiteral("org/passing-%1").arg(qHash(faults));
    addModel(repo, someBytes(kLarge, 3), faults);
    const auto fetched = fetch(repo);
    QVERIFY2(fetched, fetched ? "" : fetched.error().message.c_str());
    QCOMPARE(contentOf(fetched->folder / "model.safetensors"), someBytes(kLarge, 3));
  }

  void faultsThatStay_data() {
    QTest::addColumn<QByteArray>("faults");
    QTest::addColumn<int>("code");
    QTest::addColumn<QString>("text");
    const auto row = [](const char* name, const char* faults, ErrorCode code, const char* text) {
      QTest::newRow(name) << QByteArray(faults) << static_cast<int>(code) << QString::fromUtf8(text);
    };
    row("gated", "{'status': {'*': [403, 'GatedRepo']}}", ErrorCode::BadInput, "is gated. Request access on http://");
    row("401", "{'status': {'*': [401]}}", ErrorCode::BadInput, "or it is private");
    row("403", "{'status': {'*': [403]}}", ErrorCode::BadInput, "denies access to org/");
    row("weights are forbidden", "{'status': {'model.safetensors': [403]}}", ErrorCode::BadInput,
        "denies access to org/");
    row("404 for all", "{'status': {'*': [404]}}", ErrorCode::BadInput, "or it is private");
    row("429 for long", "{'status': {'*': [429]}, 'retry_after': 4000}", ErrorCode::Environment,
        "asks to retry after 4000 s");
    row("500", "{'status': {'*': [500]}}", ErrorCode::Environment, "answers HTTP 500");
    row("packed", "{'packed': true}", ErrorCode::Environment, "answer is compressed (\"gzip\")");
    row("headers without end", "{'headers': 100}", ErrorCode::Environment, "has more than 64 KiB of headers");
    row("another hash", "{'flip': true}", ErrorCode::Environment, "do not match the announced hash");
    row("announces more", "{'announce': 5}", ErrorCode::Environment, "the Hub announces");
    row("announces less", "{'announce': -5}", ErrorCode::Environment, "the Hub announces");
    row("a wrong total", "{'total': 9}", ErrorCode::Environment, "the server has 20971529");
    row("silent", "{'silent': true}", ErrorCode::Environment, "has sent nothing of model.safetensors for 1 s");
    row("a redirect to a file", "{'redirect': 'file:///etc/passwd'}", ErrorCode::Environment,
        "its redirect is invalid: \"file:///etc/passwd\" is not an http or https address");
    row("a redirect with a name in it", "{'redirect': 'http://me:secret@127.0.0.1:1/'}", ErrorCode::Environment,
        "its redirect is invalid: ");
    row("redirects nowhere", "{'redirect': 'http://127.0.0.1:1/'}", ErrorCode::Environment, "cannot be reached");
  }
  void faultsThatStay() {
    QFETCH(QByteArray, faults);
    QFETCH(int, code);
    QFETCH(QString, text);
    const QString repo = QStringLiteral("org/staying-%1").arg(qHash(faults));
    addModel(repo, someBytes(kLarge, 4), faults);
    SnapshotRequest request{*HubId::parse(repo.toStdString()), Wanted::Weights, m_server.settings(m_cache->path())};
    request.settings.quietSeconds = 1;
    verifyRefused(fetchWith(request), static_cast<ErrorCode>(code), text);
  }

  void whatIsNoModelIsSaid_data() {
    QTest::addColumn<QStringList>("files");
    QTest::addColumn<QString>("text");
    QTest::newRow("an adapter") << QStringList{"adapter_config.json", "adapter_model.safetensors"}
                                << "it is an adapter";
    QTest::newRow("GGUF") << QStringList{"model-q4.gguf"} << "GGUF files (model-q4.gguf)";
    QTest::newRow("a pipeline") << QStringList{"model_index.json"} << "a pipeline of several models";
    QTest::newRow("a data set") << QStringList{"data.csv"} << "it is not a transformers model";
    QTest::newRow("pickles") << QStringList{"config.json", "pytorch_model.bin"} << "as PyTorch pickle only";
    QTest::newRow("a config alone") << QStringList{"config.json"} << "has no weights, only a config.json";
    QTest::newRow("weights in unclear files")
        << QStringList{"config.json", "a.safetensors", "b.safetensors"} << "it is unclear which are weights";
  }
  void whatIsNoModelIsSaid() {
    QFETCH(QStringList, files);
    QFETCH(QString, text);
    const QString repo = QStringLiteral("org/kind-%1").arg(qHash(files));
    for (const QString& file : files) m_server.add(repo + "/" + file, kConfig);
    verifyRefused(fetch(repo), ErrorCode::BadInput, text);
  }

  void whatWasCutOffSinceComesAgain() {
    addModel("org/cut-off", someWeights(1000));
    const auto fetched = fetch("org/cut-off");
    QVERIFY(fetched);
    const fs::path file = fetched->folder / "model.safetensors";
    const auto size = fs::file_size(file);
    fs::resize_file(file, size / 2);
    const auto again = fetch("org/cut-off@" + QString::fromStdString(fetched->commit));
    QVERIFY2(again, again ? "" : again.error().message.c_str());
    QCOMPARE(fs::file_size(file), size);
  }

  void aRefThatIsNoFileIsRefused() {
    addModel("org/pipe", someBytes(10));
    const fs::path ref = fs::path(m_cache->path().toStdString()) / "models--org--pipe" / "refs" / "main";
    fs::create_directories(ref.parent_path());
    QCOMPARE(::mkfifo(ref.c_str(), 0600), 0);
    verifyRefused(fetch("org/pipe"), ErrorCode::Environment, "cannot be written (it is not a file)");
  }

  void whatIsTooLargeToReadIsNotFetched() {
    m_server.add("org/large/config.json", QByteArray(17 << 20, ' '));
    verifyRefused(fetch("org/large"), ErrorCode::BadInput,
                  "The config.json of org/large has 17 MiB, but the limit is 16 MiB");
  }

  void theListOfFilesIsNoOrder() {
    const auto put = [this](const QString& repo, const QByteArray& faults) {
      m_server.add(repo + "/config.json", kConfig);
      m_server.add(repo + "/a.safetensors", someBytes(300));
      m_server.setFaults(repo, faults);
    };
    put("org/twice", "{'listed': ['config.json', 'a.safetensors', 'a.safetensors']}");
    QVERIFY(fetch("org/twice"));
    put("org/odd",
        "{'listed': ['config.json', 'b\\u0000.safetensors', 'c\\u001b[31m.safetensors', 'd\\n.safetensors']}");
    verifyRefused(fetch("org/odd"), ErrorCode::BadInput, "has no weights, only a config.json");
    put("org/unlisted", "{'no_listing': true}");
    verifyRefused(fetch("org/unlisted"), ErrorCode::Environment, "lists no files of org/unlisted. Check HF_ENDPOINT");
  }

  void missingNames() {
    verifyRefused(fetch("org/nowhere"), ErrorCode::BadInput, "has no model org/nowhere, or it is private");
    addModel("org/revisions", someBytes(10));
    verifyRefused(fetch("org/revisions@v9"), ErrorCode::BadInput, "org/revisions has no revision \"v9\"");
    QVERIFY(fetch("org/revisions@v1.0"));
  }

  void aRenamedModelIsFollowed() {
    addModel("org/new-name", someBytes(5000));
    m_server.setFaults("org/old-name", "{'renamed': 'org/new-name'}");
    const auto fetched = fetch("org/old-name");
    QVERIFY2(fetched, fetched ? "" : fetched.error().message.c_str());
    QVERIFY2(m_notes.join('\n').contains("org/old-name is now called org/new-name"), qPrintable(m_notes.join('\n')));
    QVERIFY(fetched->folder.string().find("models--org--old-name") != std::string::npos);
  }

  void theTokenStaysAtTheHub() {
    addModel("org/private", someBytes(5000), "{'token': 'hf_canary'}");
    verifyRefused(fetch("org/private"), ErrorCode::BadInput, "no token was given: set HF_TOKEN");
    SnapshotRequest request{*HubId::parse("org/private"), Wanted::Weights, m_server.settings(m_cache->path())};
    request.settings.token = Secret("hf_wrong");
    request.settings.tokenFrom = "HF_TOKEN";
    verifyRefused(fetchWith(request), ErrorCode::BadInput, "the token from HF_TOKEN has no access");
    request.settings.token = Secret("hf_canary");
    m_server.drainRequests();
    const auto fetched = fetchWith(request);
    QVERIFY2(fetched, fetched ? "" : fetched.error().message.c_str());
    int atSecond = 0;
    for (const HubRequest& asked : m_server.drainRequests()) {
      QCOMPARE(asked.hasToken, asked.server == "hub");
      atSecond += asked.server == "second" ? 1 : 0;
    }
    QVERIFY(atSecond > 0);
  }

  void theCacheServesWhenTheHubDoesNot() {
    addModel("org/offline", someBytes(5000));
    const auto online = fetch("org/offline");
    QVERIFY(online);
    SnapshotRequest request{*HubId::parse("org/offline"), Wanted::Weights, m_server.settings(m_cache->path())};
    request.settings.endpoint = "http://127.0.0.1:1";
    const auto unreachable = fetchWith(request);
    QVERIFY2(unreachable, unreachable ? "" : unreachable.error().message.c_str());
    QCOMPARE(unreachable->folder, online->folder);
    QVERIFY2(m_notes.join(' ').contains("Using the cached commit"), qPrintable(m_notes.join(' ')));
    request.settings.isOffline = true;
    request.settings.offlineBy = "HF_HUB_OFFLINE";
    QVERIFY(fetchWith(request));
    request.id = *HubId::parse("org/never");
    verifyRefusedOffline(fetchWith(request), "HF_HUB_OFFLINE");
    request.settings.isOffline = false;
    verifyRefusedOffline(fetchWith(request), "127.0.0.1 cannot be reached");
  }
  void cancellingKeepsWhatIsThere() {
    addModel("org/cancelled", someBytes(kLarge, 9), "{'bytes_per_s': 3000000}");
    std::stop_source stop;
    const Progress progress(stop.get_token());
    const std::jthread stopper([&](const std::stop_token& end) { stopWithAPart(stop, end); });
    const auto cancelled = fetch("org/cancelled", Wanted::Weights, false, progress);
    verifyRefused(cancelled, ErrorCode::Cancelled, "Stopped while");
    m_server.setFaults("org/cancelled", "{}");
    m_server.drainRequests();
    const auto fetched = fetch("org/cancelled");
    QVERIFY2(fetched, fetched ? "" : fetched.error().message.c_str());
    QCOMPARE(contentOf(fetched->folder / "model.safetensors"), someBytes(kLarge, 9));
    QVERIFY2(m_notes.size() == 1 && !m_notes[0].contains("20 MiB are fetched"), qPrintable(m_notes.join(' ')));
  }

  void aDamagedPartIsFetchedAnew() {
    addModel("org/damaged", someBytes(kLarge, 11), "{'bytes_per_s': 3000000}");
    std::stop_source stop;
    const Progress progress(stop.get_token());
    const std::jthread stopper([&](const std::stop_token& end) { stopWithAPart(stop, end); });
    QVERIFY(!fetch("org/damaged", Wanted::Weights, false, progress));
    QString partial;
    for (const QString& file : filesBelow(m_cache->path()))
      if (file.endsWith(".cleave.incomplete")) partial = file;
    QVERIFY(!partial.isEmpty());
    QFile file(partial);
    QVERIFY(file.open(QFile::ReadWrite) && file.write("damage") == 6);
    file.close();
    m_server.setFaults("org/damaged", "{}");
    const auto fetched = fetch("org/damaged");
    QVERIFY2(fetched, fetched ? "" : fetched.error().message.c_str());
    QCOMPARE(contentOf(fetched->folder / "model.safetensors"), someBytes(kLarge, 11));
    QVERIFY(!QFile::exists(partial));
  }

  void manyAtOnceFetchOnce() {
    addModel("org/shared", someBytes(kLarge, 12));
    m_server.drainRequests();
    std::vector<std::jthread> threads;
    std::atomic<int> right = 0;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&] {
        const SnapshotRequest request{*HubId::parse("org/shared"), Wanted::Weights, m_server.settings(m_cache->path())};
        const auto fetched = fetchSnapshot(request, {}, {});
        if (fetched && contentOf(fetched->folder / "model.safetensors") == someBytes(kLarge, 12)) ++right;
      });
    }
    threads.clear();
    QCOMPARE(right.load(), 4);
    int parts = 0;
    for (const HubRequest& request : m_server.drainRequests()) parts += request.server == "second" ? 1 : 0;
    QCOMPARE(parts, 3);
  }

  void aDiskThatIsTooSmallIsSaidBefore() {
    m_server.add("org/huge/config.json", kConfig);
    m_server.add("org/huge/model.safetensors", someBytes(100));
    QVERIFY(fetch("org/huge", Wanted::Config));
    m_server.setFaults("org/huge", "{'announce_weights': 562949953421312}");
    verifyRefused(fetch("org/huge"), ErrorCode::Environment, "Free space there, or choose another folder");
  }

  void aFolderThatCannotBeMadeIsNamed() {
    addModel("org/unwritable", someBytes(100));
    SnapshotRequest request{*HubId::parse("org/unwritable"), Wanted::Config,
                            m_server.settings("/proc/version/nowhere")};
    const auto fetched = fetchWith(request);
    QVERIFY(!fetched);
    QVERIFY2(fetched.error().message.find("Set HF_HUB_CACHE or --cache-dir") != std::string::npos,
             fetched.error().message.c_str());
  }

  void certificatesAreChecked() {
    QTemporaryDir folder;
    const QString key = folder.filePath("key.pem"), certificate = folder.filePath("certificate.pem");
    QProcess openssl;
    openssl.start("openssl", {"req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", certificate,
                              "-days", "2", "-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"});
    QVERIFY2(openssl.waitForFinished(cleave::test::kPatience) && openssl.exitCode() == 0,
             "openssl is needed to make a certificate");
    HubServer tls({certificate, key});
    QVERIFY(tls.isUp());
    tls.add("org/tls/config.json", kConfig);
    tls.add("org/tls/model.safetensors", someBytes(kLarge, 13));
    SnapshotRequest request{*HubId::parse("org/tls"), Wanted::Weights, tls.settings(m_cache->path())};
    verifyRefused(fetchWith(request), ErrorCode::Environment, "The certificate of 127.0.0.1 cannot be verified");
    request.settings.certificates = certificate.toStdString();
    const auto fetched = fetchWith(request);
    QVERIFY2(fetched, fetched ? "" : fetched.error().message.c_str());
    QCOMPARE(contentOf(fetched->folder / "model.safetensors"), someBytes(kLarge, 13));
    // The same without the token.
    tls.add("org/down/config.json", kConfig);
    tls.add("org/down/model.safetensors", someBytes(100, 14));
    tls.setFaults("org/down", QStringLiteral("{'redirect': '%1/org/down/x'}").arg(m_server.endpoint()).toUtf8());
    request.id = *HubId::parse("org/down");
    const auto refused = fetchWith(request);
    QVERIFY(!refused);
    QVERIFY2(refused.error().message.find("from https to http") != std::string::npos, refused.error().message.c_str());
  }
};

QTEST_GUILESS_MAIN(TstSnapshot)
#include "tst_snapshot.moc"
