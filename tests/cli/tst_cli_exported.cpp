// Exported programs on the command line: every archive computes the same as its model, on one and on several ranks.
#include <QDir>
#include <QDirIterator>
#include <QFile>
#include <QFileInfo>
#include <QIODevice>
#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>
#include <QRegularExpression>
#include <QTemporaryDir>
#include <QTest>

#include "tests/support/cli_json.h"
#include "tests/support/cli_process.h"
#include "tests/support/exported_archive.h"

using namespace cleave;
using test::Finished;

namespace {

const QString kExported = QStringLiteral(CLEAVE_TEST_DATA "/exported/");
const QString kVersions = QStringLiteral(CLEAVE_TEST_DATA "/torch-versions/");

QString write(const QTemporaryDir& folder, const QString& name, const std::string& bytes) {
  const QString path = folder.filePath(name);
  QFile file(path);
  if (!file.open(QIODevice::WriteOnly) || file.write(bytes.data(), std::ssize(bytes)) != std::ssize(bytes))
    qFatal("cannot write %s", qPrintable(path));
  return path;
}

QString said(const Finished& run) { return QString::fromUtf8(run.out + run.err).right(1500); }

}  // namespace

const QString kOthers = QStringLiteral("operator-of-others");  ///< refused; see refusesForeignOperators

class TestCliExported : public QObject {
  Q_OBJECT
 private slots:
  void everyArchiveRunsAsItsModelDid_data() {
    QTest::addColumn<QString>("archive");
    QTest::addColumn<int>("ranks");
    QDirIterator files(kExported, {QStringLiteral("*.pt2")}, QDir::Files);
    QStringList names;
    while (files.hasNext()) names << QFileInfo(files.next()).completeBaseName();
    names.sort();
    QVERIFY(names.size() > 40);
    for (const QString& name : names) {
      if (!QFile::exists(kExported + name + ".expected.safetensors") || name == kOthers) continue;
      // tst_compatibility runs the archives of families on 1 and 4 ranks.
      const bool isOfFamily = QFile::exists(QStringLiteral(CLEAVE_TEST_DATA "/families/") + name);
      for (const int ranks : isOfFamily ? std::vector{2} : std::vector{1, 2, 4})
        QTest::addRow("%s on %d", qPrintable(name), ranks) << name << ranks;
    }
  }
  void everyArchiveRunsAsItsModelDid() {
    QFETCH(const QString, archive);
    QFETCH(const int, ranks);
    const Finished run = test::cli({"run", kExported + archive + ".pt2", "--ranks", QString::number(ranks), "--engine",
                                    "reference", "--backend", "gloo", "--expect",
                                    kExported + archive + ".expected.safetensors"});  // 1e-4, except in half precision
    QVERIFY2(run.exitCode == 0, qPrintable(said(run)));
    QVERIFY(run.out.contains("passed: "));
  }

  /// For operators that stay replicated without a rule: the operator, its module, its line, and its cost.
  void namesOperatorsWithoutRule() {
    const Finished plan = test::cli({"plan", kExported + "distances.pt2", "--engine", "reference"});
    QCOMPARE(plan.exitCode, 0);
    const QString line =
        "(exported_modules.py:272: return self.out(torch.softmax(-torch.cdist(points, points), "
        "-1) @ self.value(x))";
    const auto sentence = QRegularExpression(
        R"(_softmax, neg\) takes [0-9.]+ .s of each rank's step and cannot be split: there is no rule for)");
    QVERIFY2(QString(plan.out).contains("there is no rule for `aten::_cdist_forward` yet " + line),
             qPrintable(said(plan)));
    QVERIFY2(QString(plan.out).contains(sentence), qPrintable(said(plan)));
    const Finished explained =
        test::cli({"explain", kExported + "distances.pt2", "--engine", "reference", "--value", "_cdist_forward_0"});
    QVERIFY2(explained.out.contains(line.mid(1, 40).toUtf8()), qPrintable(said(explained)));
  }

  void refusesForeignOperators() {
    const Finished run = test::cli({"plan", kExported + kOthers + ".pt2"});
    QCOMPARE(run.exitCode, 3);
    QVERIFY2(run.err.contains("torch.ops.demo.halve.default") && run.err.contains("not part of ATen") &&
                 run.err.contains("exported_modules.py:"),
             qPrintable(said(run)));
  }

  /// The published rotary embeddings of Llama 4 and DeepSeek V2 use complex numbers.
  void advisesOnComplexNumbers() {
    test::TinyProgram net = test::TinyProgram::make();
    const auto named = [](const char* name) { return nlohmann::json{{"as_tensor", {{"name", name}}}}; };
    net.call()["target"] = "torch.ops.aten.polar.default";
    net.call()["inputs"] = {{{"name", "abs"}, {"arg", named("x")}, {"kind", 1}},
                            {{"name", "angle"}, {"arg", named("x")}, {"kind", 1}}};
    net.graph()["tensor_values"]["linear"] = net.graph()["tensor_values"]["x"];
    net.graph()["tensor_values"]["linear"]["dtype"] = 10;
    const QTemporaryDir folder;
    const Finished run = test::cli({"plan", write(folder, "net.pt2", net.bytes())});
    QCOMPARE(run.exitCode, 3);
    QVERIFY2(run.err.contains("torch.ops.aten.polar.default") && run.err.contains("net.py:7") &&
                 run.err.contains("it gives complex numbers, which Cleave's graphs do not support. Compute with pairs "
                                  "of real numbers (a rotary embedding as x * cos + rotate_half(x) * sin, not with "
                                  "torch.polar and view_as_complex) and export the model again"),
             qPrintable(said(run)));
  }

  /// Archives of each version of torch. Those without readable weights get a weights file.
  void everyVersionOfTorchRuns_data() {
    QTest::addColumn<QString>("version");
    for (const char* version : {"2.6.0", "2.8.0", "2.9.1", "2.11.0", "2.15.0"}) QTest::newRow(version) << version;
  }
  void everyVersionOfTorchRuns() {
    QFETCH(const QString, version);
    const bool isPickled = version < QStringLiteral("2.9") && !version.startsWith("2.1");
    const QString archive = kVersions + "tiny-" + version + ".pt2";
    QStringList arguments{"run",       archive,     "--ranks", "2",        "--engine",
                          "reference", "--backend", "gloo",    "--expect", kVersions + "tiny.expected.safetensors"};
    if (isPickled) {
      const Finished without = test::cli(arguments);
      QCOMPARE(without.exitCode, 3);
      QVERIFY2(without.err.contains("has no weights to read") && without.err.contains("--weights"),
               qPrintable(said(without)));
      arguments << "--weights" << kVersions + "tiny.weights.safetensors";
    }
    const Finished run = test::cli(arguments);
    QVERIFY2(run.exitCode == 0 && run.out.contains("passed: "), qPrintable(said(run)));
  }

  void plansForOtherExportedSizes() {
    const QString archive = kVersions + "tiny-2.11.0.pt2";
    const Finished run = test::cli(
        {"run", archive, "--ranks", "2", "--batch", "3", "--seq", "12", "--backend", "gloo", "--engine", "reference"});
    QVERIFY2(run.exitCode == 0 && run.out.contains("passed: "), qPrintable(said(run)));
    const Finished tooLong = test::cli({"plan", archive, "--seq", "65"});
    QCOMPARE(tooLong.exitCode, 2);
    QVERIFY2(tooLong.err.contains("was exported for sizes of s27 from 2 to 64, not for 65"), qPrintable(said(tooLong)));
    const Finished fixed = test::cli({"plan", kExported + "llama.pt2", "--batch", "7"});
    QCOMPARE(fixed.exitCode, 2);
    QVERIFY2(fixed.err.contains("was exported for batch") && fixed.err.contains("--batch is 7"),
             qPrintable(said(fixed)));
    const Finished dtype = test::cli({"plan", archive, "--dtype", "bfloat16"});
    QCOMPARE(dtype.exitCode, 2);
    QVERIFY(dtype.err.contains("with fixed element types"));
  }

  /// A plan of an archive is checked, reopened, run and exported like any other, and names lines of code.
  void aPlanOfAnArchiveIsAPlan() {
    const QTemporaryDir folder;
    const QString archive = kVersions + "tiny-2.11.0.pt2", plan = folder.filePath("plan.json");
    const Finished planned = test::cli({"plan", archive, "--ranks", "2", "--engine", "reference", "--json", plan});
    QVERIFY2(planned.exitCode == 0, qPrintable(said(planned)));
    QFile file(plan);
    QVERIFY(file.open(QIODevice::ReadOnly));
    const QJsonObject json = QJsonDocument::fromJson(file.readAll()).object();
    QCOMPARE(json["model"].toObject()["exported"].toBool(), true);
    QCOMPARE(json["model"].toObject()["sizes"].toObject()["s27"].toInt(), 8);
    bool namesLine = false;
    for (const auto& value : json["values"].toArray())
      namesLine = namesLine || value.toObject()["source"].toString().contains("q,k,v=s.qkv(s.norm(x)).chunk(3,-1)");
    QVERIFY(namesLine);
    const Finished checked = test::cli({"check", plan});
    QVERIFY2(checked.exitCode == 0, qPrintable(said(checked)));
    const Finished run =
        test::cli({"run", plan, "--backend", "gloo", "--expect", kVersions + "tiny.expected.safetensors"});
    QVERIFY2(run.exitCode == 0, qPrintable(said(run)));
    const Finished exported = test::cli({"export", archive, "--format", "dot", "--out", folder.filePath("g.dot")});
    QVERIFY2(exported.exitCode == 0, qPrintable(said(exported)));
    const Finished explained = test::cli({"explain", archive, "--engine", "reference", "--value", "linear_0"});
    QVERIFY2(explained.exitCode == 0, qPrintable(said(explained)));
    const Finished info = test::cli({"info", archive});
    QVERIFY2(info.out.contains("exported by    torch 2.11.0") && info.out.contains("ids i64[2,8]"),
             qPrintable(said(info)));
  }

  void theArchiveIsNotOverwritten() {
    const QTemporaryDir folder;
    const QString archive = folder.filePath("a.pt2");
    QVERIFY(QFile::copy(kVersions + "tiny-2.11.0.pt2", archive));
    const Finished run = test::cli({"plan", archive, "--json", archive});
    QCOMPARE(run.exitCode, 2);
    QVERIFY(QFile(archive).size() == QFile(kVersions + "tiny-2.11.0.pt2").size());
  }

  void wrongArchivesAreRefusedInOneSentence_data() {
    QTest::addColumn<int>("lie");
    QTest::addColumn<QString>("words");
    QTest::newRow("an operator that does not exist") << 0 << "LibTorch does not have this operator";
    QTest::newRow("an unknown namespace") << 1 << "not part of ATen";
    QTest::newRow("a result of another shape") << 2 << "in the archive \"linear\" is f32[2,5]";
    QTest::newRow("an argument of another kind") << 3 << "its argument weight must be of type Tensor";
    QTest::newRow("an argument too many") << 4 << "an argument that the operator does not have";
    QTest::newRow("a weight that does not fit") << 5 << "is stored as";
    QTest::newRow("2^60 elements") << 6 << "does not fit 64-bit sizes";
    QTest::newRow("a cycle") << 7 << "which is not defined before it";
    QTest::newRow("a result that depends on data") << 8 << "depend on the values of its operands";
    QTest::newRow("a million million pieces") << 9 << "the operator returns";
    QTest::newRow("not a zip archive") << 10 << "a .pt2 file, but not a zip archive";
    QTest::newRow("cut off") << 11 << "not a complete zip archive";
    QTest::newRow("a file to read") << 12 << "the operator reads a file";
  }
  void wrongArchivesAreRefusedInOneSentence() {
    using nlohmann::json;
    QFETCH(const int, lie);
    QFETCH(const QString, words);
    test::TinyProgram tiny = test::TinyProgram::make();
    json& call = tiny.call();
    const json x = call["inputs"][0];
    const auto only = [&](const char* target, const json& inputs) {
      call["target"] = target;
      call["inputs"] = inputs;
    };
    if (lie == 0) call["target"] = "torch.ops.aten.linearr.default";
    if (lie == 1) call["target"] = "torch.ops.mine.linear.default";
    if (lie == 2) tiny.graph()["tensor_values"]["linear"]["sizes"][1]["as_int"] = 5;
    if (lie == 3) call["inputs"][1]["arg"] = {{"as_string", "x"}};
    if (lie == 4) call["inputs"].push_back({{"name", "other"}, {"arg", {{"as_int", 1}}}});
    if (lie == 5) tiny.graph()["tensor_values"]["p_w"]["sizes"][0]["as_int"] = 4;
    if (lie == 6) tiny.graph()["tensor_values"]["x"]["sizes"][0]["as_int"] = 1LL << 60;
    if (lie == 7) call["inputs"][0]["arg"]["as_tensor"]["name"] = "linear";
    if (lie == 8) only("torch.ops.aten.nonzero.default", json::array({x}));
    if (lie == 9) {
      tiny.graph()["tensor_values"]["x"]["sizes"][0]["as_int"] = 1LL << 40;
      json self = x;
      self["name"] = "self";
      only("torch.ops.aten.unbind.int", json::array({self}));
      call["outputs"] = {{{"as_tensors", {{{"name", "linear"}}}}}};
    }
    if (lie == 12)
      only("torch.ops.aten.from_file.default", {{{"name", "filename"}, {"arg", {{"as_string", "/etc/passwd"}}}}});
    std::string bytes = tiny.bytes();
    if (lie == 10) bytes = "no archive";
    if (lie == 11) bytes.resize(bytes.size() - 1);
    const QTemporaryDir folder;
    const Finished run = test::cli({"plan", write(folder, "lie.pt2", bytes)});
    QCOMPARE(run.exitCode, 3);
    QVERIFY2(run.err.contains(words.toUtf8()), qPrintable(said(run)));
    const QByteArray sentence = run.err.mid(run.err.indexOf("cleave-cli: ")).trimmed();
    QCOMPARE(sentence.count('\n'), 0);
    if (lie < 10) QVERIFY2(lie >= 5 || sentence.contains("in module fc, at net.py:7"), qPrintable(said(run)));
  }
};

QTEST_GUILESS_MAIN(TestCliExported)
#include "tst_cli_exported.moc"
