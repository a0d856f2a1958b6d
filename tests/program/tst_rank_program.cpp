/// The part of a plan file that a rank reads: its program and shard map, checked.
#include "program/rank_program.h"
#include "tests/support/plan_fixture.h"

#include <nlohmann/json.hpp>

#include <QTemporaryDir>

#include <fstream>
#include "plan/file/plan_file.h"

using namespace cleave;
using namespace cleave::plan::testing;
using Json = nlohmann::ordered_json;

namespace {

plan::Plan decoderPlan() {
  return planned(requestFor(kDecoder, context(2, rules::SequenceParallel::On), kDecoderOnSequence));
}

}  // namespace

class TestRankProgram : public QObject {
  Q_OBJECT
  QTemporaryDir m_folder;

  Result<program::RankProgram> read(const std::string& text) const {
    const fs::path file = fs::path(m_folder.path().toStdString()) / "plan.json";
    std::ofstream(file) << text;
    return program::readRankProgram(file);
  }

 private slots:
  void readsItsPartOfAPlan() {
    const plan::Plan plan = decoderPlan();
    const auto program = read(plan::toJson(plan));
    QVERIFY2(program.has_value(), program ? "" : program.error().message.c_str());
    QCOMPARE(program->source, plan.model.source);
    QCOMPARE(program->ranks, plan.spec.ranks);
    QCOMPARE(program->seed, plan.spec.seed);
    QCOMPARE(graph::toText(*program->graph), graph::toText(*plan.program));
    QCOMPARE(program->parameters.size(), plan.parameters.size());
    for (std::size_t i = 0; i < plan.parameters.size(); ++i) {
      QCOMPARE(program->parameters[i].name, plan.parameters[i].name);
      QVERIFY(program->parameters[i].piecesByRank == plan.parameters[i].piecesByRank);
    }
    for (int rank = 0; rank < plan.spec.ranks; ++rank)
      QCOMPARE(program::shardBytes(program->parameters, rank), program::shardBytes(plan.parameters, rank));
  }

  void isWrittenAsItIsRead() {
    const auto program = read(plan::toJson(decoderPlan()));
    QVERIFY(program.has_value());
    const auto again = read(toJson(*program));
    QVERIFY2(again.has_value(), again ? "" : again.error().message.c_str());
    QCOMPARE(toJson(*again), toJson(*program));
  }

  /// Fields for the search, the window and reports are ignored by ranks.
  void needsNothingElseOfThePlan() {
    Json json = Json::parse(plan::toJson(decoderPlan()));
    for (const char* key : {"layers", "graph", "values", "cost", "device", "search", "shares", "collectives", "memory"})
      json.erase(key);
    const auto program = read(json.dump());
    QVERIFY2(program.has_value(), program ? "" : program.error().message.c_str());
  }

  void digestIsOfWhatRanksMustAgreeOn() {
    const auto program = read(plan::toJson(decoderPlan()));
    QVERIFY(program.has_value());
    program::RankProgram elsewhere = *program;
    elsewhere.source = "/another/host/model";
    QCOMPARE(digestOf(elsewhere), digestOf(*program));
    program::RankProgram other = *program;
    ++other.seed;
    QVERIFY(digestOf(other) != digestOf(*program));
    other = *program;
    other.parameters[0].storedDtype = graph::DType::BFloat16;
    QVERIFY(digestOf(other) != digestOf(*program));
  }

  void refusesWhatIsNoProgram_data() {
    QTest::addColumn<QString>("pointer");
    QTest::addColumn<QString>("value");
    QTest::addColumn<QString>("phrase");
    QTest::newRow("later version") << "/schema"
                                   << "\"cleave.plan/2\""
                                   << "but this program reads cleave.plan/1";
    QTest::newRow("no solution") << "/solved"
                                 << "false"
                                 << "The file holds no plan";
    QTest::newRow("no ranks") << "/ranks"
                              << "0"
                              << "plan.ranks must be an integer from 1 to 4096";
    QTest::newRow("source as a number") << "/model/source"
                                        << "1"
                                        << "plan.model.source must be a text";
    QTest::newRow("foreign operator") << "/program/ops/3"
                                      << "\"os::system\""
                                      << "plan.program: \"os::system\" is not an operator";
    QTest::newRow("climbing file") << "/parameters/0/pieces/0/file"
                                   << "\"../secret.safetensors\""
                                   << "inside the model folder";
    QTest::newRow("piece of other rows") << "/parameters/0/pieces/0/start"
                                         << "2"
                                         << "do not make up its part";
  }
  void refusesWhatIsNoProgram() {
    QFETCH(QString, pointer);
    QFETCH(QString, value);
    QFETCH(QString, phrase);
    Json json = Json::parse(plan::toJson(decoderPlan()));
    json[Json::json_pointer(pointer.toStdString())] = Json::parse(value.toStdString());
    const auto program = read(json.dump());
    QVERIFY(!program.has_value());
    QCOMPARE(program.error().code, ErrorCode::BadInput);
    const QString message = QString::fromStdString(program.error().message);
    QVERIFY2(message.contains(phrase) && message.contains("plan.json"), qPrintable(message));
  }
};

QTEST_APPLESS_MAIN(TestRankProgram)
#include "tst_rank_program.moc"
