// A folder with packed weights: Cleave plans it with its stored bytes, and does not run it.
#include "base/json.h"
#include "formats/safetensors.h"
#include "pipeline/run/run.h"
#include "pipeline/solve/check_plan.h"
#include "pipeline/solve/solve.h"
#include "pipeline/source/describe_model.h"
#include "pipeline/source/open.h"
#include "tests/support/need.h"

#include <nlohmann/json.hpp>

#include <QTemporaryDir>
#include <QTest>

#include <fstream>
#include "plan/build/unsplit_memory.h"
#include "plan/file/plan_file.h"

using namespace cleave;
using nlohmann::json;
using test::need;

namespace {

const fs::path kPlain = CLEAVE_SOURCE_DIR "/tests/data/families/llama";

/// A small model. Each linear layer of its blocks is in float8 with a scale.
struct Folder {
  QTemporaryDir folder;
  std::int64_t packedBytes = 0, plainBytes = 0;

  fs::path path() const { return folder.path().toStdString(); }

  explicit Folder(const char* quantization =
                      R"({"quant_method": "fp8", "activation_scheme": "static", "weight_block_size": null})") {
    json config = need(readJsonFile(kPlain / "config.json"));
    config["quantization_config"] = json::parse(quantization);
    std::ofstream(path() / "config.json") << config.dump();
    const auto header = need(formats::readSafetensorsHeader(kPlain / "model.safetensors"));
    for (const auto& [name, source] : header.tensors) {
      const bool isPacked = name.ends_with("_proj.weight");
      add(name, {isPacked ? graph::DType::Float8E4M3 : source.type.dtype, source.type.shape}, isPacked);
      if (!isPacked) continue;
      add(name + "_scale_inv", {graph::DType::Float32, {}}, true);
      add(name.substr(0, name.rfind('.')) + ".activation_scale", {graph::DType::Float32, {}}, true);
    }
    for (std::size_t i = 0; i < m_views.size(); ++i) m_views[i].bytes = m_bytes[i];
    const auto written = formats::writeSafetensors(path() / "model.safetensors", m_views);
    if (!written) qFatal("%s", written.error().message.c_str());
  }

 private:
  void add(const std::string& name, graph::TensorType type, bool isPacked) {
    const std::int64_t bytes = graph::sizeInBytes(type);
    (isPacked ? packedBytes : plainBytes) += bytes;
    m_bytes.emplace_back(static_cast<std::size_t>(bytes));
    m_views.push_back({name, std::move(type), {}});
  }
  std::vector<std::vector<std::byte>> m_bytes;
  std::vector<formats::TensorView> m_views;
};

const spec::InputSpec kShort{.sequence = 16};

std::shared_ptr<const plan::Plan> planOf(const fs::path& folder, int ranks) {
  const auto model = need(pipeline::openModel(folder.string(), kShort));
  spec::PlanSpec options;
  options.ranks = ranks;
  if (ranks > 1) options.pins = {need(solve::Pin::parse("*mlp.up_proj=column"))};
  return need(pipeline::planModel(model, need(pipeline::solveModel(model, options, {}, {.records = false}))));
}

}  // namespace

class TestQuantized : public QObject {
  Q_OBJECT
 private slots:
  void isPlannedWithTheBytesThatItHas() {
    const Folder folder;
    const auto whole = planOf(folder.path(), 1);
    QCOMPARE(whole->model.quantization, std::string("fp8, 8 bit, one scale for each weight"));
    QCOMPARE(whole->memory.parameters, folder.packedBytes + folder.plainBytes);
    QCOMPARE(whole->cost.sum.parameters, folder.packedBytes + folder.plainBytes);
    for (const std::string& warning : whole->warnings)
      QVERIFY2(warning.find("not used") == std::string::npos, warning.c_str());
    const auto split = planOf(folder.path(), 2);
    QVERIFY(split->memory.parameters < whole->memory.parameters);
    QVERIFY(split->memory.parameters * 2 >= whole->memory.parameters);
    QCOMPARE(split->shares.weightBytes, whole->memory.parameters);
    QCOMPARE(plan::unsplitMemory(*split).parameters, whole->memory.parameters);
  }

  /// A step is faster because it reads fewer bytes.
  void readsPackedWeightsFaster() {
    const Folder folder;
    QVERIFY(planOf(folder.path(), 1)->cost.femtoseconds() < planOf(kPlain, 1)->cost.femtoseconds());
  }

  /// The config alone gives the same bytes if the file has the format of its quantization method.
  void isPlannedAlikeWithoutItsFiles() {
    const Folder folder;
    const auto stored = planOf(folder.path(), 2);
    fs::remove(folder.path() / "model.safetensors");
    QCOMPARE(planOf(folder.path(), 2)->memory.parameters, stored->memory.parameters);
  }

  void itsPlanFileHolds() {
    const Folder folder;
    const auto plan = planOf(folder.path(), 2);
    const std::string text = plan::toJson(*plan);
    const plan::Plan read = need(plan::planFromJson(text));
    QCOMPARE(read.model.quantization, plan->model.quantization);
    QVERIFY(read.graph->packedBytes == plan->graph->packedBytes);
    QVERIFY(read.cost == plan->cost);
    QCOMPARE(read.memory.parameters, plan->memory.parameters);
    const auto check = need(pipeline::checkPlan(text));
    for (const std::string& finding : check.findings) qWarning("%s", finding.c_str());
    QVERIFY(check.holds());
  }

  /// `check` finds a file with fewer bytes than the stored ones.
  void aPlanFileThatSaysOtherBytesDoesNotHold() {
    const Folder folder;
    json altered = json::parse(plan::toJson(*planOf(folder.path(), 2)));
    json& packed = altered["graph"]["packed"];
    QVERIFY(packed.size() == 14);
    *packed.begin() = packed.begin()->get<std::int64_t>() - 1;
    QVERIFY(!need(pipeline::checkPlan(altered.dump())).holds());
    *packed.begin() = std::int64_t{1} << 50;
    const auto refused = plan::planFromJson(altered.dump());
    QVERIFY(!refused && refused.error().message.find("above the limit for this type") != std::string::npos);
    packed = {{"no.such.weight", 1}};
    QVERIFY(!plan::planFromJson(altered.dump()));
  }

  void isNotRun() {
    const Folder folder;
    for (const bool skipsWeights : {false, true}) {
      pipeline::RunRequest request;
      request.plan = planOf(folder.path(), 2);
      request.backend = launch::Backend::Gloo;
      request.skipWeights = skipsWeights;
      request.rankProgram = "/nonexistent";  // the run does not start ranks
      const auto report = pipeline::runPlan(request, [](const launch::RankEvent&) {});
      QVERIFY(!report);
      QCOMPARE(report.error().code, ErrorCode::BadInput);
      QCOMPARE(report.error().message,
               folder.path().string() +
                   " is quantized (fp8, 8 bit, one scale for each weight). Cleave plans it but does not run it. Save "
                   "it dequantized (model.dequantize() in transformers) and run that folder.");
    }
  }

  void isDescribedAsItIsStored() {
    const Folder folder;
    const auto made =
        need(pipeline::describeModel(*need(pipeline::openModel(folder.path().string(), pipeline::kDescribedAs))));
    QCOMPARE(made.all().bytes, folder.packedBytes + folder.plainBytes);
    QCOMPARE(made.byDtype.size(), 2);
    for (const pipeline::ParameterCount& count : made.byDtype)
      QCOMPARE(count.bytes, count.kind == "f32" ? folder.plainBytes : folder.packedBytes);
    QVERIFY(pipeline::toText(made).find("no: the weights are packed") != std::string::npos);
  }
};

QTEST_APPLESS_MAIN(TestQuantized)
#include "tst_quantized.moc"
