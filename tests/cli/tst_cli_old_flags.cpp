/// Flags that commands have replaced still work: each gives the output of its command, and a hint on standard error.
/// Help and manual do not list them.
#include "tests/support/cli_json.h"

#include <QRegularExpression>
#include <QTest>

using namespace cleave::test;

namespace {

const QString kModel = model("llama");
constexpr const char* kOldFlags[] = {"--compare", "--world-sizes", "--preflight", "--pareto",
                                     "--best",    "--train-steps", "--generate",  "--bisect"};

/// The output without times, and without lines that depend on them or on the memory of the process.
QStringList comparable(const QByteArray& output) {
  static const QRegularExpression kTime("[0-9.]+ (ns|µs|ms|s|tokens/s)\\b");
  QStringList lines = QString::fromUtf8(output).remove(kTime).split('\n');
  lines.removeIf([](const QString& line) {
    return line.startsWith("rank ") || line.startsWith("others waited ") || line.startsWith("ranks reached ") ||
           line.startsWith("longest ");
  });
  return lines;
}

}  // namespace

class TestCliOldFlags : public QObject {
  Q_OBJECT
 private slots:
  void eachGivesTheOutputOfItsCommand_data() {
    QTest::addColumn<QStringList>("before");
    QTest::addColumn<QStringList>("now");
    QTest::addColumn<QByteArray>("hint");
    const auto row = [](const char* name, const QStringList& before, const QStringList& now, const char* hint) {
      QTest::newRow(name) << before << now << QByteArray(hint);
    };
    const QStringList split{"--ranks", "2", "--engine", "reference"};
    row("compare", {"plan", kModel, "--compare", "reference,optimal"}, {"compare", kModel, "reference,optimal"},
        "plan --compare is deprecated. Use: cleave-cli compare MODEL SIDES");
    row("world-sizes", {"plan", kModel, "--world-sizes", "1-3"}, {"world-sizes", kModel, "--sizes", "1-3"},
        "plan --world-sizes is deprecated. Use: cleave-cli world-sizes MODEL");
    row("preflight", {"plan", kModel, "--preflight"}, {"preflight", kModel},
        "plan --preflight is deprecated. Use: cleave-cli preflight MODEL");
    row("pareto", {"plan", kModel, "--pareto"}, {"pareto", kModel},
        "plan --pareto is deprecated. Use: cleave-cli pareto MODEL");
    row("best", {"plan", kModel, "--best", "3"}, {"best", kModel, "--count", "3"},
        "plan --best is deprecated. Use: cleave-cli best MODEL --count K");
    row("train", QStringList{"run", kModel, "--train-steps", "2", "--lr", "0.01"} + split,
        QStringList{"train", kModel, "--steps", "2", "--lr", "0.01"} + split,
        "run --train-steps is deprecated. Use: cleave-cli train MODEL --steps N");
    row("generate", QStringList{"run", kModel, "--generate", "3", "--prompt", "5,6"} + split,
        QStringList{"generate", kModel, "--tokens", "3", "--prompt", "5,6"} + split,
        "run --generate is deprecated. Use: cleave-cli generate MODEL --tokens N");
    row("bisect", QStringList{"run", kModel, "--bisect"} + split, QStringList{"bisect", kModel} + split,
        "run --bisect is deprecated. Use: cleave-cli bisect MODEL");
  }
  void eachGivesTheOutputOfItsCommand() {
    QFETCH(QStringList, before);
    QFETCH(QStringList, now);
    QFETCH(QByteArray, hint);
    const Finished old = cli(before), done = cli(now);
    QVERIFY2(old.exitCode == 0, old.err.constData());
    QVERIFY2(done.exitCode == 0, done.err.constData());
    QVERIFY(!done.out.isEmpty());
    QCOMPARE(comparable(old.out), comparable(done.out));
    QVERIFY2(old.err.contains("cleave-cli: " + hint + "\n"), old.err.constData());
    QVERIFY2(!done.err.contains("deprecated"), done.err.constData());
  }

  void earlierNamesStillWork() {
    QCOMPARE(cli({"reference"}).out, cli({"manual"}).out);
    for (const char* flag : {"--menu", "--candidates"})
      QCOMPARE(json({"plan", kModel, flag, "full"})["menu"].toString(), QString("full"));
  }

  void helpAndManualDoNotListThem() {
    const QByteArray plan = cli({"plan", "--help"}).out, run = cli({"run", "--help"}).out;
    const QByteArray manual = cli({"manual"}).out;
    const auto begin = manual.indexOf("\n## cleave-cli\n"), end = manual.indexOf("\n## cleave-rank\n");
    QVERIFY(plan.contains("--candidates") && run.contains("--shapes") && begin > 0 && end > begin);
    const QByteArray ofCli = manual.mid(begin, end - begin);
    for (const char* flag : kOldFlags)
      QVERIFY2(!plan.contains(flag) && !run.contains(flag) && !ofCli.contains(flag), flag);
    QVERIFY(!ofCli.contains("cleave-cli reference"));
  }

  void someExcludeEachOther_data() {
    QTest::addColumn<QStringList>("arguments");
    QTest::addColumn<QByteArray>("phrase");
    const auto row = [](const char* phrase, const QStringList& arguments) {
      QTest::newRow(phrase) << arguments << QByteArray(phrase);
    };
    row("--trace excludes --best", {"plan", kModel, "--best", "2", "--trace", "x.trace"});
    row("--pareto", {"plan", kModel, "--pareto", "--preflight"});
    row("leave --train-steps out", {"run", kModel, "--bisect", "--train-steps", "2"});
    row("leave --no-check out", {"run", kModel, "--bisect", "--no-check"});
    row("leave --mesh out", {"run", kModel, "--bisect", "--mesh", "dp=2,tp=2"});
    row("leave --train-steps out.", {"run", kModel, "--generate", "2", "--prompt", "5", "--train-steps", "2"});
    row("--prompt is a flag of cleave-cli generate", {"run", kModel, "--prompt", "5"});
    row("--lr applies to training: leave it out, add --train, or use cleave-cli train", {"run", kModel, "--lr", "0.1"});
    row("--mesh: write dp=REPLICAS,tp=RANKS", {"run", kModel, "--mesh", ""});
    row("--listen: write ADDRESS", {"run", kModel, "--listen", ""});
    row("--size sets a twice", {"plan", kModel, "--size", "a=1", "--size", "a=2"});
    row("--engine is reference, but pareto uses the engine optimal", {"pareto", kModel, "--engine", "reference"});
    row("--engine is learning, but best uses the engine optimal", {"best", kModel, "--engine", "learning"});
    row("--ranks is 4, but world-sizes tries several", {"world-sizes", kModel, "--ranks", "4"});
    row("is a model folder, and --size sets a size of an exported program", {"plan", kModel, "--size", "a=1"});
    row("\"trian\" is not a command. Did you mean train?", {"trian", kModel});
  }
  void someExcludeEachOther() {
    QFETCH(QStringList, arguments);
    QFETCH(QByteArray, phrase);
    const Finished done = cli(arguments);
    QCOMPARE(done.exitCode, 2);
    QVERIFY2(done.err.contains(phrase), done.err.constData());
    QVERIFY(done.out.isEmpty());
  }
};

QTEST_GUILESS_MAIN(TestCliOldFlags)
#include "tst_cli_old_flags.moc"
