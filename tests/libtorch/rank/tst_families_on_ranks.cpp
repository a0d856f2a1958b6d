/// Every model of tests/data on ranks: its splits, and its results compared with transformers. tst_compatibility covers
/// each family in more detail.
#include <nlohmann/json.hpp>

#include "libtorch/rank/execute/output_file.h"
#include "pipeline/compare/rounding.h"
#include "tests/libtorch/rank/family_runs.h"

#include "base/output_file.h"
#include "base/temporary_folder.h"
#include "tests/support/cases.h"
#include "tests/support/seeds.h"

#include <QTest>

#include <regex>
#include "pipeline/compare/rounding.h"

using namespace cleave;
using namespace cleave::tests;

namespace {

constexpr double kTolerance = 1e-4;

fs::path folderOf(const std::string& name) { return fs::path(CLEAVE_TEST_DATA) / name; }
fs::path expectedOf(const std::string& name) { return folderOf(name) / "expected.safetensors"; }

std::vector<std::string> modelsIn(const char* kind) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folderOf(kind))) {
    if (fs::exists(entry.path() / "expected.safetensors"))
      names.push_back(std::string(kind) + "/" + entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

bool isVariant(const std::string& name) { return name.find('-') != std::string::npos; }

struct Run {
  int ranks;
  solve::Engine engine;
};
/// Runs the cases that tst_compatibility does not cover, or all if rounds are scaled up.
std::vector<Run> runsOf(const std::string& name) {
  using solve::Engine;
  if (test::rounds(1) > 1)
    return {{1, Engine::Reference},
            {2, Engine::Reference},
            {2, Engine::Optimal},
            {4, Engine::Reference},
            {4, Engine::Optimal}};
  if (isVariant(name)) return {{2, Engine::Reference}};
  return {{2, Engine::Optimal}, {4, Engine::Optimal}};
}

/// "model.layers.*.mlp.up_proj": the layer of every block.
std::string role(const std::string& name) { return std::regex_replace(name, std::regex("\\.[0-9]+(?=\\.|$)"), ".*"); }

/// The layers' roles by strategy, in model order. A role with several strategies has a count for each.
std::string splitOf(const plan::Plan& plan) {
  std::vector<std::pair<std::string, std::string>> order;  // strategy, role
  std::map<std::pair<std::string, std::string>, int> counts;
  std::map<std::string, int> total;
  for (const plan::LayerPlan& layer : plan.layers) {
    const std::pair key(std::string(rules::toText(layer.strategy)), role(layer.name));
    if (counts[key]++ == 0) order.push_back(key);
    ++total[key.second];
  }
  std::map<std::string, std::string> lines;
  for (const auto& key : order) {
    const bool isAll = counts[key] == total[key.second];
    std::string& line = lines[key.first];
    line += fmt::format("{} {}", line.empty() ? ":" : ",", key.second);
    if (!isAll) line += fmt::format(" ({} of {})", counts[key], total[key.second]);
  }
  std::string text;
  for (const auto& [strategy, roles] : lines) text += strategy + roles + "\n";
  return text;
}

/// Plans a folder or an archive of tests/data. `> menu optimum`.
std::string splitOnTwo(const test::Case& asked) {
  const std::string name = asked.question.substr(0, asked.question.find('\n'));
  const auto candidateSet = rules::parseCandidateSet(asked.setting("menu", "full"));
  if (!candidateSet) qFatal("no such candidate set");
  const Wanted wanted{.candidateSet = *candidateSet};
  if (name.ends_with(".pt2"))
    return splitOf(*planned(need(pipeline::openModel((fs::path(CLEAVE_TEST_DATA) / name).string(), {})), wanted));
  return splitOf(*planned(openedFor(folderOf(name), expectedOf(name)), wanted));
}

void listRows(const std::vector<std::string>& names) {
  QTest::addColumn<std::string>("name");
  for (const std::string& name : names) QTest::newRow(name.c_str()) << name;
}

std::optional<at::Tensor> maskOf(const Tensors& inputs) {
  const auto mask = inputs.find("attention_mask");
  return mask == inputs.end() ? std::nullopt : std::optional(mask->second);
}

}  // namespace

class FamiliesOnRanksTest : public QObject {
  Q_OBJECT
  const test::Cases m_cases{"libtorch/rank/families", {{"splits", splitOnTwo}}};

 private slots:
  void initTestCase() { at::set_num_threads(1); }

  void areSplitAsWritten_data() { m_cases.list(); }
  void areSplitAsWritten() { m_cases.answer(); }

  void ranksComputeWhatIsExpected_data() {
    std::vector<std::string> names = modelsIn("families");
    for (const char* kind : {"models", "decoders"}) {
      const auto more = modelsIn(kind);
      names.insert(names.end(), more.begin(), more.end());
    }
    listRows(names);
  }
  void ranksComputeWhatIsExpected() {
    QFETCH(std::string, name);
    const ModelPtr model = openedFor(folderOf(name), expectedOf(name));
    const Tensors expected = readTensors(expectedOf(name));
    for (const Run& run : runsOf(name)) {
      const PlanPtr plan = planned(model, {.ranks = run.ranks, .engine = run.engine});
      const double part = ofTolerance(computed(*plan, expectedOf(name)), expected, kTolerance, maskOf(expected));
      QVERIFY2(part <= 1, fmt::format("{} on {} ranks by {}: {} of the tolerance\n{}", name, run.ranks,
                                      solve::toText(run.engine), part, splitOf(*plan))
                              .c_str());
    }
  }

  /// A second engine must find the same plan.
  void learningAnswersAsReference_data() { listRows(modelsIn("families")); }
  void learningAnswersAsReference() {
    QFETCH(std::string, name);
    const ModelPtr model = openedFor(folderOf(name), expectedOf(name));
    for (const auto candidateSet : {rules::CandidateSet::Optimum, rules::CandidateSet::Full}) {
      const PlanPtr reference = planned(model, {.candidateSet = candidateSet});
      const PlanPtr learning = planned(model, {.engine = solve::Engine::Learning, .candidateSet = candidateSet});
      QCOMPARE(splitOf(*learning), splitOf(*reference));
      QVERIFY(learning->solution->placements == reference->solution->placements);
    }
  }

  /// Both ways to split a mixture's experts, stored as one tensor (tst_compatibility: separate tensors).
  void expertsEitherWay_data() {
    listRows({"families/mixtral-fused", "families/qwen2_moe-fused", "families/qwen3_moe-fused",
              "families/deepseek_v3-fused"});
  }
  void expertsEitherWay() {
    QFETCH(std::string, name);
    const ModelPtr model = openedFor(folderOf(name), expectedOf(name));
    const Tensors expected = readTensors(expectedOf(name));
    for (const char* how : {"by-expert", "in-expert"}) {
      const PlanPtr plan = planned(model, {.pins = {fmt::format("*.experts=={}", how)}});
      QVERIFY2(splitOf(*plan).find(how) != std::string::npos, splitOf(*plan).c_str());
      const double part = ofTolerance(computed(*plan, expectedOf(name)), expected, kTolerance, maskOf(expected));
      QVERIFY2(part <= 1, fmt::format("{}: {} of the tolerance", how, part).c_str());
    }
  }

  /// As in from_pretrained: a parameter stored in another type is cast to the config's type on load.
  void storedTypesAreCastToTheConfigs() {
    const std::string name = "families/llama";
    const auto folder = need(TemporaryFolder::make("cleave-test"));
    std::map<std::string, Tensors> outputs;
    for (const char* how : {"all", "but norms"}) {
      const fs::path model = folder / how;
      fs::create_directory(model);
      torch_rank::NamedTensors weights;
      for (const auto& [parameter, tensor] : readTensors(folderOf(name) / "model.safetensors")) {
        const bool isCast = how == std::string("all") || parameter.find("norm") == std::string::npos;
        weights.emplace_back(parameter, isCast ? tensor.to(at::kBFloat16) : tensor);
      }
      needDone(torch_rank::writeOutputs(weights, model / "model.safetensors"));
      auto config = nlohmann::json::parse(need(readTextFile(folderOf(name) / "config.json", 1 << 20)));
      config["dtype"] = "bfloat16";
      needDone(writeFile(model / "config.json", config.dump()));
      for (const int ranks : {1, 2}) {
        const PlanPtr plan = planned(openedFor(model, expectedOf(name)), {.ranks = ranks});
        for (const auto& parameter : plan->parameters) QCOMPARE(parameter.type.dtype, graph::DType::BFloat16);
        outputs[how + std::to_string(ranks)] = computed(*plan, expectedOf(name));
      }
    }
    for (const char* ranks : {"1", "2"}) {
      for (const char* output : {"logits", "loss"})
        QVERIFY(
            at::equal(outputs[std::string("but norms") + ranks][output], outputs[std::string("all") + ranks][output]));
    }
    // Rounding alone uses up to one and a half times the tolerance (tst_compatibility).
    QVERIFY(ofTolerance(outputs["all2"], outputs["all1"], pipeline::unitWithoutRuler(graph::DType::BFloat16)) <= 2);
  }
};

QTEST_GUILESS_MAIN(FamiliesOnRanksTest)
#include "tst_families_on_ranks.moc"
