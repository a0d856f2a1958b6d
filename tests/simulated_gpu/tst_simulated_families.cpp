/// Every family and every archive on the simulated GPU: forward passes compared with transformers' outputs, training
/// and generation with an unsplit run. Rank counts and options rotate over the rows. CLEAVE_RANDOM_SCALE=3 runs all
/// rank counts.
#include "families/family_table.h"
#include "tests/support/seeds.h"
#include "tests/support/simulated_run.h"

#include <QDir>
#include <QFile>
#include <QTest>

using namespace cleave;

namespace {

constexpr std::array kRanks{2, 1, 4};

QStringList families() {
  return QDir(QStringLiteral(CLEAVE_TEST_DATA "/families")).entryList(QDir::Dirs | QDir::NoDotAndDotDot);
}
QString folderOf(const QString& family) { return QStringLiteral(CLEAVE_TEST_DATA "/families/") + family; }

/// Encoders cannot generate, and neither can a decoder with bidirectional attention.
bool generates(const QString& family) {
  return !family.startsWith("bert") && !family.startsWith("roberta") && !family.endsWith("-both-ways");
}

/// The rank counts of the row with this index.
std::vector<int> ranksOf(qsizetype index) {
  if (test::rounds(1) > 1) return {kRanks.begin(), kRanks.end()};
  return {kRanks[static_cast<std::size_t>(index) % kRanks.size()]};
}

void familyRows() {
  QTest::addColumn<QString>("family");
  QTest::addColumn<int>("ranks");
  QTest::addColumn<int>("turn");
  const QStringList all = families();
  for (qsizetype i = 0; i < all.size(); ++i) {
    for (const int ranks : ranksOf(i))
      QTest::addRow("%s on %d", qPrintable(all[i]), ranks) << all[i] << ranks << int(i);
  }
}

void passes(const QStringList& arguments) {
  QByteArray wrong;
  test::passedReport(arguments, wrong);
  QVERIFY2(wrong.isEmpty(), wrong.constData());
}

QStringList on(int ranks) { return {"--ranks", QString::number(ranks), "--engine", "reference"}; }

}  // namespace

class TestSimulatedFamilies : public QObject {
  Q_OBJECT
 private slots:
  void computesWhatTransformersDoes_data() { familyRows(); }
  void computesWhatTransformersDoes() {
    QFETCH(QString, family);
    QFETCH(int, ranks);
    const QString folder = folderOf(family);
    passes(QStringList{folder} + on(ranks) + QStringList{"--expect", folder + "/expected.safetensors"});
  }

  void trainsAsUnsplit_data() { familyRows(); }
  void trainsAsUnsplit() {
    QFETCH(QString, family);
    QFETCH(int, ranks);
    QFETCH(int, turn);
    const std::array<QStringList, 4> options{QStringList{"--clip-norm", "1"},
                                             {"--checkpoint-activations"},
                                             ranks > 1 ? QStringList{"--sequence-parallel", "on"} : QStringList{},
                                             {"--accumulate", "2"}};
    passes(QStringList{folderOf(family)} + on(ranks) + QStringList{"--train-steps", "2", "--optimizer", "sgd"} +
           options[static_cast<std::size_t>(turn) % options.size()]);
  }

  void generatesAsUnsplit_data() { familyRows(); }
  void generatesAsUnsplit() {
    QFETCH(QString, family);
    QFETCH(int, ranks);
    if (!generates(family)) return;
    passes(QStringList{folderOf(family)} + on(ranks) + QStringList{"--prompt", "5,6,7,8", "--generate", "4"});
  }

  void archivesComputeWhatTheirModelsDo_data() {
    QTest::addColumn<QString>("archive");
    QTest::addColumn<int>("ranks");
    const QDir folder(QStringLiteral(CLEAVE_TEST_DATA "/exported"));
    const QStringList all = folder.entryList({"*.pt2"}, QDir::Files);
    for (qsizetype i = 0; i < all.size(); ++i) {
      const QString archive = folder.filePath(all[i]);
      const QString expected = QString(archive).replace(".pt2", ".expected.safetensors");
      if (!QFile::exists(expected) || all[i] == "operator-of-others.pt2") continue;  // not ATen's: not opened
      for (const int ranks : ranksOf(i)) QTest::addRow("%s on %d", qPrintable(all[i]), ranks) << archive << ranks;
    }
  }
  void archivesComputeWhatTheirModelsDo() {
    QFETCH(QString, archive);
    QFETCH(int, ranks);
    passes(QStringList{archive} + on(ranks) +
           QStringList{"--expect", QString(archive).replace(".pt2", ".expected.safetensors")});
  }
};

QTEST_GUILESS_MAIN(TestSimulatedFamilies)
#include "tst_simulated_families.moc"
