#include "tests/support/plan_fixture.h"

using namespace cleave;
using namespace cleave::plan;
using namespace cleave::plan::testing;

class TestDot : public QObject {
  Q_OBJECT
 private slots:
  void coloursByPlacementAndMarksCollectives() {
    const std::string dot = toDot(planned(requestFor(kMlp, context(2), kMlpSplit)));
    for (const char* line : {
             "    n3 [label=\"linear_0\\nf32[1,4,16] S(2)\\ncolumn\", fillcolor=\"#5A45B0\", fontcolor=white];\n",
             "    n7 [label=\"linear_1\\nf32[1,4,8] R\\nrow\\nall_reduce, 128 bytes\", fillcolor=\"#A02C66\", "
             "fontcolor=white, penwidth=3];\n",
             "  n0 -> n3;\n",
             "  n8 -> out0;\n",
             "label=\"up\";\n",
         }) {
      QVERIFY2(dot.find(line) != std::string::npos, dot.c_str());
    }
    QCOMPARE(std::count(dot.begin(), dot.end(), '{'), std::count(dot.begin(), dot.end(), '}'));
  }

  void escapesNames() {
    const std::string dot = toDot(planned(
        requestFor("`a\"b\\`: f32[2] = input\nneg_0: f32[2] = aten::neg(`a\"b\\`)\nreturn y=neg_0\n", context(2), {})));
    QVERIFY2(dot.find("label=\"a\\\"b\\\\\\nf32[2] R\"") != std::string::npos, dot.c_str());
  }
};

QTEST_APPLESS_MAIN(TestDot)
#include "tst_dot.moc"
