/// `check` refuses a plan file if any field is altered or dropped.
#include "libtorch/capture/capture.h"
#include "pipeline/solve/check_plan.h"
#include "pipeline/solve/devices.h"
#include "pipeline/solve/solve.h"
#include "pipeline/source/open.h"
#include "pipeline/source/resources.h"
#include "plan/file/plan_fields.h"
#include "plan/file/plan_file.h"
#include "tests/support/need.h"
#include "tests/support/seeds.h"

#include <nlohmann/json.hpp>

#include <QTemporaryDir>
#include <QTest>

#include <fstream>
#include <random>

using namespace cleave;
using nlohmann::json;
using nlohmann::ordered_json;
using test::need;
using Pointer = json::json_pointer;

namespace {

/// Settings, timings and the version. A plan that differs only in these can be a valid plan for other settings.
constexpr std::array<std::string_view, 6> kBelieved{"/timings_ms/",        "/seed",           "/cost/budget_bytes",
                                                    "/cost/slack_percent", "/cost/optimizer", "/made_by"};

bool isBelow(const std::string& pointer, std::string_view part) {
  return pointer == part || (part.ends_with('/') && pointer.starts_with(part));
}
bool isBelieved(const std::string& pointer) {
  return std::any_of(kBelieved.begin(), kBelieved.end(), [&](std::string_view part) { return isBelow(pointer, part); });
}
/// The settings that a plan is recomputed from.
bool isAsked(const std::string& pointer) {
  constexpr std::array<std::string_view, 7> kAsked{"/model/",   "/ranks",  "/engine", "/menu", "/sequence_parallel",
                                                   "/demands/", "/device/"};
  return isBelieved(pointer) || pointer == "/cost/training" ||
         std::any_of(kAsked.begin(), kAsked.end(), [&](std::string_view part) { return isBelow(pointer, part); });
}

void collect(const json& value, const Pointer& at, std::vector<Pointer>& scalars) {
  if (!value.is_structured()) return scalars.push_back(at);
  if (value.is_array()) {
    for (std::size_t i = 0; i < value.size(); ++i) collect(value[i], at / i, scalars);
  } else {
    for (const auto& [key, item] : value.items()) collect(item, at / key, scalars);
  }
}

json altered(const json& value) {
  if (value.is_string()) return value.get<std::string>() + "x";
  if (value.is_boolean()) return !value.get<bool>();
  if (value.is_number_integer()) return value.get<std::int64_t>() + 1;
  if (value.is_number_float()) return value.get<double>() * 2 + 1;
  return 1;
}

void drop(json& plan, const Pointer& at) {
  json& parent = plan[at.parent_pointer()];
  parent.is_array() ? parent.erase(std::stoul(at.back())) : (void)parent.erase(at.back());
}

}  // namespace

class CheckPlanTest : public QObject {
  Q_OBJECT
  QTemporaryDir m_folder;
  std::string m_text;
  json m_plan;
  ordered_json m_again;
  std::vector<Pointer> m_scalars;

  /// Runs the full check.
  static bool isRefused(const json& plan) {
    const auto check = pipeline::checkPlan(plan.dump());
    return !check || !check->holds();
  }

  std::string planOf(const std::string& name, solve::Engine engine) {
    const auto model = need(pipeline::openModel(m_folder.filePath(QString::fromStdString(name)).toStdString(),
                                                {.batch = 1, .sequence = 4}));
    spec::PlanSpec options;
    options.engine = engine;
    options.cost.profile = need(pipeline::deviceProfile("h100"));
    options.pins = {need(solve::Pin::parse("lm_head=column"))};
    return plan::toJson(*need(pipeline::planModel(model, need(pipeline::solveModel(model, options)))));
  }

  void writeModel(const char* name, const char* norm = "1e-6", int vocabulary = 16, const char* theta = "10000.0") {
    std::filesystem::create_directories(m_folder.filePath(name).toStdString());
    std::ofstream(m_folder.filePath(name).toStdString() + "/config.json")
        << R"({"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 8, "intermediate_size": 16,
               "num_hidden_layers": 1, "num_attention_heads": 2, "num_key_value_heads": 1, "vocab_size": )"
        << vocabulary << R"(, "max_position_embeddings": 8, "rms_norm_eps": )" << norm << R"(, "rope_theta": )" << theta
        << R"(, "hidden_act": "silu", "tie_word_embeddings": false, "torch_dtype": "float32"})";
  }

 private slots:
  void initTestCase() {
    QVERIFY(m_folder.isValid());
    writeModel("model");
    m_text = planOf("model", solve::Engine::Optimal);
    m_plan = json::parse(m_text);
    m_again = ordered_json::parse(m_text);
    collect(m_plan, Pointer(), m_scalars);
    QVERIFY(m_scalars.size() > 1000);
  }

  void aPlanThatWasNotTouchedHolds_data() {
    QTest::addColumn<int>("engine");
    for (solve::Engine engine : {solve::Engine::Optimal, solve::Engine::Learning, solve::Engine::Reference}) {
      QTest::newRow(solve::toText(engine).data()) << static_cast<int>(engine);
    }
  }
  void aPlanThatWasNotTouchedHolds() {
    QFETCH(int, engine);
    const auto check = need(pipeline::checkPlan(planOf("model", static_cast<solve::Engine>(engine))));
    QVERIFY2(check.holds(), check.findings.empty() ? check.unchecked.c_str() : check.findings.front().c_str());
  }

  /// The comparison of fields finds every altered field.
  void everyFieldIsCompared() {
    std::size_t count = 0;
    const auto isFound = [&](const json& plan) {
      return !plan::differingFields(plan, m_again, plan::kMeasuredFields).empty();
    };
    for (const Pointer& at : m_scalars) {
      if (isBelow(at.to_string(), "/timings_ms/")) continue;
      const json before = m_plan[at];
      m_plan[at] = altered(before);
      const bool isAlteredFound = isFound(m_plan);
      m_plan[at] = before;
      json& list = m_plan[at.parent_pointer()];
      const json whole = list;
      drop(m_plan, at);
      const bool isDroppedFound = isFound(m_plan);
      list = whole;
      QVERIFY2(isAlteredFound && isDroppedFound, at.to_string().c_str());
      ++count;
    }
    qInfo("%zu fields altered and dropped", count);
    QVERIFY(count > 1000);
  }

  /// If a setting is altered, the full check runs and recomputes a different plan.
  void settingsAreCheckedAgainstThePlan() {
    int asked = 0, refused = 0;
    for (const Pointer& at : m_scalars) {
      const std::string pointer = at.to_string();
      if (!isAsked(pointer)) continue;
      json plan = m_plan;
      plan[at] = altered(m_plan[at]);
      const bool isAlteredRefused = isRefused(plan);
      const bool isOwnDevice = pointer == "/device/name";  // a profile with another name is not bundled
      QVERIFY2(isAlteredRefused || isBelieved(pointer) || isOwnDevice,
               (pointer + " altered to " + plan[at].dump()).c_str());
      drop(plan, at);
      QVERIFY2(isRefused(plan) || pointer == "/made_by", (pointer + " dropped").c_str());
      ++asked;
      refused += isAlteredRefused ? 1 : 0;
    }
    QVERIFY2(asked > 20 && refused > asked / 2, qPrintable(QString("%1 asked, %2 refused").arg(asked).arg(refused)));
  }

  /// The full check finds a random sample of altered and dropped fields.
  void aSampleIsRefusedByTheWholeCheck() {
    std::mt19937_64 random(test::seed());
    for (std::uint64_t round = 0, rounds = test::rounds(100); round < rounds; ++round) {
      const Pointer& at = m_scalars[std::uniform_int_distribution<std::size_t>(0, m_scalars.size() - 1)(random)];
      if (isAsked(at.to_string()) || at.to_string() == "/made_by") continue;
      json plan = m_plan;
      const bool isDropped = round % 2 == 0;
      isDropped ? drop(plan, at) : (void)(plan[at] = altered(m_plan[at]));
      QVERIFY2(isRefused(plan), (at.to_string() + (isDropped ? " dropped" : " altered")).c_str());
    }
  }

  void certificatesAreCheckedAgainstTheRules() {
    const auto check = need(pipeline::checkPlan(m_text));
    QVERIFY2(check.proof.starts_with("Its certificate is valid: no plan takes less than "), check.proof.c_str());

    // A claim above the cost of the cheapest completion of a state: the verification alone refuses it.
    json plan = m_plan;
    json& claim = plan["certificate"]["claims"][0][0];
    QVERIFY(claim.is_number());
    claim = claim.get<std::int64_t>() + 1;
    const auto refused = need(pipeline::checkPlan(plan.dump()));
    QCOMPARE(refused.findings.size(), std::size_t(1));
    QVERIFY2(refused.findings.front().starts_with("The certificate is invalid: "), refused.findings.front().c_str());

    // A plan of an earlier version has no certificate, and the check reports that.
    plan = m_plan;
    plan.erase("certificate");
    const auto without = need(pipeline::checkPlan(plan.dump()));
    QVERIFY(without.holds());
    QVERIFY2(without.proof.starts_with("It has no certificate"), without.proof.c_str());
    QVERIFY(without.lacksCertificate && !check.lacksCertificate);
  }

  /// Sentences of another version may differ. Placements and figures are still checked.
  void sentencesOfAnotherVersionMayDiffer() {
    for (const bool isNamed : {true, false}) {
      json plan = m_plan;
      isNamed ? (void)(plan["made_by"] = "0.0.9") : (void)plan.erase("made_by");
      for (json& layer : plan["layers"]) layer["reason"] = "a reason of another version";
      plan["warnings"].push_back("a warning of another version");
      plan["search"]["visits"] = 1;
      const auto check = need(pipeline::checkPlan(plan.dump()));
      QVERIFY2(check.holds(), check.findings.empty() ? check.unchecked.c_str() : check.findings.front().c_str());
      QVERIFY2(check.otherVersion.starts_with(isNamed ? "Cleave \"0.0.9\" made it, " : "An unknown version of Cleave"),
               check.otherVersion.c_str());
      plan["cost"]["collectives"] = 99;
      QVERIFY(isRefused(plan));
    }
    json plan = m_plan;
    plan["layers"][0]["reason"] = "not a reason of this version";
    QVERIFY(isRefused(plan));
    QCOMPARE(need(pipeline::checkPlan(m_text)).otherVersion, std::string());
  }

  /// A plan has another strategy than the proved one, and consistent figures. Its certificate reveals that.
  void aPlanWithAnotherStrategyIsRefused() {
    const auto made = [&](std::vector<std::string> pins) {
      const auto model =
          need(pipeline::openModel(m_folder.filePath("model").toStdString(), {.batch = 1, .sequence = 4}));
      spec::PlanSpec options;
      options.cost.profile = need(pipeline::deviceProfile("h100"));
      for (const std::string& pin : pins) options.pins.push_back(need(solve::Pin::parse(pin)));
      return json::parse(plan::toJson(*need(pipeline::planModel(model, need(pipeline::solveModel(model, options))))));
    };
    const json best = made({});
    json other = made({"*mlp.up_proj=column"});
    QVERIFY(best["cost"]["step_fs"] != other["cost"]["step_fs"]);
    other["demands"] = best["demands"];
    QVERIFY(isRefused(other));
    other["certificate"] = best["certificate"];
    const auto check = need(pipeline::checkPlan(other.dump()));
    QCOMPARE(check.findings.size(), std::size_t(1));
    QVERIFY2(check.findings.front().starts_with("Its certificate proves that the fastest plan takes exactly "),
             check.findings.front().c_str());
  }

  /// A correct plan within a budget is not refused, both if stored bytes and if the peak of a step decides.
  void plansWithinABudgetHold() {
    int within = 0, slower = 0;
    const auto model = need(pipeline::openModel((pipeline::resourcesFolder() / "models/one-kv-head").string(), {}));
    for (const std::int64_t kibibytes : {800, 700, 650, 600, 575, 560, 550, 540}) {
      spec::PlanSpec options;
      options.cost.profile = need(pipeline::deviceProfile("h100"));
      options.cost.memoryBudget = kibibytes << 10;
      const auto solved = need(pipeline::solveModel(model, options));
      if (!solved->result.solution) continue;
      const auto made = need(pipeline::planModel(model, solved));
      const auto check = need(pipeline::checkPlan(plan::toJson(*made)));
      const std::string wrong = check.holds() ? "" : check.findings.front();
      QVERIFY2(wrong.empty(), fmt::format("{} KiB: {}", kibibytes, wrong).c_str());
      ++within;
      slower += check.proof.find("It does not prove that every plan within") != std::string::npos;
    }
    QVERIFY2(within > 3 && slower > 0, fmt::format("{} plans, {} slower than the bound", within, slower).c_str());
  }

  /// If a search stops at its limit, no query about its plan returns a faster one within the budget.
  void noAnswerHasAFasterPlanWithinTheBudget() {
    const auto model = need(pipeline::openModel((pipeline::resourcesFolder() / "models/one-kv-head").string(),
                                                spec::InputSpec{.batch = 3}));
    int notProved = 0;
    for (const std::int64_t budget : {1'182'996, 1'237'524, 1'287'984, 1'448'982}) {
      spec::PlanSpec options{.ranks = 6};
      options.cost.profile = need(pipeline::deviceProfile("h100"));
      options.cost.memoryBudget = budget;
      const auto solved = need(pipeline::solveModel(model, options));
      QVERIFY(solved->result.optimum);
      const auto made = need(pipeline::planModel(model, solved));
      const std::string about = fmt::format("{} bytes: {}", budget, made->cost.femtoseconds().count());
      for (const plan::LayerPlan& layer : made->layers)
        QVERIFY2(!layer.regretFs || *layer.regretFs >= 0, (about + ", " + layer.name).c_str());
      const auto isNoFaster = [&](const solve::Optimum::Listed& listed) -> Result<void> {
        if (listed.cost.femtoseconds() >= made->cost.femtoseconds()) return {};
        return fail(ErrorCode::Negative, "{} is listed", listed.cost.femtoseconds().count());
      };
      const auto listing = solved->result.optimum->best(4, isNoFaster);
      QVERIFY2(listing.has_value(), (about + (listing ? "" : ", " + listing.error().message)).c_str());
      for (const solve::ParetoPoint& point : need(solved->result.optimum->front()).points)
        QVERIFY2(point.bytes > budget || point.femtoseconds >= made->cost.femtoseconds(), about.c_str());
      QCOMPARE(need(pipeline::checkPlan(plan::toJson(*made))).findings, std::vector<std::string>());
      notProved += !solved->result.optimum->isProved();
    }
    QVERIFY(notProved > 0);
  }

  void theFirstFieldThatDiffersIsNamed_data() {
    QTest::addColumn<QString>("pointer");
    QTest::addColumn<QString>("phrase");
    QTest::newRow("a figure") << "/cost/step_fs"
                              << "plan.cost.step_fs is ";
    QTest::newRow("a reason") << "/layers/0/reason"
                              << "plan.layers[0].reason is ";
    QTest::newRow("an effort") << "/search/visits"
                               << "plan.search.visits is ";
    QTest::newRow("a verdict") << "/layers/0/standing/kind"
                               << "plan.layers[0].standing.kind is ";
  }
  void theFirstFieldThatDiffersIsNamed() {
    QFETCH(QString, pointer);
    QFETCH(QString, phrase);
    json plan = m_plan;
    const Pointer at(pointer.toStdString());
    plan[at] = pointer.endsWith("kind") ? json("not_known") : altered(plan[at]);
    const auto check = need(pipeline::checkPlan(plan.dump()));
    QCOMPARE(check.findings.size(), std::size_t(1));
    const QString said = QString::fromStdString(check.findings.front());
    QVERIFY2(said.startsWith(phrase) && said.contains(" in the file and ") && said.contains(" in the recomputed plan"),
             qPrintable(said));
  }

  /// The check reports the other model, not the many fields that differ because of it.
  void reportsAnotherModelInTheFolder() {
    writeModel("changing");
    const std::string plan = planOf("changing", solve::Engine::Learning);
    const auto finding = [&] { return need(pipeline::checkPlan(plan)).findings.at(0); };
    writeModel("changing", "1e-6", 32);
    QVERIFY2(finding().find("is not the planned one: its `lm_head.weight` is f32[32,8], but f32[16,8] in the plan.") !=
                 std::string::npos,
             finding().c_str());
    writeModel("changing", "0.5");
    QVERIFY2(finding().find("its operators differ from `add") != std::string::npos, finding().c_str());
    writeModel("changing", "1e-6", 16, "500000.0");
    QVERIFY2(finding().find("` has other values, for example after") != std::string::npos, finding().c_str());
    writeModel("changing");
    QVERIFY(need(pipeline::checkPlan(plan)).holds());
  }

  void withoutItsModelTheRestIsChecked() {
    writeModel("gone");
    const std::string text = planOf("gone", solve::Engine::Optimal);
    std::filesystem::remove_all(m_folder.filePath("gone").toStdString());
    const auto check = need(pipeline::checkPlan(text));
    QVERIFY2(check.findings.empty(), check.findings.empty() ? "" : check.findings.front().c_str());
    QVERIFY2(check.unchecked.find("Without the model, these are not checked: the graph") != std::string::npos,
             check.unchecked.c_str());
    json plan = json::parse(text);
    plan["cost"]["step_fs"] = 1;
    QVERIFY(!need(pipeline::checkPlan(plan.dump())).findings.empty());
  }
};

QTEST_GUILESS_MAIN(CheckPlanTest)
#include "tst_check_plan.moc"
