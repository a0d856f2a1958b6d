/// A rank without free descriptors or memory reports it itself, and no other rank is blamed.
#include "tests/launch/odd_ranks.h"

#include <QRegularExpression>

using namespace cleave;
using namespace cleave::test;

class RankLimitsTest : public QObject {
  Q_OBJECT
  OddRanks m_ranks;
  QString m_plan, m_big;

  static std::int64_t peakAddresses(pid_t pid) {
    QFile status(QStringLiteral("/proc/%1/status").arg(pid));
    if (!status.open(QIODevice::ReadOnly)) return 0;
    const QByteArray text = status.readAll();
    const qsizetype at = text.indexOf("VmPeak:");
    return at < 0 ? 0 : text.mid(at + 7, text.indexOf('\n', at) - at - 9).trimmed().toLongLong();
  }

 private slots:
  void initTestCase() {
    m_plan = m_ranks.makePlan("plan.json",
                              {QStringLiteral(CLEAVE_TEST_DATA "/models/llama"), "--ranks", "2", "--seq", "16"});
    QFile config(m_ranks.path("config.json"));
    QVERIFY(config.open(QIODevice::WriteOnly));
    config.write(
        "{\"architectures\": [\"LlamaForCausalLM\"], \"model_type\": \"llama\", \"hidden_size\": 1024, "
        "\"intermediate_size\": 2752,"
        " \"num_hidden_layers\": 8, \"num_attention_heads\": 8, \"num_key_value_heads\": 8, \"vocab_size\": 8192, "
        "\"max_position_embeddings\": 512,"
        " \"rms_norm_eps\": 1e-6, \"rope_theta\": 10000.0, \"hidden_act\": \"silu\", \"tie_word_embeddings\": false, "
        "\"torch_dtype\": \"float32\"}");
    config.close();
    m_big = m_ranks.makePlan("big.json", {m_ranks.path("config.json"), "--ranks", "2", "--seq", "64"});
  }

  void aRankWithoutDescriptorsIsNamedWithItsLimit_data() {
    QTest::addColumn<int>("rank");
    QTest::addColumn<int>("descriptors");
    for (int rank : {0, 1}) {
      for (int descriptors : {10, 14, 20, 28, 36})
        QTest::addRow("rank %d with %d", rank, descriptors) << rank << descriptors;
    }
  }
  void aRankWithoutDescriptorsIsNamedWithItsLimit() {
    QFETCH(int, rank);
    QFETCH(int, descriptors);
    const auto outcome =
        launch::launch(m_ranks.request(m_plan, 2, rank, QStringLiteral("ulimit -n %1").arg(descriptors)),
                       [](const launch::RankEvent&) {});
    const QString said = inWords(outcome);
    QVERIFY2(said.startsWith(QStringLiteral("rank %1, code 4: ").arg(rank)), qPrintable(said));
    QVERIFY2(said.contains(QStringLiteral("limited to %1 open files and connections (ulimit -n)").arg(descriptors)),
             qPrintable(said));
    QCOMPARE(said.count('\n'), 0);
  }

  /// A soft limit that the process may raise itself must not fail.
  void aSoftLimitIsRaised() {
    const auto outcome =
        launch::launch(m_ranks.request(m_plan, 2, 1, "ulimit -S -n 16"), [](const launch::RankEvent&) {});
    QCOMPARE(inWords(outcome), QString("succeeded"));
  }

  /// From far too little to slightly too little for the rank.
  void aRankWithoutMemoryIsNamedWithItsLimit() {
    std::int64_t needed = 0, pid = 0;
    launch::LaunchRequest free = m_ranks.request(m_big, 2, 1, "");
    free.rankArguments = {"--skip-weights"};
    const auto whole = launch::launch(free, [&](const launch::RankEvent& event) {
      if (!event.message || event.rank != 1) return;
      if (const auto* hello = std::get_if<protocol::Hello>(&*event.message)) pid = hello->pid;
      if (std::holds_alternative<protocol::MemorySample>(*event.message))
        needed = std::max(needed, peakAddresses(static_cast<pid_t>(pid)));
    });
    QCOMPARE(inWords(whole), QString("succeeded"));
    QVERIFY(needed > 0);
    int failed = 0;
    for (int percent : {85, 60, 45, 40, 36}) {
      launch::LaunchRequest request =
          m_ranks.request(m_big, 2, 1, QStringLiteral("ulimit -v %1").arg(needed * percent / 100));
      request.rankArguments = {"--skip-weights"};
      const QString said = inWords(launch::launch(request, [](const launch::RankEvent&) {}));
      qInfo("%d %% of %lld KiB: %s", percent, static_cast<long long>(needed), qPrintable(said));
      if (said == "succeeded") continue;
      ++failed;
      QVERIFY2(said.startsWith("rank 1, code 4: "), qPrintable(said));
      QVERIFY2(said.contains("(ulimit -v)"), qPrintable(said));
      QCOMPARE(said.count('\n'), 0);
    }
    QVERIFY(failed > 1);
    saysWhatItHolds(needed);
  }

 private:
  /// A rank that distinguishes allocations names the largest, and how to reduce them.
  void saysWhatItHolds(std::int64_t needed) {
    int said = 0;
    for (int percent : {95, 90, 80, 70}) {
      launch::LaunchRequest request =
          m_ranks.request(m_big, 2, 1, QStringLiteral("ulimit -v %1").arg(needed * percent / 100));
      request.rankArguments = {"--skip-weights", "--times"};
      const QString words = inWords(launch::launch(request, [](const launch::RankEvent&) {}));
      if (words == "succeeded" || !words.contains("there is no memory left")) continue;
      static const QRegularExpression kHolds(
          "[0-9.]+ .iB are allocated on this rank\\. Largest: `model\\.[^`]+` f32\\[[0-9,]+\\] [0-9.]+ .iB.*"
          "parameters with [0-9.]+ .iB\\. To reduce it, use more ranks or a smaller element type \\(--ranks, "
          "--dtype\\)\\.");
      said += kHolds.match(words).hasMatch();
      qInfo("%d %%: %s", percent, qPrintable(words));
    }
    QVERIFY(said > 0);
  }
};

QTEST_GUILESS_MAIN(RankLimitsTest)
#include "tst_rank_limits.moc"
