/// Ranks that were started separately, as torchrun and Slurm do, with different data: the difference is found before
/// they compute.
#include "tests/launch/odd_ranks.h"
#include "tests/support/safetensors_edit.h"

#include <QDir>
#include <QRegularExpression>

using namespace cleave;
using namespace cleave::test;

class RanksApartTest : public QObject {
  Q_OBJECT
  OddRanks m_ranks;
  QString m_plan;

  /// The plan with one text in its file replaced.
  QString changedPlan(const QString& name, const QByteArray& from, const QByteArray& to) {
    QByteArray text = readBytes(m_plan);
    if (!text.contains(from)) qFatal("the plan has no %s", from.constData());
    writeBytes(m_ranks.path(name), text.replace(text.indexOf(from), from.size(), to));
    return m_ranks.path(name);
  }

  /// A copy of the model, and a plan for it. If a tensor is given, its first element is changed.
  QString planForACopy(const QString& name, const char* tensor) {
    const QString source = QStringLiteral(CLEAVE_TEST_DATA "/models/llama");
    const QString folder = m_ranks.path(name);
    QDir(folder).mkpath(".");
    for (const QString& file : QDir(source).entryList(QDir::Files)) {
      const Alteration alter = [&](QJsonObject& header, QByteArray& data) {
        if (tensor && header.contains(QLatin1String(tensor))) withNumber(tensor, 0, 7)(header, data);
      };
      const QString from = source + "/" + file, to = folder + "/" + file;
      file.endsWith(".safetensors") ? writeAltered(from, to, alter) : writeBytes(to, readBytes(from));
    }
    return changedPlan(name + ".json", "\"source\":\"" + source.toUtf8() + "\"",
                       "\"source\":\"" + folder.toUtf8() + "\"");
  }

 private slots:
  void initTestCase() {
    m_plan = m_ranks.makePlan(
        "plan.json", {QStringLiteral(CLEAVE_TEST_DATA "/models/llama"), "--ranks", "3", "--batch", "2", "--seq", "16"});
  }

  void whatIsNotAlikeIsFoundBeforeTheyCompute_data() {
    QTest::addColumn<QString>("preparation");
    QTest::addColumn<QString>("words");  // a regular expression for the failure
    const auto row = [](const char* name, const QString& preparation, const char* words) {
      QTest::newRow(name) << preparation << QString(words);
    };
    const QString expected = QStringLiteral(CLEAVE_TEST_DATA "/models/llama/expected.safetensors");
    row("all alike", "", "^succeeded$");
    row("another seed", "plan=" + changedPlan("seed.json", "\"seed\":0", "\"seed\":1"),
        "^rank 1, code 3: .*: Rank 1 has plan [0-9a-f]{16}, but rank 0 has [0-9a-f]{16}\\. Give all ranks the same "
        "plan\\.$");
    row("another placement",
        "plan=" + m_ranks.makePlan("other.json",
                                   {QStringLiteral(CLEAVE_TEST_DATA "/models/llama"), "--ranks", "3", "--batch", "2",
                                    "--seq", "16", "--pin", "lm_head=replicated", "--engine", "reference"}),
        "^rank 1, code 3: .*: Rank 1 has plan [0-9a-f]{16}, but rank 0 has [0-9a-f]{16}\\.");
    row("another input", "more='--input " + expected + "'",
        "^rank 1, code 3: .*: Rank 1 has input [0-9a-f]{16}, but rank 0 has [0-9a-f]{16}\\.");
    row("no weights", "more=--skip-weights",
        "^rank 1, code 3: .*: Rank 1 has --skip-weights on, but rank 0 has off\\. Give all ranks the same "
        "--skip-weights\\.$");
    row("more passes", "more='--passes 2'",
        "^rank 1, code 3: .*: Rank 1 has --passes 2, but rank 0 has 1\\. Give all ranks the same --passes\\.$");
    row("the model elsewhere", "plan=" + planForACopy("copy", nullptr), "^succeeded$");
    row("another whole weight", "plan=" + planForACopy("altered", "model.norm.weight"),
        "^rank 1, code 3: .*: Rank 1 has other values of model\\.norm\\.weight than rank 0\\. Give all ranks the same "
        "model files\\.$");
  }
  void whatIsNotAlikeIsFoundBeforeTheyCompute() {
    QFETCH(QString, preparation);
    QFETCH(QString, words);
    bool hasComputed = false;
    const auto outcome =
        launch::launch(m_ranks.request(m_plan, 3, 1, preparation), [&](const launch::RankEvent& event) {
          const auto* change = event.message ? std::get_if<protocol::PhaseChange>(&*event.message) : nullptr;
          hasComputed = hasComputed || (change && change->phase == protocol::Phase::Running);
        });
    const QString said = inWords(outcome);
    QVERIFY2(QRegularExpression(words).match(said).hasMatch(), qPrintable(said));
    QCOMPARE(hasComputed, said == "succeeded");
  }

  /// Rank 0 may be the different one. Then the others report how they differ from it.
  void anOddRankZeroIsFound() {
    const QString plan = changedPlan("seed.json", "\"seed\":0", "\"seed\":1");
    const auto outcome = launch::launch(m_ranks.request(m_plan, 3, 0, "plan=" + plan), [](const launch::RankEvent&) {});
    const QString said = inWords(outcome);
    const QRegularExpression expected("^rank [12], code 3: .*: Rank [12] has plan [0-9a-f]{16}, but rank 0 has ");
    QVERIFY2(expected.match(said).hasMatch(), qPrintable(said));
  }
};

QTEST_GUILESS_MAIN(RanksApartTest)
#include "tst_ranks_apart.moc"
