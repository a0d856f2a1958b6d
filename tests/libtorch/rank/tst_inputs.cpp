/// The inputs of a rank, from a file or generated. Invalid inputs must be refused before anything runs.
#include "formats/safetensors.h"
#include "libtorch/rank/execute/inputs.h"
#include "libtorch/rank/execute/interpreter.h"
#include "libtorch/rank/execute/tensor_digest.h"
#include "tests/libtorch/rank/ranks_as_threads.h"

#include <ATen/ATen.h>

#include <QTemporaryDir>
#include <QTest>

#include <filesystem>

using namespace cleave;
using namespace cleave::tests;
using namespace cleave::torch_rank;
using graph::DType;

class InputsTest : public QObject {
  Q_OBJECT
  QTemporaryDir m_folder;

 private slots:
  void readsInputsAndSaysWhatDoesNotFit() {
    const auto file = std::filesystem::path(m_folder.filePath("inputs.safetensors").toStdString());
    const at::Tensor ids = at::randint(0, 9, {2, 3}, at::kInt);
    const std::vector<formats::TensorView> views{
        {"input_ids", {DType::Int32, {2, 3}}, {static_cast<const std::byte*>(ids.data_ptr()), ids.nbytes()}}};
    QVERIFY(formats::writeSafetensors(file, views));
    Program fits =
        bound("input_ids: i64[2,3] = input\nadd_0: i64[2,3] = aten::add.Scalar(input_ids, 0)\nreturn y=add_0\n");
    QVERIFY(readInputs(fits, file));
    COMPARE_TENSORS(runAlone(fits)[0].second, ids.to(at::kLong), 0);
    Program other = bound("input_ids: i64[2,4] = input\nreturn y=input_ids\n");
    const auto wrong = readInputs(other, file);
    QVERIFY(!wrong && wrong.error().message.find("[2, 3]") != std::string::npos);
    Program more = bound("labels: i64[2,3] = input\nreturn y=labels\n");
    const auto lacking = readInputs(more, file);
    QVERIFY(!lacking && lacking.error().message.find("labels") != std::string::npos);
  }

  /// Checked on the host, because a wrong index in a kernel breaks a GPU's context.
  void indicesOutOfRangeAreNamedBeforeTheRun_data() {
    QTest::addColumn<QByteArray>("program");
    QTest::addColumn<QList<qint64>>("values");
    QTest::addColumn<QString>("complaint");  // empty: accepted
    const char* const kTable =
        "ids: i64[2,2] = input\nw: f32[5,2] = parameter\nembedding_0: f32[2,2,2] = aten::embedding(w, ids)\nreturn "
        "y=embedding_0\n";
    const char* const kPart =
        "ids: i64[2,2] = input\nw: f32[5,2] = parameter\n"
        "vocab_embedding_0: f32[2,2,2] = cleave::vocab_embedding(w, ids, 10, -1)\nreturn y=vocab_embedding_0\n";
    const char* const kShifted =
        "ids: i64[2,2] = input\nw: f32[5,2] = parameter\nadd_0: i64[2,2] = aten::add.Tensor(ids, 2)\n"
        "view_0: i64[4] = aten::view(add_0, [4])\nembedding_0: f32[4,2] = aten::embedding(w, view_0)\nreturn "
        "y=embedding_0\n";
    const char* const kLoss =
        "ids: i64[2,2] = input\nw: f32[4,5] = parameter\nslice_0: i64[2,2] = aten::slice.Tensor(ids, 1, 0, 2)\n"
        "view_0: i64[4] = aten::view(slice_0, [4])\nloss_0: f32[] = aten::cross_entropy_loss(w, view_0, None, 1, "
        "-7)\nreturn loss=loss_0\n";
    const char* const kFree = "ids: i64[2,2] = input\nadd_0: i64[2,2] = aten::add.Tensor(ids, ids)\nreturn y=add_0\n";
    QTest::newRow("rows of a table") << QByteArray(kTable) << QList<qint64>{0, 4, 1, 2} << "";
    QTest::newRow("one too many") << QByteArray(kTable) << QList<qint64>{0, 4, 5, 2}
                                  << "ids is 5 at [1, 0], not one of the 5 rows of the table (0 to 4)";
    QTest::newRow("negative") << QByteArray(kTable) << QList<qint64>{0, -1, 1, 2} << "ids is -1 at [0, 1]";
    QTest::newRow("a split table has all rows") << QByteArray(kPart) << QList<qint64>{9, 5, 0, 2} << "";
    QTest::newRow("beyond a split table")
        << QByteArray(kPart) << QList<qint64>{9, 10, 0, 2} << "ids is 10 at [0, 1], not one of the 10 rows";
    QTest::newRow("after a view, shifted") << QByteArray(kShifted) << QList<qint64>{-2, 2, 0, 1} << "";
    QTest::newRow("shifted too far") << QByteArray(kShifted) << QList<qint64>{-2, 2, 3, 1} << "ids is 3 at [1, 0]";
    QTest::newRow("ignored labels") << QByteArray(kLoss) << QList<qint64>{-7, 4, 0, -7} << "";
    QTest::newRow("another loss's ignored label")
        << QByteArray(kLoss) << QList<qint64>{-100, 4, 0, 1} << "ids is -100 at [0, 0], not one of the 5 classes";
    QTest::newRow("nothing indexes with it") << QByteArray(kFree) << QList<qint64>{-100, 4, 1000000, 1} << "";
  }
  void indicesOutOfRangeAreNamedBeforeTheRun() {
    QFETCH(QByteArray, program);
    QFETCH(QList<qint64>, values);
    QFETCH(QString, complaint);
    const std::vector<std::int64_t> numbers(values.begin(), values.end());
    const auto file = std::filesystem::path(m_folder.filePath("ids.safetensors").toStdString());
    const std::vector<formats::TensorView> views{{"ids", {DType::Int64, {2, 2}}, std::as_bytes(std::span(numbers))}};
    QVERIFY(formats::writeSafetensors(file, views));
    Program given = bound(program.constData());
    const auto read = readInputs(given, file);
    QCOMPARE(read.has_value(), complaint.isEmpty());
    if (read) return;
    QCOMPARE(read.error().code, ErrorCode::BadInput);
    QVERIFY2(read.error().message.find(complaint.toStdString()) != std::string::npos, read.error().message.c_str());
  }

  /// A mask is not an index, so kernels would compute with any number.
  void aMaskIsZeroOrOne_data() {
    QTest::addColumn<QList<qint64>>("values");
    QTest::addColumn<QString>("complaint");
    QTest::newRow("zeros and ones") << QList<qint64>{0, 1, 1, 1} << "";
    QTest::newRow("seven") << QList<qint64>{0, 1, 7, 1}
                           << "attention_mask is 7 at [1, 0], not one of 0 (padding) and 1 (a token).";
    QTest::newRow("negative") << QList<qint64>{0, -1, 1, 1}
                              << "attention_mask is -1 at [0, 1], not one of 0 (padding) and 1 (a token).";
  }
  void aMaskIsZeroOrOne() {
    QFETCH(QList<qint64>, values);
    QFETCH(QString, complaint);
    const std::vector<std::int64_t> numbers(values.begin(), values.end());
    const auto file = std::filesystem::path(m_folder.filePath("mask.safetensors").toStdString());
    QVERIFY(formats::writeSafetensors(
        file, std::vector<formats::TensorView>{
                  {"attention_mask", {DType::Int64, {2, 2}}, std::as_bytes(std::span(numbers))}}));
    Program given = bound(
        "attention_mask: i64[2,2] = input\nadd_0: i64[2,2] = aten::add.Tensor(attention_mask, attention_mask)\nreturn "
        "y=add_0\n");
    const auto read = readInputs(given, file);
    QCOMPARE(read.has_value(), complaint.isEmpty());
    if (read) return;
    QCOMPARE(read.error().code, ErrorCode::BadInput);
    QVERIFY2(read.error().message.ends_with(complaint.toStdString()), read.error().message.c_str());
  }

  void makesUpInputsWithinTheVocabulary() {
    Program program = bound(
        "input_ids: i64[2,64] = input\nlabels: i64[2,64] = input\nattention_mask: i64[2,64] = input\nw: f32[5,2] = "
        "parameter\n"
        "embedding_0: f32[2,64,2] = aten::embedding(w, input_ids)\nreturn y=embedding_0, i=input_ids, l=labels, "
        "m=attention_mask\n");
    give(program, "w", at::ones({5, 2}));
    QVERIFY(makeInputs(program, 11));
    const auto outputs = runAlone(program);
    QVERIFY(outputs[1].second.min().item<std::int64_t>() == 0 && outputs[1].second.max().item<std::int64_t>() == 4);
    COMPARE_TENSORS(outputs[1].second.to(at::kFloat), outputs[2].second.to(at::kFloat), 0);
    QVERIFY(outputs[3].second.all().item<bool>());
    QVERIFY(digest(outputs[0].second) != digest(outputs[1].second));
  }
};

QTEST_GUILESS_MAIN(InputsTest)
#include "tst_inputs.moc"
