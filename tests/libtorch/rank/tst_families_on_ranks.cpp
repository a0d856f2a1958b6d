/// Every model of tests/data on ranks: how it is split, that the ranks compute what transformers computed with it, and
/// that a step of training is that of the unsplit model.
#include "tests/libtorch/rank/family_runs.h"

#include "tests/support/cases.h"

#include <QTest>

#include <regex>

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

/// Without the variants.
std::vector<std::string> familiesAlone() {
  std::vector<std::string> names = modelsIn("families");
  std::erase_if(names, [](const std::string& name) { return name.find('-') != std::string::npos; });
  return names;
}

/// "model.layers.*.mlp.up_proj": the layer of every block.
std::string role(const std::string& name) { return std::regex_replace(name, std::regex("\\.[0-9]+(?=\\.|$)"), ".*"); }

/// By strategy the layers' roles, in the order of the model; a role of which layers are treated otherwise says of how
/// many.
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

std::string splitOnTwo(const test::Case& asked) {
  const std::string name = asked.question.substr(0, asked.question.find('\n'));
  return splitOf(*planned(openedFor(folderOf(name), expectedOf(name)), {}));
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
  void initTestCase() {
    qputenv("TORCH_FR_BUFFER_SIZE", "0");
    at::set_num_threads(1);
  }

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
    for (const int ranks : {1, 2, 4}) {
      for (const auto engine : {solve::Engine::Reference, solve::Engine::Optimal}) {
        if (ranks == 1 && engine == solve::Engine::Optimal) continue;  // nothing to choose
        const PlanPtr plan = planned(model, {.ranks = ranks, .engine = engine});
        const double part = ofTolerance(computed(*plan, expectedOf(name)), expected, kTolerance, maskOf(expected));
        QVERIFY2(part <= 1, fmt::format("{} on {} ranks by {}: {} of the tolerance\n{}", name, ranks,
                                        solve::toText(engine), part, splitOf(*plan))
                                .c_str());
      }
    }
  }

  /// Either way to split a mixture's experts.
  void expertsEitherWay_data() {
    listRows({"families/mixtral", "families/qwen2_moe", "families/qwen3_moe", "families/gpt_oss",
              "families/deepseek_v3", "families/mixtral-fused", "families/qwen3_moe-fused"});
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

  void aStepOfTrainingIsTheSame_data() { listRows(familiesAlone()); }
  void aStepOfTrainingIsTheSame() {
    QFETCH(std::string, name);
    const ModelPtr model = openedFor(folderOf(name), expectedOf(name));
    const double rate = 0.01;
    const TrainingStep whole = trained(*planned(model, {.ranks = 1}), expectedOf(name), rate);
    QVERIFY2(whole.after < whole.before, fmt::format("{} -> {}", whole.before, whole.after).c_str());
    const PlanPtr plan = planned(model, {.ranks = 2});
    const TrainingStep split = trained(*plan, expectedOf(name), rate);
    QVERIFY2(std::abs(split.after - whole.after) < kTolerance,
             fmt::format("{} -> {}, unsplit {} -> {}", split.before, split.after, whole.before, whole.after).c_str());
    for (const program::ParameterShards& parameter : plan->parameters) {
      const auto gradient = whole.gradients[0].find(parameter.name);
      if (gradient == whole.gradients[0].end()) continue;
      for (int rank = 0; rank < 2; ++rank) {
        const at::Tensor& own = split.gradients[static_cast<std::size_t>(rank)].at(parameter.name);
        const double part = ofTolerance(own, partOf(parameter, gradient->second, 2, rank), 1e-3);
        QVERIFY2(part <= 1,
                 fmt::format("the gradient of {} on rank {}: {} of the tolerance", parameter.name, rank, part).c_str());
      }
    }
  }
};

QTEST_GUILESS_MAIN(FamiliesOnRanksTest)
#include "tst_families_on_ranks.moc"
