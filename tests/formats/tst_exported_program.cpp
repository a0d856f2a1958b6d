#include <QTest>

#include <functional>

#include "formats/exported_modules.h"
#include "formats/exported_sizes.h"
#include "formats/exported_weights.h"
#include "formats/open_exported.h"
#include "tests/formats/folder_builder.h"
#include "tests/support/exported_archive.h"
#include "tests/support/need.h"

using namespace cleave;
using namespace cleave::formats;
using cleave::test::need;
using cleave::test::TinyProgram;
using nlohmann::json;

namespace {

Result<ExportedProgram> readBytes(std::string bytes) {
  CLEAVE_TRY(ZipArchive archive, ZipArchive::inMemory(std::move(bytes), "net.pt2"));
  return readExportedProgram(std::make_shared<const ZipArchive>(std::move(archive)));
}
Result<ExportedProgram> read(const TinyProgram& tiny) { return readBytes(tiny.bytes()); }

json named(const char* name) { return {{"as_tensor", {{"name", name}}}}; }

using Lie = std::function<void(TinyProgram&)>;

std::int64_t sizeOf(std::string_view text, const SymbolSizes& sizes = {}) {
  const auto expression = SizeExpression::parse(text, "size");
  return expression ? expression->evaluate(sizes).value_or(-1) : -2;
}

}  // namespace

class ExportedProgramTest : public QObject {
  Q_OBJECT
 private slots:
  void readsCallsInputsAndWeights() {
    const auto program = need(read(TinyProgram::make()));
    QCOMPARE(program.nodes.size(), 1u);
    const ExportedNode& node = program.nodes[0];
    QCOMPARE(node.target, std::string("torch.ops.aten.linear.default"));
    QCOMPARE(node.arguments[1].first, std::string("weight"));
    QCOMPARE(program.value(std::get<ExportedId>(node.arguments[1].second)).name, std::string("p_w"));
    QCOMPARE(program.modules[node.module].back().path, std::string("fc"));
    QCOMPARE(program.modules[node.module].front().className, std::string("Net"));
    QCOMPARE(program.sources.at(node.source.value()), std::string("net.py:7: return self.fc(x)"));
    QCOMPARE(program.inputs.size(), 2u);
    QCOMPARE(program.inputs[0].name, std::string("fc.weight"));
    QVERIFY(program.inputs[1].kind == ExportedInputKind::User && program.inputs[1].name == "x");
    QCOMPARE(program.tensors.at("fc.weight").bytes, std::int64_t{48});
    QVERIFY(program.whyWithoutWeights.empty());
    QCOMPARE(inputsInWords(program, {}), std::string("x f32[2,4]"));
  }

  void readsWhatTorchWrites() {
    for (const char* name : {"llama.pt2", "llama-dynamic.pt2"}) {
      const auto program = need(openExportedProgram(fs::path(CLEAVE_TEST_DATA) / "exported" / name));
      QVERIFY(program.tensors.size() >= 12 && program.whyWithoutWeights.empty());
      QCOMPARE(program.outputs.size(), 1u);
      QCOMPARE(program.symbols.empty(), std::string_view(name) == "llama.pt2");
      for (const auto& [tensor, source] : program.tensors) QCOMPARE(source.file, std::string(name));
    }
  }

  /// Files of torch 2.6, 2.8, 2.9, 2.11 and 2.15, which differ in entries, keys and the form of infinities.
  void readsEveryVersionOfTorch_data() {
    QTest::addColumn<QString>("version");
    QTest::addColumn<bool>("isPickled");
    QTest::newRow("2.6") << "2.6.0" << true;
    QTest::newRow("2.8") << "2.8.0" << true;
    QTest::newRow("2.9") << "2.9.1" << false;
    QTest::newRow("2.11") << "2.11.0" << false;
    QTest::newRow("2.15") << "2.15.0" << false;
  }
  void readsEveryVersionOfTorch() {
    QFETCH(const QString, version);
    QFETCH(const bool, isPickled);
    const fs::path file = fs::path(CLEAVE_TEST_DATA) / "torch-versions" / ("tiny-" + version.toStdString() + ".pt2");
    const auto program = need(openExportedProgram(file));
    QVERIFY(QString::fromStdString(program.torchVersion).startsWith(version));
    QCOMPARE(program.symbols.size(), 2u);
    QCOMPARE(program.outputs.size(), 2u);
    QCOMPARE(program.tensors.empty(), isPickled);
    QCOMPARE(QString::fromStdString(program.whyWithoutWeights).contains("pickle"), isPickled);
    const auto isHead = [](const std::string& line) { return line.find("s.head(x)") != std::string::npos; };
    QVERIFY(std::any_of(program.sources.begin(), program.sources.end(), isHead));
    const auto bound = need(bindSymbols(program, {.batch = 3, .sequence = 5}));
    QCOMPARE(inputsInWords(program, bound), std::string("ids i64[3,5]"));
  }

  void refusesFalseSizes_data() {
    QTest::addColumn<Lie>("lie");
    QTest::addColumn<QString>("words");
    const auto row = [](const char* name, const char* words, Lie lie) { QTest::newRow(name) << lie << words; };
    row("a result that there is", "defines \"x\", which is already defined",
        [](TinyProgram& t) { t.call()["outputs"] = {named("x")}; });
    row("a result made twice", "defines \"linear\", which is already defined", [](TinyProgram& t) {
      const json again = t.call();
      t.graph()["nodes"].push_back(again);
    });
    row("a cycle", "reads \"linear\", which is not defined before it",
        [](TinyProgram& t) { t.call()["inputs"][0]["arg"] = named("linear"); });
    row("an output of nothing", "reads \"y\", which is not defined before it",
        [](TinyProgram& t) { t.graph()["outputs"] = {named("y")}; });
    row("2^60 elements", "does not fit 64-bit sizes", [](TinyProgram& t) {
      t.graph()["tensor_values"]["x"]["sizes"] = {{{"as_int", 1LL << 60}}, {{"as_int", 4}}};
    });
    row("a negative size", "does not fit 64-bit sizes", [](TinyProgram& t) {
      t.graph()["tensor_values"]["x"]["sizes"] = {{{"as_int", -1}}, {{"as_int", 4}}};
    });
    row("a weight of another shape", "is stored as f32[4,3], but the graph has another type", [](TinyProgram& t) {
      t.weight()["tensor_meta"]["sizes"] = {{{"as_int", 4}}, {{"as_int", 3}}};
      t.weight()["tensor_meta"]["strides"] = {{{"as_int", 3}}, {{"as_int", 1}}};
    });
    row("a weight of another type", "is stored as i32[3,4], but the graph has another type",
        [](TinyProgram& t) { t.weight()["tensor_meta"]["dtype"] = 4; });
    row("a complex weight",
        "is 10: complex numbers, which Cleave's graphs do not support. Compute with pairs of real numbers (a rotary "
        "embedding as x * cos + rotate_half(x) * sin",
        [](TinyProgram& t) { t.weight()["tensor_meta"]["dtype"] = 10; });
    row("strides beyond the entry", "does not fit the 48 bytes",
        [](TinyProgram& t) { t.weight()["tensor_meta"]["strides"][0]["as_int"] = 5; });
    row("strides beyond 64 bits", "does not fit the 48 bytes",
        [](TinyProgram& t) { t.weight()["tensor_meta"]["strides"][0]["as_int"] = INT64_MAX; });
    row("an offset beyond the entry", "does not fit the 48 bytes",
        [](TinyProgram& t) { t.weight()["tensor_meta"]["storage_offset"]["as_int"] = 1; });
    row("a negative stride", "must be a non-negative number",
        [](TinyProgram& t) { t.weight()["tensor_meta"]["strides"][0]["as_int"] = -4; });
    row("too few strides", "with 1 strides; the numbers must be equal",
        [](TinyProgram& t) { t.weight()["tensor_meta"]["strides"].erase(1); });
    row("an entry that there is not", "which is missing in the archive",
        [](TinyProgram& t) { t.weight()["path_name"] = "weight_1"; });
    row("an entry in another folder", "which is missing in the archive",
        [](TinyProgram& t) { t.weight()["path_name"] = "../../byteorder"; });
    row("a parameter that is not an input", "names \"linear\", which is not an input of the graph",
        [](TinyProgram& t) { t.signature()["input_specs"][0]["parameter"]["arg"]["name"] = "nothing"; });
    row("two parameters of one input", "which is not an input of the graph without a name", [](TinyProgram& t) {
      const json again = t.signature()["input_specs"][0];
      t.signature()["input_specs"].push_back(again);
    });
    row("more outputs signed than there are", "the signature has 2 outputs, but the graph has 1", [](TinyProgram& t) {
      const json again = t.signature()["output_specs"][0];
      t.signature()["output_specs"].push_back(again);
    });
    row("a custom object", "is an input that Cleave cannot split: it is not a tensor", [](TinyProgram& t) {
      t.signature()["input_specs"][1] = {{"custom_obj", {{"arg", {{"name", "x"}}}, {"custom_obj_name", "o"}}}};
    });
    row("a higher operator", "cond in module fc at net.py:7: return self.fc(x) is a higher operator",
        [](TinyProgram& t) { t.call()["target"] = "torch.ops.higher_order.cond"; });
    row("a version to come", "in format version 9, but Cleave reads version 8",
        [](TinyProgram& t) { t.program["schema_version"]["major"] = 9; });
    row("arguments of two kinds", "has the keys \"as_int\" and \"as_tensor\"",
        [](TinyProgram& t) { t.call()["inputs"][0]["arg"]["as_int"] = 3; });
    row("a size that is not an expression", "which Cleave cannot compute as a size", [](TinyProgram& t) {
      t.graph()["tensor_values"]["x"]["sizes"][0] = {{"as_expr", {{"expr_str", "__import__('os')"}}}};
    });
    row("sizes from 50 to 3", "max_val", [](TinyProgram& t) {
      t.graph()["tensor_values"]["x"]["sizes"][0] = {{"as_expr", {{"expr_str", "s0"}, {"hint", {{"as_int", 2}}}}}};
      t.program["range_constraints"] = {{"s0", {{"min_val", 50}, {"max_val", 3}}}};
    });
    row("no nodes", "nodes", [](TinyProgram& t) { t.graph().erase("nodes"); });
    row("nodes that are a number", "nodes", [](TinyProgram& t) { t.graph()["nodes"] = 3; });
  }
  void refusesFalseSizes() {
    QFETCH(const Lie, lie);
    QFETCH(const QString, words);
    TinyProgram tiny = TinyProgram::make();
    lie(tiny);
    const auto program = read(tiny);
    QVERIFY(!program);
    const QString sentence = QString::fromStdString(program.error().message);
    QVERIFY2(sentence.contains(words == "an input that is not an input" ? QString() : words) ||
                 sentence.contains("which is not an input of the graph"),
             qPrintable(sentence));
    QVERIFY2(sentence.startsWith("net.pt2") || sentence.contains("input_specs"), qPrintable(sentence));
    QCOMPARE(program.error().code, ErrorCode::BadInput);
  }

  void saysWhatOtherArchivesHold() {
    const auto refusal = [](const test::ZipBuilder& zip) {
      const auto program = readBytes(zip.bytes());
      return program ? QString("accepted") : QString::fromStdString(program.error().message);
    };
    QVERIFY(refusal(test::ZipBuilder().add("model/data.pkl", "x")).contains("a PyTorch checkpoint (torch.save)"));
    QVERIFY(refusal(test::ZipBuilder().add("m/data/aotinductor/model/x.so", "x")).contains("AOTInductor"));
    QVERIFY(refusal(test::ZipBuilder().add("readme.txt", "x")).contains("without an exported program"));
    test::ZipBuilder big = TinyProgram::make().zip();
    big.entries.back().content = "big";
    QVERIFY(refusal(big).contains("\"big\"-endian"));
  }

  void tellsWhyThereAreNoWeights() {
    TinyProgram pickled = TinyProgram::make();
    pickled.weight()["use_pickle"] = true;
    QVERIFY(need(read(pickled)).whyWithoutWeights.find("as a pickle") != std::string::npos);
    TinyProgram fake = TinyProgram::make();
    fake.weightBytes.clear();
    const auto program = need(read(fake));
    QVERIFY(program.tensors.empty() && program.whyWithoutWeights.find("fake tensors") != std::string::npos);
  }

  /// A transposed view with an offset, in both orders of its dimensions.
  void readsElementsOfViews() {
    TinyProgram tiny = TinyProgram::make();
    tiny.weightBytes.clear();
    for (float value = 0; value < 20; ++value) tiny.weightBytes.append(reinterpret_cast<const char*>(&value), 4);
    tiny.weight()["tensor_meta"]["strides"] = {{{"as_int", 1}}, {{"as_int", 4}}};
    tiny.weight()["tensor_meta"]["storage_offset"]["as_int"] = 2;
    const auto program = need(read(tiny));
    const WeightSource& view = program.tensors.at("fc.weight");
    const auto elements = [&](const std::vector<std::size_t>& order, std::int64_t first, std::size_t count) {
      std::vector<float> values(count);
      need(readElements(*program.archive, view, order, first, std::as_writable_bytes(std::span(values))).map([] {
        return true;
      }));
      return values;
    };
    QCOMPARE(elements({0, 1}, 0, 12), (std::vector<float>{2, 6, 10, 14, 3, 7, 11, 15, 4, 8, 12, 16}));
    QCOMPARE(elements({0, 1}, 5, 4), (std::vector<float>{7, 11, 15, 4}));
    QCOMPARE(storageOrder(view), (std::vector<std::size_t>{1, 0}));
    QCOMPARE(elements({1, 0}, 2, 5), (std::vector<float>{4, 6, 7, 8, 10}));
  }

  void bindsSizesThatWereExported() {
    const auto fixed = need(read(TinyProgram::make())), open = need(read(TinyProgram::make(true)));
    QVERIFY(need(bindSymbols(fixed, {.batch = 2})).empty());
    const auto refused = bindSymbols(fixed, {.batch = 3});
    QVERIFY(!refused && refused.error().code == ErrorCode::BadUsage);
    QVERIFY(refused.error().message.find("was exported for batch 2 only, but --batch is 3") != std::string::npos);
    QCOMPARE(need(bindSymbols(open, {})).at("s7"), std::int64_t{2});
    QCOMPARE(need(bindSymbols(open, {.batch = 9})).at("s7"), std::int64_t{9});
    QVERIFY(!bindSymbols(open, {.batch = 65}) && !bindSymbols(open, {.batch = 1}));
    QVERIFY(!bindSymbols(open, {.symbols = {{"s8", 4}}}));
    const std::map<std::string, graph::TensorType> given{{"x", {graph::DType::Float32, {5, 4}}}};
    QCOMPARE(need(symbolsOfInputs(open, given, "in.safetensors")).at("s7"), std::int64_t{5});
    const auto other = symbolsOfInputs(fixed, given, "in.safetensors");
    QVERIFY(!other && other.error().message.find("\"x\" has shape [5, 4]") != std::string::npos);
  }

  void computesSizes() {
    const SymbolSizes sizes{{"s0", 7}, {"s1", 3}};
    QCOMPARE(sizeOf("Mul(Integer(2), Symbol('s0', positive=True, integer=True))", sizes), 14);
    QCOMPARE(sizeOf("Add(Mul(Integer(-1), Symbol('s1')), Symbol('s0'), Integer(5))", sizes), 9);
    QCOMPARE(sizeOf("Pow(Symbol('s1', integer=True), Integer(2))", sizes), 9);
    QCOMPARE(sizeOf("torch.utils._sympy.functions.FloorDiv(Symbol('s0'), Integer(2))", sizes), 3);
    QCOMPARE(sizeOf("Max(Integer(1), Symbol('s0'), Symbol('s1'))", sizes), 7);
    QCOMPARE(sizeOf("2*s0 + 1", sizes), 15);
    QCOMPARE(sizeOf("((s0//2)) * s1**2 - s0 % 4", sizes), 24);
    QCOMPARE(sizeOf("-(s0 - 9)", sizes), 2);
    QCOMPARE(sizeOf("s0", {}), -1);
    QCOMPARE(sizeOf("s0 // 0", sizes), -1);
    QCOMPARE(sizeOf("9223372036854775807 * s0", sizes), -1);
    for (const char* text : {"", "2 *", "s0)", "open('x')", "Pow(s0)", "Symbol(s0)", "1.5", "s0 s1"})
      QCOMPARE(sizeOf(text, sizes), -2);
    QCOMPARE(sizeOf(std::string(1000, '(') + "1" + std::string(1000, ')')), -2);
  }

  void takesPathsAndLinesOutOfMetadata() {
    const auto modules = modulesOf(
        "L__self__,,a.b.Model;L__self___layers_slice(None, 2, None)___0,layers.slice(None, 2, None).0@1,a.b.Block");
    QCOMPARE(modules.size(), 2u);
    QCOMPARE(modules[1].path, std::string("layers.0"));
    QCOMPARE(modules[1].className, std::string("Block"));
    QCOMPARE(modulesOf("").size(), 1u);
    QCOMPARE(modulesOf("what is this").size(), 1u);
    QCOMPARE(sourceLineOf("File \"/x/net.py\", line 3, in f\n    y = self.act(x)\n"
                          "  File \"/lib/site-packages/torch/nn/modules/activation.py\", line 9, in forward\n    relu"),
             std::string("net.py:3: y = self.act(x)"));
    QCOMPARE(sourceLineOf("File \"torch/nn/f.py\", line 3, in f"), std::string("f.py:3"));
    QCOMPARE(sourceLineOf("File \"runtime_assert.py\", line 24, in insert"), std::string());
    QCOMPARE(sourceLineOf("no trace"), std::string());
  }
};

QTEST_GUILESS_MAIN(ExportedProgramTest)
#include "tst_exported_program.moc"
