// The modules of calls whose archive has no modules: short programs, and one written by torch.
#include <QTest>

#include "formats/exported_places.h"
#include "formats/open_exported.h"
#include "tests/support/need.h"

using namespace cleave;
using namespace cleave::formats;
using cleave::test::need;

namespace {

/// A program given by its calls: operands, and the parameters among them.
class Draft {
 public:
  Draft() { program.modules.push_back({{}}); }

  ExportedId stored(const std::string& name, ExportedInputKind kind = ExportedInputKind::Parameter) {
    const ExportedId value = made(name);
    program.inputs.push_back({kind, value, name});
    return value;
  }
  ExportedId call(const std::string& target, const std::vector<ExportedId>& reads, const std::string& module = {}) {
    ExportedNode node;
    node.target = target;
    node.arguments.emplace_back("tensors", reads);
    if (!module.empty()) {
      node.module = static_cast<std::uint32_t>(program.modules.size());
      program.modules.push_back({{{}, "Net"}, {module, "Named"}});
    }
    const ExportedId result = made(target);
    node.results.emplace_back(result);
    program.nodes.push_back(std::move(node));
    return result;
  }
  /// "target @module" of each call.
  QStringList placed() {
    placeByParameters(program);
    QStringList list;
    for (const ExportedNode& node : program.nodes)
      list << QString::fromStdString(node.target + " @" + program.modules[node.module].back().path);
    return list;
  }

  ExportedProgram program;

 private:
  ExportedId made(const std::string& name) {
    program.values.push_back({name, std::nullopt, std::nullopt});
    return ExportedId(program.values.size() - 1);
  }
};

/// x + fc(norm(x)), with the norm decomposed.
ExportedId block(Draft& draft, const std::string& path, ExportedId x) {
  const ExportedId scale = draft.call("rsqrt", {x});
  const ExportedId scaled = draft.call("scale", {x, scale});
  const ExportedId normed = draft.call("mul", {scaled, draft.stored(path + ".norm.weight")});
  const ExportedId transposed = draft.call("t", {draft.stored(path + ".fc.weight")});
  return draft.call("add", {x, draft.call("mm", {normed, transposed})});
}

QStringList blockAt(const QString& path) {
  return {"rsqrt @" + path,     "scale @" + path,      "mul @" + path + ".norm",
          "t @" + path + ".fc", "mm @" + path + ".fc", "add @" + path};
}

}  // namespace

class ExportedPlaces : public QObject {
  Q_OBJECT
 private slots:
  void layersAreEqualFromTheirFirstCallToTheirLast() {
    Draft draft;
    const ExportedId ids = draft.stored("ids", ExportedInputKind::User);
    ExportedId x = draft.call("embedding", {draft.stored("tokens.weight"), ids});
    draft.call("ones", {});
    for (int layer = 0; layer < 3; ++layer) x = block(draft, fmt::format("model.layers.{}", layer), x);
    x = draft.call("relu", {x});
    draft.program.outputs = {draft.call("linear", {x, draft.stored("head.weight")})};
    const QStringList wanted = QStringList{"embedding @tokens", "ones @"} + blockAt("model.layers.0") +
                               blockAt("model.layers.1") + blockAt("model.layers.2") +
                               QStringList{"relu @", "linear @head"};
    QCOMPARE(draft.placed(), wanted);
    const ExportedModules& deepest = draft.program.modules[draft.program.nodes[4].module];
    QCOMPARE(deepest.size(), 5u);  // the model, model, model.layers, model.layers.0, and its norm
    QVERIFY(deepest.front().path.empty());
  }

  void listsInListsAreCutToo() {
    Draft draft;
    ExportedId x = draft.stored("x", ExportedInputKind::User);
    for (int layer = 0; layer < 2; ++layer)
      for (int part = 0; part < 2; ++part) x = block(draft, fmt::format("block.{}.layer.{}", layer, part), x);
    draft.program.outputs = {x};
    QCOMPARE(draft.placed(), blockAt("block.0.layer.0") + blockAt("block.0.layer.1") + blockAt("block.1.layer.0") +
                                 blockAt("block.1.layer.1"));
  }

  /// All layers read one table of angles. This must not move a call out of its layer.
  void buffersSayWhereOnlyInside() {
    Draft draft;
    const ExportedId x = draft.stored("x", ExportedInputKind::User);
    const ExportedId table = draft.stored("rotary.table", ExportedInputKind::Buffer);
    const ExportedId angles = draft.call("cos", {table});
    const ExportedId q = draft.call("linear", {x, draft.stored("attn.q.weight")});
    const ExportedId turned = draft.call("mul", {q, table});
    const ExportedId o = draft.call("linear", {turned, draft.stored("attn.o.weight")});
    draft.program.outputs = {draft.call("add", {o, angles})};
    QCOMPARE(draft.placed(), (QStringList{"cos @rotary", "linear @attn.q", "mul @attn", "linear @attn.o", "add @"}));
  }

  void readersOfATiedTableHaveANameEach() {
    Draft draft;
    const ExportedId ids = draft.stored("ids", ExportedInputKind::User);
    draft.stored("model.tokens.weight");
    const ExportedId table = draft.stored("head.weight");
    for (const char* name : {"model.tokens.weight", "head.weight"})
      draft.program.tensors[name] = {{graph::DType::Float32, {4, 2}}, {}, {}, 64, 32};
    const ExportedId x = draft.call("embedding", {table, ids});
    draft.program.outputs = {draft.call("linear", {x, table})};
    QCOMPARE(draft.placed(), (QStringList{"embedding @model.tokens", "linear @head"}));
  }

  void whatTheArchiveSaysStays() {
    Draft draft;
    const ExportedId x = draft.stored("x", ExportedInputKind::User);
    const ExportedId a = draft.call("linear", {x, draft.stored("a.weight")}, "elsewhere");
    const ExportedId between = draft.call("relu", {a});
    draft.program.outputs = {draft.call("linear", {between, draft.stored("elsewhere.b.weight")})};
    QCOMPARE(draft.placed(), (QStringList{"linear @elsewhere", "relu @elsewhere", "linear @elsewhere.b"}));
    const ExportedModules& modules = draft.program.modules[draft.program.nodes[2].module];
    QCOMPARE(modules[0].className + "/" + modules[1].className, std::string("Net/Named"));
  }

  void namesThatAreNoPathsAreNoModules() {
    Draft draft;
    const ExportedId x = draft.stored("x", ExportedInputKind::User);
    std::string deep = "weight";
    for (int i = 0; i < 5000; ++i) deep = "a." + deep;
    const ExportedId y = draft.call("mul", {x, draft.stored(deep)});
    draft.program.outputs = {draft.call("mul", {y, draft.stored("scale")})};
    QCOMPARE(draft.placed(), (QStringList{"mul @", "mul @"}));
  }

  void anEncoderOfTorchsHasItsLayers() {
    const auto program = need(openExportedProgram(fs::path(CLEAVE_TEST_DATA) / "exported" / "encoder-batch-first.pt2"));
    std::map<std::string, int> calls;
    for (const ExportedNode& node : program.nodes) {
      const ExportedModules& modules = program.modules[node.module];
      ++calls[modules.size() > 3 ? modules[3].path : std::string()];
    }
    QVERIFY(calls["encoder.layers.0"] > 10);
    QCOMPARE(calls["encoder.layers.0"], calls["encoder.layers.1"]);
  }
};

QTEST_GUILESS_MAIN(ExportedPlaces)
#include "tst_exported_places.moc"
