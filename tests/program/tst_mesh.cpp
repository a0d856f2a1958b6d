/// The text form of a mesh of ranks, and its rank numbers.
#include "program/mesh.h"

#include <QTest>

using namespace cleave;
using program::Mesh;

class TestMesh : public QObject {
  Q_OBJECT
 private slots:
  void readsEitherOrder_data() {
    QTest::addColumn<QString>("text");
    QTest::addColumn<int>("dp");
    QTest::addColumn<int>("tp");
    QTest::newRow("both") << "dp=2,tp=4" << 2 << 4;
    QTest::newRow("the other way round") << "tp=4,dp=2" << 2 << 4;
    QTest::newRow("replicas alone") << "dp=3" << 3 << 1;
    QTest::newRow("ranks alone") << "tp=8" << 1 << 8;
  }
  void readsEitherOrder() {
    QFETCH(QString, text);
    QFETCH(int, dp);
    QFETCH(int, tp);
    const auto mesh = program::parseMesh("--mesh", text.toStdString());
    QVERIFY(mesh.has_value());
    QCOMPARE(mesh->dp, dp);
    QCOMPARE(mesh->tp, tp);
    QVERIFY(program::parseMesh("--mesh", program::toText(*mesh)) == *mesh);
  }

  void refusesAnythingElse_data() {
    QTest::addColumn<QString>("text");
    for (const char* text : {"", ",", "dp", "dp=", "dp=x", "dp=2x", "dp=-1", "dp=0", "dp=1.5", "pp=2", "dp=2,dp=2",
                             "dp=2,,tp=2", "dp=2,tp=2,", "dp=99999999999", "dp=1025", "tp=4097", "dp=1024,tp=4096"})
      QTest::addRow("\"%s\"", text) << text;
  }
  void refusesAnythingElse() {
    QFETCH(QString, text);
    const auto mesh = program::parseMesh("--mesh", text.toStdString());
    QVERIFY(!mesh);
    QCOMPARE(mesh.error().code, ErrorCode::BadUsage);
    QVERIFY(QString::fromStdString(mesh.error().message).startsWith("--mesh is \"" + text + "\""));
  }

  void ranksOfAReplicaAreNeighbours() {
    const Mesh mesh{.dp = 2, .tp = 3};
    QCOMPARE(mesh.ranks(), 6);
    for (int rank = 0; rank < 6; ++rank) {
      QCOMPARE(mesh.replicaOf(rank), rank < 3 ? 0 : 1);
      QCOMPARE(mesh.placeOf(rank), rank % 3);
    }
  }
};

QTEST_GUILESS_MAIN(TestMesh)
#include "tst_mesh.moc"
