#include "cli/what_if.h"

#include "base/json.h"
#include "base/quantities.h"
#include "cli/console.h"
#include "cli/foreign_command.h"
#include "pipeline/solve/solve.h"
#include "pipeline/source/open.h"
#include "plan/build/diff.h"
#include "plan/build/preflight.h"
#include "plan/build/world_sizes.h"
#include "plan/file/plan_file.h"
#include "plan/text/shares_text.h"
#include "solve/problem/redistribution.h"

#include <nlohmann/json.hpp>

#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <set>
#include <sstream>

namespace cleave::cli {
namespace {

using Json = nlohmann::ordered_json;

std::vector<std::string> splitAtCommas(const std::string& text) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, ',');) parts.push_back(part);
  return parts;
}

/// Prints the text, and writes the JSON if asked; `--json -` prints the JSON alone.
Result<int> answer(const std::string& text, const std::string& json, const std::string& jsonText) {
  endProgress();
  if (!json.empty()) CLEAVE_TRY_VOID(writeOutput(json, jsonText));
  if (json != "-") CLEAVE_TRY_VOID(writeOutput("-", text));
  return 0;
}

Result<Planned> planWithEngine(PlanSettings asked, solve::Engine engine, const Progress& progress) {
  asked.plan.engine = engine;
  CLEAVE_TRY(auto planned, planModel(asked, false, progress));
  if (!planned.plan) return tl::unexpected(planned.planError);
  return planned;
}

/// One side of a comparison.
struct Side {
  std::shared_ptr<const plan::Plan> plan;
  std::string label;  ///< empty: the plan's own
};

Result<Side> sideOf(const PlanSettings& asked, const std::string& side, const Progress& progress) {
  if (const auto engine = solve::parseEngine(side)) {
    CLEAVE_TRY(const auto planned, withContext(planWithEngine(asked, *engine, progress), side));
    return Side{planned.plan, {}};
  }
  std::error_code ignored;
  if (isForeignPlan(side)) {
    CLEAVE_TRY(auto plan, foreignPlan(asked, side, progress));
    std::string label = fmt::format("{}, {}", side, counted(plan->spec.ranks, "rank"));
    return Side{std::move(plan), std::move(label)};
  }
  if (fs::is_regular_file(side, ignored)) {
    CLEAVE_TRY(auto plan, readUnalteredPlan(side));
    return Side{std::move(plan), {}};
  }
  return fail(ErrorCode::BadUsage, "\"{}\" is neither an engine (reference, learning, optimal) nor a plan file.", side);
}

Json worldSizeJson(const plan::WorldSize& size) {
  return {{"ranks", size.ranks},
          {"verdict", plan::toText(size.verdict)},
          {"split_layers", size.layers.split},
          {"layers", size.layers.layers},
          {"flops_share", size.flopsShare},
          {"weight_share", size.weightShare},
          {"replicated_fs", jsonOf<Json>(size.replicatedFs)},
          {"rank_bytes", size.rankBytes},
          {"step_fs", jsonOf<Json>(size.femtoseconds)},
          {"fits_budget", size.fitsBudget()},
          {"over_budget_bytes", size.overBytes},
          {"proved", size.isProved},
          {"heads", size.heads},
          {"why", plan::reasonText(size)}};
}

/// Wraps text to the width of the table, and indents the lines after the first.
std::string wrapped(const std::string& text, std::size_t indent) {
  constexpr std::size_t kColumns = 100;
  std::istringstream words(text);
  std::string lines, line;
  for (std::string word; words >> word;) {
    if (!line.empty() && line.size() + 1 + word.size() > kColumns) {
      lines += line + "\n";
      line = std::string(indent, ' ') + word;
    } else {
      line += (line.empty() ? "" : " ") + word;
    }
  }
  return lines + line + "\n";
}

/// A table of world sizes. Each reason is printed once below it, and rows refer to it by number. If no plan fits the
/// budget for several world sizes, only the nearest of them has a reason.
class WorldSizeTable {
 public:
  explicit WorldSizeTable(const std::vector<plan::WorldSize>& sizes) : m_sizes(sizes) {
    for (const plan::WorldSize& size : sizes) {
      if (!isWithoutPlan(size)) continue;
      if (!m_nearest || size.overBytes < m_nearest->overBytes) m_nearest = &size;
      ++m_overBudget;
    }
  }

  std::string text() {
    std::string table = line("ranks", "verdict", "layers split", "FLOPs", "weights", "per rank", "per step", "why");
    for (const plan::WorldSize& size : m_sizes) table += row(size);
    for (std::size_t i = 0; i < m_reasons.size(); ++i) {
      const std::string label = fmt::format("[{}] ", i + 1);
      table += wrapped(label + m_reasons[i], label.size());
    }
    if (m_overBudget == 2) table += "--json has the needs of the other world size over the budget.\n";
    if (m_overBudget > 2)
      table += fmt::format("--json has the needs of the other {} world sizes over the budget.\n", m_overBudget - 1);
    return table;
  }

 private:
  static bool isWithoutPlan(const plan::WorldSize& size) {
    return size.verdict == plan::WorldSizeVerdict::OverBudget && !size.hasPlan;
  }

  static std::string line(std::string_view ranks, std::string_view verdict, std::string_view layers,
                          std::string_view flops, std::string_view weights, std::string_view bytes,
                          std::string_view step, std::string_view why) {
    return fmt::format("{:>5}  {:<15} {:>12} {:>7} {:>7} {:>9} {:>10}  {}\n", ranks, verdict, layers, flops, weights,
                       bytes, step, why);
  }

  std::string row(const plan::WorldSize& size) {
    const auto ifPlan = [&](std::string figure) { return size.hasPlan ? std::move(figure) : std::string("-"); };
    const auto ifSplit = [&](std::string figure) {
      return size.ranks > 1 ? ifPlan(std::move(figure)) : std::string("-");
    };
    std::string why = plan::overBudgetText(size);
    const std::string reason = plan::reasonText(size);
    if (const bool isListed = !isWithoutPlan(size) || &size == m_nearest; isListed && !reason.empty()) {
      why += fmt::format("{}[{}]", why.empty() ? "" : " ", numberOf(reason));
    }
    return line(std::to_string(size.ranks), plan::toText(size.verdict),
                ifSplit(fmt::format("{} of {}", size.layers.split, size.layers.layers)),
                ifSplit(plan::percentText(size.flopsShare)), ifSplit(plan::percentText(size.weightShare)),
                ifPlan(bytesText(size.rankBytes)), ifPlan(solve::timeText(size.femtoseconds)), why);
  }

  std::size_t numberOf(const std::string& reason) {
    const auto known = std::find(m_reasons.begin(), m_reasons.end(), reason);
    const auto number = static_cast<std::size_t>(known - m_reasons.begin()) + 1;
    if (known == m_reasons.end()) m_reasons.push_back(reason);
    return number;
  }

  const std::vector<plan::WorldSize>& m_sizes;
  const plan::WorldSize* m_nearest = nullptr;
  std::size_t m_overBudget = 0;
  std::vector<std::string> m_reasons;
};

/// A model and its problem, as the settings describe them.
struct Posed {
  std::shared_ptr<const pipeline::Model> model;
  spec::PlanSpec spec;
  std::shared_ptr<const solve::Problem> problem;
};
Result<Posed> pose(PlanSettings asked, const Progress& progress) {
  CLEAVE_TRY_VOID(asked.settle());
  Posed posed;
  posed.spec = asked.plan;
  CLEAVE_TRY(posed.model, pipeline::openModel(asked.model, asked.input, progress));
  CLEAVE_TRY(posed.problem, pipeline::problemOf(*posed.model, posed.spec));
  return posed;
}

/// Solves with the engine `optimal`, whatever --engine says: only it finds fronts and next best plans.
Result<std::shared_ptr<const pipeline::Solved>> solveOptimally(PlanSettings asked, const Progress& progress) {
  asked.plan.engine = solve::Engine::Optimal;
  CLEAVE_TRY_VOID(asked.settle());
  CLEAVE_TRY(const auto model, pipeline::openModel(asked.model, asked.input, progress));
  CLEAVE_TRY(auto solved, pipeline::solveModel(model, asked.plan, progress, {.records = false}));
  CLEAVE_TRY_VOID(pipeline::needSolution(*solved));
  if (solved->result.optimum) return solved;
  return fail(ErrorCode::Negative,
              "The engine optimal reached its limit on states before it found a plan. {} found one, but cannot list "
              "others.",
              solve::toText(solved->result.engine));
}

/// Collects plans, and describes each by its differences from the first.
class BestPlans {
 public:
  explicit BestPlans(const pipeline::Solved& solved) : m_problem(solved.problem), m_result(solved.result) {}

  Result<void> add(const solve::Optimum::Listed& listed) {
    CLEAVE_TRY(const auto diff, plan::diff(m_problem, *m_result.solution, listed.solution));
    m_text += fmt::format("{:>3}. {} per step, {} per rank\n", m_json.size() + 1,
                          solve::timeText(listed.cost.femtoseconds()), bytesText(listed.cost.bytes()));
    for (const std::string& line : plan::layerLines(diff.layers)) addLine(line);
    Json changes = Json::array(), collectives = Json::object();
    for (const plan::LayerChange& layer : diff.layers) {
      changes.push_back(
          {{"layer", layer.name}, {"strategy", rules::toText(layer.after)}, {"best", rules::toText(layer.before)}});
    }
    Json redistributions = addRedistributions(listed.solution);
    for (const auto& [kind, traffic] : diff.collectives) {
      const auto& [best, own] = traffic;
      collectives[std::string(rules::toText(kind))] = {{"count", own.count}, {"bytes", own.bytes}};
      if (best == own) continue;
      addLine(fmt::format("{}: {} of {} instead of {} of {}", rules::toText(kind), own.count, bytesText(own.bytes),
                          best.count, bytesText(best.bytes)));
    }
    if (listed.alike > 0) addLine(alikeText(listed));
    m_json.push_back({{"step_fs", jsonOf<Json>(listed.cost.femtoseconds())},
                      {"rank_bytes", listed.cost.bytes()},
                      {"changes", std::move(changes)},
                      {"redistributions", std::move(redistributions)},
                      {"collectives", std::move(collectives)},
                      {"alike", listed.alike}});
    return {};
  }

  Result<int> answered(const solve::Optimum::Listing& listing, std::size_t asked, const std::string& json) && {
    const solve::CostSettings& cost = m_problem->cost;
    if (m_result.optimum->fastest().femtoseconds() < m_result.optimum->cost().femtoseconds()) {
      m_text += fmt::format(
          "The first is at most {} slower than the fastest and needs less memory. With --slack 0 the fastest comes "
          "first.\n",
          solve::slackText(cost.slackPercent));
    }
    if (!m_result.optimum->isProved())
      m_text += "The search stopped at its limit: the first plan is not proved to be the best.\n";
    if (!listing.isProved) {
      m_text += "The search stopped at its limit: other plans may exist, also faster ones.\n";
    } else if (listing.plans < asked) {
      m_text += fmt::format(
          "No more plans exist within the budget of {}: the others differ from {} only in the placement of values.\n",
          bytesText(cost.budgetBytes()), listing.plans == 1 ? "this one" : "one of these");
    }
    return answer(
        m_text, json,
        jsonText(Json{{"schema", "cleave.best/1"}, {"proved", listing.isProved}, {"plans", std::move(m_json)}}, 1) +
            "\n");
  }

 private:
  void addLine(const std::string& line) { m_text += fmt::format("       {}\n", line); }

  /// Values whose redistribution differs from the first plan's.
  Json addRedistributions(const solve::Solution& own) {
    Json list = Json::array();
    const solve::Solution& best = *m_result.solution;
    const graph::Graph& graph = *m_problem->graph;
    for (const graph::ValueId value : idRange<graph::ValueId>(graph.values.size())) {
      if (!best.computedAs.contains(value) && !own.computedAs.contains(value)) continue;
      const std::string before = solve::placementText(best.computed(value), best.of(value)),
                        after = solve::placementText(own.computed(value), own.of(value));
      if (before == after) continue;
      const std::string& name = graph.value(value).name;
      addLine(fmt::format("`{}`: {} instead of {}", name, after, before));
      list.push_back({{"value", name}, {"placement", after}, {"best", before}});
    }
    return list;
  }

  std::string alikeText(const solve::Optimum::Listed& listed) const {
    const bool isOne = listed.alike == 1;
    return fmt::format(
        "at least {} like this: {} only in the placement of values{}",
        counted(static_cast<std::int64_t>(listed.alike), "more plan"), isOne ? "it differs" : "they differ",
        listed.differing.isValid() ? fmt::format(", such as `{}`", m_problem->graph->value(listed.differing).name)
                                   : "");
  }

  const std::shared_ptr<const solve::Problem> m_problem;
  const solve::SolveResult& m_result;
  std::string m_text;
  Json m_json = Json::array();
};

}  // namespace

Result<std::vector<int>> parseSizes(const std::string& text) {
  const auto wrong = [&] {
    return fail(ErrorCode::BadUsage,
                "World sizes are \"{}\": write numbers and ranges from 1 to {}, such as 1-8,16,32.", text,
                spec::kMaxRanks);
  };
  const auto number = [](std::string_view part) -> std::optional<int> {
    int value = 0;
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), value);
    if (error != std::errc() || end != part.data() + part.size() || value < 1 || value > spec::kMaxRanks)
      return std::nullopt;
    return value;
  };
  std::set<int> sizes;
  for (const std::string& part : splitAtCommas(text)) {
    const auto dash = part.find('-');
    const auto first = number(std::string_view(part).substr(0, dash));
    const auto last = dash == std::string::npos ? first : number(std::string_view(part).substr(dash + 1));
    if (!first || !last || *first > *last) return wrong();
    for (int size = *first; size <= *last; ++size) sizes.insert(size);
  }
  if (sizes.empty()) return wrong();
  return std::vector<int>(sizes.begin(), sizes.end());
}

Result<int> comparePlans(const PlanSettings& asked, const std::vector<std::string>& names, const std::string& json,
                         const Progress& progress) {
  if (names.size() < 2)
    return fail(ErrorCode::BadUsage, "\"{}\" is one side: compare two or more, such as reference,optimal.",
                names.empty() ? "" : names.front());
  for (const std::string& name : names) CLEAVE_TRY_VOID(refuseOverwriting({{"--json", json}}, {{"SIDES", name}}));
  CLEAVE_TRY(const Side base, sideOf(asked, names.front(), progress));
  std::string text;
  std::vector<std::string> diffs;
  for (std::size_t i = 1; i < names.size(); ++i) {
    CLEAVE_TRY(const Side other, sideOf(asked, names[i], progress));
    CLEAVE_TRY(plan::PlanDiff diff, plan::diff(*base.plan, *other.plan));
    if (!base.label.empty()) diff.labelBefore = base.label;
    if (!other.label.empty()) diff.labelAfter = other.label;
    text += (i > 1 ? "\n" : "") + plan::toText(diff);
    diffs.push_back(plan::toJson(diff));
  }
  if (diffs.size() == 1) return answer(text, json, diffs.front() + "\n");
  return answer(text, json, fmt::format("{{\"schema\":\"cleave.diffs/1\",\"diffs\":[{}]}}\n", fmt::join(diffs, ",")));
}

Result<int> showWorldSizes(const PlanSettings& asked, const std::string& sizes, const std::string& json,
                           const Progress& progress) {
  CLEAVE_TRY(const auto ranks, parseSizes(sizes.empty() ? kListedSizes : sizes));
  CLEAVE_TRY(const Posed posed, pose(asked, progress));
  const auto results = plan::worldSizes(*posed.problem, posed.spec.engine, ranks, progress);
  if (progress.cancelled()) return progress.cancelledError("trying world sizes");
  Json list = Json::array();
  for (const plan::WorldSize& size : results) list.push_back(worldSizeJson(size));
  const Json document{{"schema", "cleave.world_sizes/1"},
                      {"engine", solve::toText(asked.plan.engine)},
                      {"world_sizes", std::move(list)}};
  return answer(WorldSizeTable(results).text(), json, jsonText(document, 1) + "\n");
}

Result<int> showPreflight(const PlanSettings& asked, const std::string& json, const Progress& progress) {
  CLEAVE_TRY(const Posed posed, pose(asked, progress));
  const plan::Preflight report = plan::preflight(*posed.problem);
  std::string text = fmt::format("Known before a search, for {}:\n", counted(posed.spec.ranks, "rank"));
  Json unknown = Json::array(), indivisible = Json::array(), replicated = Json::array();
  for (const std::string& clause : plan::passedChecks(report, posed.spec.ranks)) text += fmt::format("  {}\n", clause);
  if (!report.unknownOperators.empty()) text += "  operators without a rule\n";
  for (const auto& op : report.unknownOperators) {
    text += fmt::format("    {} × {}: {}\n", op.count, op.op, op.text);
    unknown.push_back({{"op", op.op}, {"count", op.count}, {"matters", op.matters}, {"text", op.text}});
  }
  Json heads = Json::array();
  if (!report.heads.empty()) text += "  heads that do not divide\n";
  for (const auto& attention : report.heads) {
    const std::string where = attention.pattern.empty() ? "attention outside of modules" : attention.pattern;
    text += fmt::format("    {} × {}: {}\n", attention.count, where, attention.text);
    heads.push_back({{"modules", attention.pattern},
                     {"count", attention.count},
                     {"heads", attention.heads.query},
                     {"kv_heads", attention.heads.keyValue},
                     {"text", attention.text}});
  }
  if (!report.indivisible.empty()) text += "  layers that do not divide\n";
  for (const auto& layer : report.indivisible) {
    text += fmt::format("    {} × {} ({}): {}\n", layer.count, layer.pattern, bytesText(layer.bytes), layer.reason);
    indivisible.push_back(
        {{"layers", layer.pattern}, {"count", layer.count}, {"bytes", layer.bytes}, {"reason", layer.reason}});
  }
  text += fmt::format("  replicated in every plan: {}\n", bytesText(report.replicatedBytes));
  for (const auto& weight : report.replicated) {
    text += fmt::format("    {} × {} ({}): {}\n", weight.count, weight.pattern, bytesText(weight.bytes), weight.why);
    replicated.push_back(
        {{"parameters", weight.pattern}, {"count", weight.count}, {"bytes", weight.bytes}, {"why", weight.why}});
  }
  const Json document{{"schema", "cleave.preflight/1"},
                      {"ranks", posed.spec.ranks},
                      {"operators_without_rule", unknown},
                      {"heads", heads},
                      {"indivisible", indivisible},
                      {"replicated", replicated},
                      {"replicated_bytes", report.replicatedBytes}};
  return answer(text, json, jsonText(document, 1) + "\n");
}

Result<int> showFront(const PlanSettings& asked, const std::string& json, const Progress& progress) {
  CLEAVE_TRY(const auto solved, solveOptimally(asked, progress));
  CLEAVE_TRY(const auto front, solved->result.optimum->front(progress));
  std::string text = fmt::format("{:>12}  {:>12}  with --slack 0\n", "per step", "per rank");
  Json points = Json::array();
  for (const solve::ParetoPoint& point : front.points) {
    text += fmt::format("{:>12}  {:>12}  --memory-budget {}\n", solve::timeText(point.femtoseconds),
                        bytesText(point.bytes), point.bytes);
    points.push_back({{"step_fs", jsonOf<Json>(point.femtoseconds)},
                      {"rank_bytes", point.bytes},
                      {"transient_peak", point.transientPeak},
                      {"memory_budget", point.bytes}});
  }
  text += toText(front) + "\n";
  const Json document{{"schema", "cleave.front/1"},
                      {"exact", front.isExact},
                      {"end_known", front.isEndKnown},
                      {"worst_gap", front.worstGap},
                      {"points", std::move(points)}};
  return answer(text, json, jsonText(document, 1) + "\n");
}

Result<int> showBest(const PlanSettings& asked, std::size_t count, const std::string& json, const Progress& progress) {
  CLEAVE_TRY(const auto solved, solveOptimally(asked, progress));
  BestPlans plans(*solved);
  CLEAVE_TRY(const auto listing, solved->result.optimum->best(
                                     count, [&](const auto& listed) { return plans.add(listed); }, progress));
  return std::move(plans).answered(listing, count, json);
}

}  // namespace cleave::cli
