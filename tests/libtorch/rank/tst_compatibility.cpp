/// Computes docs/compatibility.md: the supported features of each family. CLEAVE_UPDATE_CASES=1 rewrites it.
#include "families/family_table.h"
#include "families/model_config.h"
#include "libtorch/rank/execute/output_file.h"
#include "pipeline/compare/rounding.h"
#include "solve/problem/wording.h"
#include "tests/libtorch/rank/family_runs.h"

#include "base/files.h"
#include "base/output_file.h"
#include "base/temporary_folder.h"

#include <QTest>
#include "pipeline/compare/rounding.h"

using namespace cleave;
using namespace cleave::tests;

namespace {

constexpr double kTolerance = 1e-4;
constexpr std::int64_t kPadded = 3;  // positions of the last row

/// Empty if the file does not exist.
fs::path folderOf(const std::string& family) {
  for (const char* kind : {"families", "decoders"}) {
    const fs::path folder = fs::path(CLEAVE_TEST_DATA) / kind / family;
    if (fs::exists(folder / "expected.safetensors")) return folder;
  }
  return {};
}

/// The text of a cell. `isGood`: it needs no explanation.
struct Cell {
  bool isGood = true;
  std::string text = "yes";
};
Cell none() { return {true, "–"}; }
Cell yesIf(bool holds) { return {holds, holds ? "yes" : "no"}; }

struct Column {
  const char* title;
  Cell (*cell)(const std::string& family);
};

Tensors expectedOf(const std::string& family) { return readTensors(folderOf(family) / "expected.safetensors"); }
fs::path inputsOf(const std::string& family) { return folderOf(family) / "expected.safetensors"; }
ModelPtr opened(const std::string& family) { return openedFor(folderOf(family), inputsOf(family)); }

/// The plan of engine `reference`, computed once.
PlanPtr planOf(const std::string& family, int ranks) {
  static std::map<std::pair<std::string, int>, PlanPtr> plans;
  PlanPtr& plan = plans[{family, ranks}];
  if (!plan) plan = planned(opened(family), {.ranks = ranks});
  return plan;
}

/// The outputs of the ranks of that plan.
const Tensors& outputsOn(const std::string& family, int ranks) {
  static std::map<std::pair<std::string, int>, Tensors> outputs;
  Tensors& found = outputs[{family, ranks}];
  if (found.empty()) found = computed(*planOf(family, ranks), inputsOf(family));
  return found;
}

families::ModelConfig configOf(const std::string& family) {
  const auto folder = need(formats::openModelFolder(folderOf(family)));
  return need(families::readModelConfig(folder));
}

/// Number of layers whose weights or logits are split.
Cell splitLayers(const std::string& family) {
  const PlanPtr plan = planOf(family, 2);
  const auto split = std::count_if(plan->layers.begin(), plan->layers.end(),
                                   [](const auto& layer) { return layer.strategy != rules::Strategy::Replicated; });
  return {split == std::ssize(plan->layers), fmt::format("{} of {}", split, plan->layers.size())};
}

/// The numbers of ranks whose output equals transformers'.
Cell ranksWith(const std::string& family, const std::string& output) {
  const Tensors expected = expectedOf(family);
  const auto mask = expected.find("attention_mask");
  Cell cell{true, ""};
  for (const int ranks : {1, 2, 4}) {
    const double part = ofTolerance(outputsOn(family, ranks).at(output), expected.at(output), kTolerance,
                                    mask == expected.end() ? std::nullopt : std::optional(mask->second));
    if (part <= 1) cell.text += fmt::format("{}{}", cell.text.empty() ? "" : ", ", ranks);
    cell.isGood = cell.isGood && part <= 1;
  }
  return cell;
}
Cell run(const std::string& family) { return ranksWith(family, "logits"); }
Cell loss(const std::string& family) { return ranksWith(family, "loss"); }

/// The loss after the step and the gradients before it must be equal.
Cell training(const std::string& family) {
  const double rate = 0.01, gradientTolerance = 1e-3;
  const TrainingStep whole = trained(*planOf(family, 1), inputsOf(family), rate);
  const PlanPtr plan = planOf(family, 2);
  const TrainingStep split = trained(*plan, inputsOf(family), rate);
  double worst = std::abs(split.after - whole.after) / kTolerance;
  for (const program::ParameterShards& parameter : plan->parameters) {
    const auto gradient = whole.gradients[0].find(parameter.name);
    if (gradient == whole.gradients[0].end()) continue;
    for (int rank = 0; rank < plan->spec.ranks; ++rank) {
      const at::Tensor& own = split.gradients[static_cast<std::size_t>(rank)].at(parameter.name);
      const double part =
          ofTolerance(own, partOf(parameter, gradient->second, plan->spec.ranks, rank), gradientTolerance);
      if (part > 1) qWarning("%s: the gradient of %s on rank %d", family.c_str(), parameter.name.c_str(), rank);
      worst = std::max(worst, part);
    }
  }
  return yesIf(whole.after < whole.before && worst <= 1);
}

/// The numbers of ranks whose tokens equal those of transformers.
Cell generation(const std::string& family) {
  if (!std::holds_alternative<families::CausalHead>(configOf(family).head)) return none();
  const fs::path file = fs::path(CLEAVE_TEST_DATA) / "generation" / (family + ".safetensors");
  if (!fs::exists(file)) return {false, "–"};
  Cell cell{true, ""};
  for (const int ranks : {1, 2, 4}) {
    const bool holds = generatesAs(folderOf(family), file, ranks);
    if (holds) cell.text += fmt::format("{}{}", cell.text.empty() ? "" : ", ", ranks);
    cell.isGood = cell.isGood && holds;
  }
  return cell;
}

/// Fused projections: each rank has its part of each matrix.
Cell fused(const std::string& family) {
  const families::ModelConfig config = configOf(family);
  std::vector<std::pair<const char*, std::string>> names;
  if (const auto* attention = std::get_if<families::SelfAttention>(&config.family.attention)) {
    if (const auto* blocks = std::get_if<families::FusedBlocks>(&attention->qkv))
      names.emplace_back("q, k, v", blocks->name);
    if (const auto* heads = std::get_if<families::FusedPerHead>(&attention->qkv))
      names.emplace_back("q, k, v by head", heads->name);
  }
  if (const auto* mlp = std::get_if<families::FusedGatedMlp>(&config.family.mlp.kind))
    names.emplace_back("gate, up", mlp->gateUp);
  if (names.empty()) return none();
  const PlanPtr plan = planOf(family, 2);
  Cell cell{true, ""};
  for (const auto& [what, name] : names) {
    cell.text += fmt::format("{}{}", cell.text.empty() ? "" : "; ", what);
    for (const plan::LayerPlan& layer : plan->layers)
      cell.isGood = cell.isGood && (!layer.name.ends_with(name) || layer.strategy == rules::Strategy::Column);
  }
  return cell;
}

Cell experts(const std::string& family) {
  if (configOf(family).family.experts.rule == families::SparseRule::Never) return none();
  const ModelPtr model = opened(family);
  const Tensors expected = expectedOf(family);
  for (const char* how : {"by-expert", "in-expert"}) {
    const PlanPtr plan = planned(model, {.pins = {fmt::format("*.experts=={}", how)}});
    if (ofTolerance(computed(*plan, inputsOf(family)), expected, kTolerance) > 1) return yesIf(false);
  }
  return {true, "by expert, inside"};
}

/// The inputs, with padding in the last row.
torch_rank::NamedTensors paddedInputs(const std::string& family, bool isLeft) {
  torch_rank::NamedTensors inputs;
  at::Tensor mask;
  for (const auto& [name, tensor] : expectedOf(family)) {
    if (name == "input_ids") mask = at::ones_like(tensor);
    if (name != "attention_mask" && name != "logits" && name != "loss") inputs.emplace_back(name, tensor);
  }
  const auto ofLastRow = [&](const at::Tensor& x) {
    return x.select(0, x.size(0) - 1).narrow(0, isLeft ? 0 : x.size(1) - kPadded, kPadded);
  };
  ofLastRow(mask).fill_(0);
  for (auto& [name, tensor] : inputs) {
    if (name == "labels" && tensor.dim() == 2) ofLastRow(tensor).fill_(-100);
  }
  inputs.emplace_back("attention_mask", mask);
  return inputs;
}

/// Equal to the unsplit model at all positions, including padding.
Cell padding(const std::string& family) {
  const auto folder = need(TemporaryFolder::make("cleave-test"));
  const std::map<std::string, fs::path> sides{{"left", folder / "left"}, {"right", folder / "right"}};
  for (const auto& [side, inputs] : sides)
    needDone(torch_rank::writeOutputs(paddedInputs(family, side == "left"), inputs));
  const ModelPtr model = openedFor(folderOf(family), sides.at("left"));
  const PlanPtr whole = planned(model, {.ranks = 1}), split = planned(model, {.ranks = 2});
  Cell cell{true, ""};
  for (const auto& [side, inputs] : sides) {
    const bool holds = ofTolerance(computed(*split, inputs), computed(*whole, inputs), kTolerance) <= 1;
    cell.isGood = cell.isGood && holds;
    if (holds) cell.text += fmt::format("{}{}", cell.text.empty() ? "" : ", ", side);
  }
  return cell;
}

/// Equal to the unsplit model in that type. If rounding alone exceeds the tolerance, at most twice as far from the
/// float32 model as the unsplit one.
Cell half(const std::string& family) {
  constexpr double kSlack = 2;
  const Tensors exact = outputsOn(family, 1);
  Cell cell{true, ""};
  for (const auto dtype : {graph::DType::BFloat16, graph::DType::Float16}) {
    const ModelPtr model = openedFor(folderOf(family), inputsOf(family), dtype);
    const double tolerance = pipeline::unitWithoutRuler(dtype);
    const Tensors whole = computed(*planned(model, {.ranks = 1}), inputsOf(family));
    const Tensors split = computed(*planned(model, {.ranks = 2}), inputsOf(family));
    const bool isSame = ofTolerance(split, whole, tolerance) <= 1;
    const bool isAsNear = ofTolerance(split, exact, tolerance) <= kSlack * ofTolerance(whole, exact, tolerance);
    cell.isGood = cell.isGood && (isSame || isAsNear);
    if (isSame || isAsNear) cell.text += fmt::format("{}{}", cell.text.empty() ? "" : ", ", graph::toText(dtype));
  }
  return cell;
}

/// A layer's name in transformers' code, if checkpoints have another one: "model.layers.*.mlp.gate".
std::string nameInCode(const std::string& name) {
  std::string text = solve::withoutIndices(name);
  for (const auto& [inCheckpoints, inCode] :
       {std::pair<std::string_view, std::string_view>{"block_sparse_moe", "mlp"}, {"embed_out", "lm_head"}}) {
    if (const auto at = text.find(inCheckpoints); at != std::string::npos)
      text.replace(at, inCheckpoints.size(), inCode);
  }
  return text;
}

/// One layer of the same model, exported by torch.export. It must compute the same as transformers, and its layers must
/// be split as in the folder.
Cell archive(const std::string& family) {
  const fs::path exported = fs::path(CLEAVE_TEST_DATA) / "exported";
  const fs::path inputs = exported / (family + ".expected.safetensors");
  if (!fs::exists(inputs)) return {false, "–"};
  const ModelPtr model = need(pipeline::openModel((exported / (family + ".pt2")).string(), {}));
  Cell cell{true, ""};
  const auto add = [&](bool holds, const std::string& text) {
    cell.isGood = cell.isGood && holds;
    if (!text.empty()) cell.text += (cell.text.empty() ? "" : ", ") + text;
  };
  PlanPtr two;
  for (const int ranks : {1, 2, 4}) {
    const PlanPtr plan = planned(model, {.ranks = ranks});
    if (ranks == 2) two = plan;
    const bool holds = ofTolerance(computed(*plan, inputs), readTensors(inputs), kTolerance) <= 1;
    add(holds, holds ? std::to_string(ranks) : "");
  }
  std::multimap<std::string, rules::Strategy> asFolder;  // "model.layers.*.mlp.gate_proj"
  for (const plan::LayerPlan& layer : planOf(family, 2)->layers)
    asFolder.emplace(nameInCode(layer.name), layer.strategy);
  std::ptrdiff_t same = 0;
  for (const plan::LayerPlan& layer : two->layers) {
    const auto [first, last] = asFolder.equal_range(nameInCode(layer.name));
    same += std::any_of(first, last, [&](const auto& other) { return other.second == layer.strategy; });
  }
  const auto all = std::ssize(two->layers);
  add(same == all, same == all ? "split alike" : fmt::format("{} of {} split alike", same, all));
  return cell;
}

constexpr Column kColumns[] = {
    {"split layers", splitLayers}, {"logits", run},  {"loss", loss},       {"generation", generation},
    {"training", training},        {"fused", fused}, {"experts", experts}, {"padding", padding},
    {"half precision", half},      {".pt2", archive}};

/// The reason for a limited cell, by column title and family ("" for all).
const std::map<std::pair<std::string, std::string>, std::string> kReasons = {
    {{"split layers", "qwen2_moe"}, "The gate of the shared experts has one output, which two ranks cannot divide."},
    {{"split layers", "roberta"}, "The table of token types has one row, which two ranks cannot divide."},
    {{".pt2", "ministral"}, "The test data has no exported program of this family."},
};

/// nullopt: no explanation exists, which is a failure.
std::optional<std::string> reasonOf(const std::string& title, const std::string& family) {
  for (const std::string& who : {family, std::string()}) {
    if (const auto reason = kReasons.find({title, who}); reason != kReasons.end()) return reason->second;
  }
  return std::nullopt;
}

constexpr const char* kHead =
    R"(# What works with which family

`tst_compatibility` computes this table with the models in tests/data/families. The test fails if this page differs.

- split layers: layers that two ranks split, and all layers (engine `reference`, candidate set `full`).
- logits, loss: numbers of ranks whose values equal those of transformers within 1e-4.
- generation: numbers of ranks that generate the same tokens as transformers, with a KV cache.
- training: an SGD step on two ranks has the same gradients and the same new loss as unsplit, and the loss decreases.
- fused: projections that contain several matrices; each rank has a part of each matrix.
- experts: ways to split a mixture's experts that compute the same as transformers.
- padding: sides on which an attention mask may pad; two ranks compute the same as one.
- half precision: types in which two ranks compute the same as one, within the run's tolerance for the type. On some
  processors the difference is larger, but at most twice the difference between one rank and float32.
- .pt2: numbers of ranks on which the exported program (one layer of the model) computes the same as transformers;
  "split alike" if its layers have the folder's strategies.

)";

}  // namespace

class CompatibilityTest : public QObject {
  Q_OBJECT
  std::map<std::string, std::vector<Cell>> m_rows;

  static std::vector<std::string> families() {
    std::vector<std::string> names;
    for (const families::Family* family : cleave::families::families()) {
      if (folderOf(std::string(family->modelType)).empty()) qFatal("%s has no folder", family->modelType.data());
      names.emplace_back(family->modelType);
    }
    return names;
  }

 private slots:
  void initTestCase() { at::set_num_threads(1); }

  void everyCellHolds_data() {
    QTest::addColumn<std::string>("family");
    for (const std::string& family : families()) QTest::newRow(family.c_str()) << family;
  }
  void everyCellHolds() {
    QFETCH(std::string, family);
    std::vector<Cell>& row = m_rows[family];
    for (const Column& column : kColumns) row.push_back(column.cell(family));
    for (std::size_t i = 0; i < row.size(); ++i) {
      const char* title = kColumns[i].title;
      QVERIFY2(row[i].isGood || reasonOf(title, family), fmt::format("{}: {}", title, row[i].text).c_str());
    }
  }

  void thePageSaysSo() {
    if (m_rows.size() != families().size()) QSKIP("only some rows were computed");
    const fs::path page = fs::path(CLEAVE_SOURCE_DIR) / "docs" / "compatibility.md";
    const std::string text = pageText();
    if (qEnvironmentVariableIsSet("CLEAVE_UPDATE_CASES")) {
      QVERIFY2(!qEnvironmentVariableIsSet("CI"), "CI changes no documents");
      needDone(writeFile(page, text));
    }
    QCOMPARE(need(readTextFile(page, 1 << 20)), text);
  }

 private:
  std::string pageText() const {
    std::string text = std::string(kHead) + "| family |", rule = "|---|";
    for (const Column& column : kColumns) {
      text += fmt::format(" {} |", column.title);
      rule += "---|";
    }
    text += "\n" + rule + "\n";
    std::vector<std::string> notes;
    for (const auto& [family, row] : m_rows) {
      text += fmt::format("| {} |", family);
      for (std::size_t i = 0; i < row.size(); ++i) text += fmt::format(" {} |", row[i].text + note(family, i, notes));
      text += "\n";
    }
    text += "\n";
    for (std::size_t i = 0; i < notes.size(); ++i) text += fmt::format("{}. {}\n", i + 1, notes[i]);
    return text;
  }

  /// The footnote " (1)" after a cell that needs an explanation.
  std::string note(const std::string& family, std::size_t column, std::vector<std::string>& notes) const {
    if (m_rows.at(family)[column].isGood) return "";
    const std::string reason = reasonOf(kColumns[column].title, family).value_or("Not explained.");
    auto at = std::find(notes.begin(), notes.end(), reason);
    if (at == notes.end()) at = notes.insert(notes.end(), reason);
    return fmt::format(" ({})", at - notes.begin() + 1);
  }
};

QTEST_GUILESS_MAIN(CompatibilityTest)
#include "tst_compatibility.moc"
