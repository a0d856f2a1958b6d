// Published models, from their configurations alone: captured, counted, planned.
#include "base/json.h"
#include "base/quantities.h"
#include "pipeline/solve/devices.h"
#include "pipeline/solve/solve.h"
#include "pipeline/source/open.h"
#include "program/rank_program.h"
#include "solve/problem/wording.h"
#include "tests/support/cases.h"
#include "tests/support/need.h"

#include <fmt/ranges.h>

#include <QDir>
#include <QTest>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <fstream>
#include "plan/text/reason_text.h"
#include "plan/text/shares_text.h"

using namespace cleave;
using test::need;

namespace {

const QString kFolder = QStringLiteral(CLEAVE_SOURCE_DIR "/tests/data/configs/");

QStringList names() { return QDir(kFolder).entryList(QDir::Dirs | QDir::NoDotAndDotDot, QDir::Name); }
QStringList namesAsPublished() {
  QStringList found = names();
  found.removeIf([](const QString& name) { return name.endsWith("-resaved"); });
  return found;
}

std::shared_ptr<const pipeline::Model> open(const QString& name) {
  return need(pipeline::openModel((kFolder + name).toStdString(), {}));
}

std::shared_ptr<const plan::Plan> planOn(const std::shared_ptr<const pipeline::Model>& model, int ranks) {
  spec::PlanSpec options;
  options.ranks = ranks;
  options.cost.memoryBudget = program::kMaxSize;  // some models do not fit on a few devices
  options.cost.profile = need(pipeline::deviceProfile(std::string(pipeline::kDefaultDevice)));
  return need(pipeline::planModel(model, need(pipeline::solveModel(model, options, {}, {.records = false}))));
}

struct Counted {
  std::int64_t elements = 0, bytes = 0;
};
Counted parametersOf(const graph::Graph& graph) {
  Counted sum;
  for (const graph::Node& node : graph.nodes) {
    if (node.kind != graph::NodeKind::Parameter) continue;
    sum.elements += graph::elementCount(graph.shapeOf(node.results[0]));
    sum.bytes += graph.heldBytes(node.results[0]);
  }
  return sum;
}

/// The layers that are replicated and the reasons; equal layers of all blocks are listed once.
std::string whatStaysWhole(const plan::Plan& plan) {
  std::vector<std::pair<std::string, std::vector<std::string>>> byReason;
  const auto add = [&](std::string what, const plan::ReplicationReason& replication) {
    constexpr std::string_view kOfBlocks = ".*.";
    if (const auto at = what.find(kOfBlocks); at != std::string::npos) what.erase(0, at + kOfBlocks.size());
    const auto* cannot = std::get_if<plan::Cannot>(&replication);
    const bool doesNotPay = std::holds_alternative<plan::DoesNotPay>(replication);
    const std::string why = cannot       ? cannot->why
                            : doesNotPay ? "splitting does not pay"
                                         : std::string(plan::kindOf(replication));
    auto known = std::find_if(byReason.begin(), byReason.end(), [&](const auto& other) { return other.first == why; });
    if (known == byReason.end()) known = byReason.insert(known, {why, {}});
    std::vector<std::string>& names = known->second;
    if (std::find(names.begin(), names.end(), what) == names.end()) names.push_back(std::move(what));
  };
  for (const plan::ReplicatedWork* work : plan::indivisibleHeads(plan.shares)) add(work->pattern, work->why);
  for (const plan::LayerPlan& layer : plan.layers) {
    if (layer.axis == "replicated" && !layer.weight.empty()) add(solve::withoutIndices(layer.name), layer.replication);
  }
  std::string text;
  for (const auto& [why, names] : byReason)
    text += fmt::format("{}{}: {}", text.empty() ? "" : "; ", why, fmt::join(names, ", "));
  return text.empty() ? "nothing" : text;
}

std::string rowOf(const QString& name) {
  const auto model = open(name);
  const auto plan = planOn(model, 8);
  const std::int64_t bytes = plan->cost.bytes();
  const std::string& packed = model->info.quantization;
  return fmt::format("| {} | {:.2f} | {}{} | {} / {} | {} | {} | {} | {} |", name.toStdString(),
                     static_cast<double>(parametersOf(*model->aten).elements) / 1e9, graph::toText(model->info.dtype),
                     packed.empty() ? "" : "; " + packed, plan->shares.layers.split, plan->shares.layers.layers,
                     bytesText(bytes), bytes <= plan->spec.cost.profile.memoryBytes ? "yes" : "no",
                     solve::timeText(plan->cost.femtoseconds()), whatStaysWhole(*plan));
}

constexpr std::string_view kTableHead =
    R"(# Published models on eight GPUs

Cleave's plans for the published models in `tests/data/configs`, made from their configurations: 8 ranks on
NVIDIA H100 SXM5 80 GB (`h100`), batch 1, sequence 128 with its KV cache, the engine `optimal` without a
memory budget.

- parameters: in billions. *Stored as* comes from the configuration (`quantization_config`) and sets the size of
  the weights.
- layers split: of the layers with weights. A layer whose result is gathered right after the product does not count.
- step: one forward pass with its loss.
- replicated: layers that every rank has in full, with the reason. "Splitting does not pay" means that it takes more
  time, or saves no memory within the slack of 1 %.

`tst_published_models` compares this table with the plans. `CLEAVE_UPDATE_CASES=1` rewrites it.

| model | parameters (10⁹) | stored as | layers split | per rank | fits 80 GB | step | replicated |
|---|---|---|---|---|---|---|---|
)";

}  // namespace

class TestPublishedModels : public QObject {
  Q_OBJECT
 private slots:
  /// transformers keeps the correction biases of DeepSeek's routers as buffers: see SOURCES.md.
  void hasAsManyParametersAsTransformersBuilds_data() {
    QTest::addColumn<QString>("name");
    for (const QString& name : names()) QTest::newRow(qPrintable(name)) << name;
  }
  void hasAsManyParametersAsTransformersBuilds() {
    QFETCH(QString, name);
    const nlohmann::json counts = need(readJsonFile((kFolder + "parameters.json").toStdString()));
    const auto model = open(name);
    std::int64_t buffers = 0;
    for (const graph::Value& value : model->aten->values) {
      if (value.name.ends_with("e_score_correction_bias")) buffers += graph::elementCount(value.type.shape);
    }
    const std::string published = QString(name).remove("-resaved").toStdString();
    QCOMPARE(parametersOf(*model->aten).elements - buffers, counts.at(published).get<std::int64_t>());
  }

  /// The file sizes of quantized models on the Hub. DeepSeek's is for the model that transformers builds: 688.6 GB less
  /// the multi-token layer (11.5 B parameters in float8 and two more tables of 0.93 B in bfloat16).
  void isStoredInAsManyBytesAsPublished_data() {
    QTest::addColumn<double>("gigabytes");
    QTest::newRow("Llama-3.1-8B-AWQ-INT4") << 5.73;
    QTest::newRow("Llama-2-7b-GPTQ") << 3.90;
    QTest::newRow("Llama-3.1-8B-FP8") << 9.08;
    QTest::newRow("gpt-oss-20b") << 13.76;
    QTest::newRow("gpt-oss-120b") << 65.25;
    QTest::newRow("DeepSeek-V3") << 673.2;
  }
  void isStoredInAsManyBytesAsPublished() {
    QFETCH(double, gigabytes);
    const auto model = open(QTest::currentDataTag());
    const double found = static_cast<double>(parametersOf(*model->aten).bytes) / 1e9;
    QVERIFY2(std::abs(found / gigabytes - 1) < 0.02, qPrintable(QString::number(found)));
  }

  void plansOnEveryNumberOfRanks_data() {
    QTest::addColumn<QString>("name");
    for (const QString& name : namesAsPublished()) QTest::newRow(qPrintable(name)) << name;
  }
  void plansOnEveryNumberOfRanks() {
    QFETCH(QString, name);
    const auto model = open(name);
    const Counted whole = parametersOf(*model->aten);
    for (const int ranks : {1, 2, 4, 8, 16}) {
      const auto plan = planOn(model, ranks);
      QCOMPARE(plan->spec.ranks, ranks);
      QCOMPARE(plan->memory.parameters, plan->cost.sum.parameters);
      if (ranks == 1) QCOMPARE(plan->memory.parameters, whole.bytes);
      QVERIFY(plan->memory.parameters * ranks >= whole.bytes);
    }
  }

  void theDocumentSaysWhatIsPlanned() {
    std::string text(kTableHead);
    for (const QString& name : namesAsPublished()) text += rowOf(name) + '\n';
    const fs::path file = CLEAVE_SOURCE_DIR "/docs/models.md";
    if (qEnvironmentVariableIsSet("CLEAVE_UPDATE_CASES")) {
      QVERIFY2(!qEnvironmentVariableIsSet("CI"), "CI does not write documents.");
      std::ofstream(file) << text;
    }
    const auto written = readTextFile(file, 1 << 20);
    const std::string found = written ? *written : std::string();
    QVERIFY2(found == text,
             qPrintable(QString::fromStdString(test::lineDiff(test::linesOf(found), test::linesOf(text)))));
  }
};

QTEST_APPLESS_MAIN(TestPublishedModels)
#include "tst_published_models.moc"
