// The names of models on a Hub, and the variables of huggingface_hub that locate its cache.
#include "hub/address.h"
#include "hub/cache.h"
#include "hub/hub_id.h"
#include "hub/hub_settings.h"

#include <QTemporaryDir>
#include <QTest>

#include <fstream>
#include <map>

using namespace cleave;
using namespace cleave::hub;

class TstHubId : public QObject {
  Q_OBJECT

  static Result<HubSettings> settings(const std::map<std::string, std::string>& variables) {
    return hubSettings([&](const char* name) -> std::optional<std::string> {
      const auto found = variables.find(name);
      return found == variables.end() ? std::nullopt : std::optional(found->second);
    });
  }

 private slots:
  void names_data() {
    QTest::addColumn<QString>("text");
    QTest::addColumn<QString>("repo");  // empty: the name is invalid
    QTest::addColumn<QString>("revision");
    QTest::newRow("plain") << "meta-llama/Llama-3.1-8B"
                           << "meta-llama/Llama-3.1-8B"
                           << "main";
    QTest::newRow("without owner") << "gpt2"
                                   << "gpt2"
                                   << "main";
    QTest::newRow("tag") << "a/b@v1.0"
                         << "a/b"
                         << "v1.0";
    QTest::newRow("branch") << "a/b@refs/pr/1"
                            << "a/b"
                            << "refs/pr/1";
    for (const char* bad : {"", "/b", "a/", "a/b/c", "a--b/c", "a/..b", "a/b.git", "-a/b", "a/b.", "a b/c", "a/b@",
                            "a/b@..", "a/b@x..y", "a/b@x y", "a/b@/x", "a/b@x.lock", "a/b@.x", "a/b?x", "a/\xC3\xA9"})
      QTest::newRow(bad) << QString::fromUtf8(bad) << QString() << QString();
    QTest::newRow("97 characters") << QString(97, 'a') << QString() << QString();
    QTest::newRow("96 characters") << QString(96, 'a') << QString(96, 'a') << "main";
  }
  void names() {
    QFETCH(QString, text);
    QFETCH(QString, repo);
    QFETCH(QString, revision);
    const auto id = HubId::parse(text.toStdString());
    QCOMPARE(id.has_value(), !repo.isEmpty());
    if (!id) return;
    QCOMPARE(QString::fromStdString(id->repo), repo);
    QCOMPARE(QString::fromStdString(id->revision), revision);
  }

  void aSnapshotSaysWhoseItIs() {
    const auto found =
        snapshotOf("/c/hub/models--Qwen--Qwen3-0.6B/snapshots/0123456789abcdef0123456789abcdef01234567/");
    QVERIFY(found);
    QCOMPARE(found->cache, fs::path("/c/hub"));
    QCOMPARE(found->id.repo, std::string("Qwen/Qwen3-0.6B"));
    QVERIFY(found->id.isCommit());
    QVERIFY(!snapshotOf("/models/llama"));
    QVERIFY(!snapshotOf("/models--a--b/blobs/x"));
    QVERIFY(!snapshotOf("/"));
  }

  void variables() {
    const auto plain = settings({{"HOME", "/home/a"}});
    QVERIFY(plain);
    QCOMPARE(plain->cache, fs::path("/home/a/.cache/huggingface/hub"));
    QCOMPARE(plain->endpoint, std::string("https://huggingface.co"));
    QVERIFY(plain->token.isEmpty() && !plain->isOffline);
    QCOMPARE(settings({{"HOME", "/home/a"}, {"XDG_CACHE_HOME", "/x"}})->cache, fs::path("/x/huggingface/hub"));
    QCOMPARE(settings({{"HOME", "/home/a"}, {"HF_HOME", "~/hf"}})->cache, fs::path("/home/a/hf/hub"));
    QCOMPARE(settings({{"HF_HOME", "/hf"}, {"HF_HUB_CACHE", "/elsewhere"}})->cache, fs::path("/elsewhere"));
    QVERIFY(!settings({}));
    QCOMPARE(settings({{"HOME", "/a"}, {"HF_ENDPOINT", "https://mirror.example/"}})->endpoint,
             std::string("https://mirror.example"));
    QVERIFY(!settings({{"HOME", "/a"}, {"HF_ENDPOINT", "ftp://mirror"}}));
    for (const char* wrong : {"http://127.0.0.1:99999", "http://[::1", "http://me:secret@host", "http://a b"}) {
      const auto refused = settings({{"HOME", "/a"}, {"HF_ENDPOINT", wrong}});
      QVERIFY2(!refused && refused.error().message.find("secret") == std::string::npos, wrong);
    }
    QCOMPARE(withoutUser("a http://u:p@h:1/x@y 'ftp://p@q' b@c"), std::string("a http://…@h:1/x@y 'ftp://…@q' b@c"));
    for (const char* yes : {"1", "on", "YES", "True"})
      QVERIFY(settings({{"HOME", "/a"}, {"HF_HUB_OFFLINE", yes}})->isOffline);
    QVERIFY(!settings({{"HOME", "/a"}, {"HF_HUB_OFFLINE", "0"}})->isOffline);
    QCOMPARE(settings({{"HOME", "/a"}, {"HF_HUB_DOWNLOAD_TIMEOUT", "30"}})->quietSeconds, 30);
    QVERIFY(!settings({{"HOME", "/a"}, {"HF_HUB_DOWNLOAD_TIMEOUT", "soon"}}));
  }

  void tokens() {
    QTemporaryDir home;
    const std::string folder = home.path().toStdString();
    std::ofstream(folder + "/token") << "hf_of_the_file\n";
    std::ofstream(folder + "/other") << " hf_other ";
    const auto tokenOf = [&](std::map<std::string, std::string> variables) {
      variables["HF_HOME"] = folder;
      return settings(variables)->token.reveal();
    };
    QCOMPARE(tokenOf({}), std::string("hf_of_the_file"));
    QCOMPARE(tokenOf({{"HF_TOKEN_PATH", folder + "/other"}}), std::string("hf_other"));
    QCOMPARE(tokenOf({{"HF_TOKEN", "hf_of_the_variable"}}), std::string("hf_of_the_variable"));
    QCOMPARE(tokenOf({{"HF_HUB_DISABLE_IMPLICIT_TOKEN", "1"}, {"HF_TOKEN", "x"}}), std::string());
    QVERIFY(!settings({{"HF_HOME", folder}, {"HF_TOKEN", "two\r\nlines: x"}}));
    // The reason if a token is there but not used.
    std::ofstream(folder + "/accents") << "hf_\xc3\xa9";
    std::ofstream(folder + "/empty") << "\n";
    const auto whyNone = [&](std::map<std::string, std::string> variables) {
      variables["HF_HOME"] = folder;
      return settings(variables)->whyNoToken;
    };
    QCOMPARE(whyNone({}), std::string());
    QVERIFY(whyNone({{"HF_HUB_DISABLE_IMPLICIT_TOKEN", "1"}, {"HF_TOKEN", "x"}})
                .starts_with("HF_HUB_DISABLE_IMPLICIT_TOKEN disables the implicit token"));
    QVERIFY(whyNone({{"HF_TOKEN_PATH", folder + "/accents"}}).ends_with("non-ASCII letters"));
    QCOMPARE(whyNone({{"HF_TOKEN_PATH", folder + "/empty"}}), folder + "/empty is empty");
    QCOMPARE(whyNone({{"HF_TOKEN_PATH", folder}}), folder + " cannot be read");
    QCOMPARE(whyNone({{"HF_TOKEN_PATH", folder + "/none"}}), std::string());
    HubSettings taken;
    QVERIFY(readTokenFrom(folder + "/other", taken));
    QCOMPARE(taken.token.reveal(), std::string("hf_other"));
    QVERIFY(!readTokenFrom(folder + "/none", taken));
  }
};

QTEST_GUILESS_MAIN(TstHubId)
#include "tst_hub_id.moc"
