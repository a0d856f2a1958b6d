/// Ranks that were started apart, as torchrun and Slurm start them, and do not have the same: found before they
/// compute.
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

  /// The plan with one text of its file replaced.
  QString changedPlan(const QString& name, const QByteArray& from, const QByteArray& to) {
    QByteArray text = readBytes(m_plan);
    if (!text.contains(from)) qFatal("the plan has no %s", from.constData());
    writeBytes(m_ranks.path(name), text.replace(text.indexOf(from), from.size(), to));
    return m_ranks.path(name);
  }

  /// A copy of the model, and a plan for it; the tensor's first element is another one where there is a tensor.
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
    QTest::addColumn<QString>("words");  // a regular expression; of the failure
    const auto row = [](const char* name, const QString& preparation, const char* words) {
      QTest::newRow(name) << preparation << QString(words);
    };
    const QString expected = QStringLiteral(CLEAVE_TEST_DATA "/models/llama/expected.safetensors");
    row("all alike", "", "^succeeded$");
    row("another seed", "plan=" + changedPlan("seed.json", "\"seed\":0", "\"seed\":1"),
        "^rank 1, code 3: .*: Rank 1 was started with another plan than rank 0 \\([0-9a-f]{16}, not [0-9a-f]{16}\\): "
        "give all ranks the same\\.$");
    row("another placement",
        "plan=" + m_ranks.makePlan("other.json",
                                   {QStringLiteral(CLEAVE_TEST_DATA "/models/llama"), "--ranks", "3", "--batch", "2",
                                    "--seq", "16", "--pin", "lm_head=replicated", "--engine", "reference"}),
        "^rank 1, code 3: .*: Rank 1 was started with another plan than rank 0");
    row("another input", "more='--input " + expected + "'",
        "^rank 1, code 3: .*: Rank 1 was started with another input than rank 0");
    row("no weights", "more=--skip-weights",
        "^rank 1, code 3: .*: Rank 1 was started with another setting of --skip-weights than rank 0 \\(on, not off\\)");
    row("more passes", "more='--passes 2'",
        "^rank 1, code 3: .*: Rank 1 was started with another number of --passes than rank 0 \\(2, not 1\\)");
    row("the model elsewhere", "plan=" + planForACopy("copy", nullptr), "^succeeded$");
    row("another whole weight", "plan=" + planForACopy("altered", "model.norm.weight"),
        "^rank 1, code 3: .*: Rank 1 holds other values of model\\.norm\\.weight than rank 0, and they should be the "
        "same: give all ranks the same files of the model\\.$");
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

  /// Rank 0 may be the odd one; then the others say how they differ from it.
  void anOddRankZeroIsFound() {
    const QString plan = changedPlan("seed.json", "\"seed\":0", "\"seed\":1");
    const auto outcome = launch::launch(m_ranks.request(m_plan, 3, 0, "plan=" + plan), [](const launch::RankEvent&) {});
    const QString said = inWords(outcome);
    QVERIFY2(QRegularExpression("^rank [12], code 3: .*: Rank [12] was started with another plan than rank 0")
                 .match(said)
                 .hasMatch(),
             qPrintable(said));
  }
};

QTEST_GUILESS_MAIN(RanksApartTest)
#include "tst_ranks_apart.moc"
