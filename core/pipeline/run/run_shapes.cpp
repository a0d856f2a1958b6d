#include "pipeline/run/run_shapes.h"

#include "base/output_file.h"
#include "base/temporary_folder.h"
#include "families/model_config.h"
#include "pipeline/memory/predicted_memory.h"
#include "pipeline/run/check_outputs.h"
#include "pipeline/run/folder_check.h"
#include "pipeline/run/follower.h"
#include "pipeline/run/prepare_run.h"
#include "pipeline/run/rank_launch.h"
#include "pipeline/run/run.h"
#include "pipeline/run/unsplit_place.h"
#include "pipeline/solve/plan_again.h"
#include "pipeline/solve/unsplit_plan.h"
#include "plan/file/plan_file.h"

#include <algorithm>

namespace cleave::pipeline {
namespace {

std::string shapeText(std::int64_t batch, std::int64_t sequence) {
  return fmt::format("batch {}, sequence {}", batch, sequence);
}

/// The first constant that depends on the shape, such as rotary frequencies that depend on the length.
std::string otherConstantAt(const graph::Graph& planned, const graph::Graph& asked) {
  for (const auto& [id, data] : planned.constants) {
    const graph::Value& value = planned.value(planned.node(graph::NodeId(id)).results.front());
    const graph::ValueId same = asked.findValue(value.name);
    if (!same.isValid() || asked.value(same).type != value.type) continue;
    const auto other = asked.constants.find(asked.value(same).producer.raw());
    if (other != asked.constants.end() && other->second != data) return value.name;
  }
  return {};
}

/// Padding on the right does not change the results if no token attends to later tokens.
Result<void> checkPadding(const plan::Plan& planned, const Model& asked) {
  const auto refuse = [&](const std::string& why) {
    return fail(ErrorCode::BadUsage, "{} cannot be padded to {}: {}. Run without --pad-to-planned.",
                shapeText(asked.info.batch, asked.info.sequence),
                shapeText(planned.model.batch, planned.model.sequence), why);
  };
  if (asked.exported) return refuse("Cleave does not know how an exported program treats padding");
  CLEAVE_TRY(const families::ModelConfig config, families::readModelConfig(asked.folder));
  if (!config.family.isCausal || !std::holds_alternative<families::CausalHead>(config.head))
    return refuse(fmt::format("each token of {} attends to all tokens, including padding", asked.info.architecture));
  if (planned.model.input.dropout) return refuse("dropout drops other elements in a padded batch");
  if (planned.model.input.logitsToKeep != 0) return refuse("--logits-to-keep would keep the logits of the padding");
  if (const std::string other = otherConstantAt(*planned.graph, *asked.aten); !other.empty())
    return refuse(fmt::format("the constant {} has other values at that shape", other));
  return {};
}

class ShapesRun {
 public:
  ShapesRun(const ShapesRequest& request, const launch::Observer& observer, const Progress& progress)
      : m_request(request), m_observer(observer), m_progress(progress) {}

  Result<std::vector<RunReport>> run() {
    CLEAVE_TRY_VOID(begin());
    CLEAVE_TRY(const auto folder, TemporaryFolder::make("cleave-run"));
    CLEAVE_TRY(const auto outcome, launchAll(folder));
    if (!outcome.succeeded) {
      m_reports.resize(*std::min_element(m_at.begin(), m_at.end()) + 1);
      m_reports.back().outcome = outcome;
      return std::move(m_reports);
    }
    for (std::size_t shape = 0; shape < m_reports.size(); ++shape) finish(shape);
    if (m_request.run.comparesUnsplit()) CLEAVE_TRY_VOID(compareAll(folder));
    for (RunReport& report : m_reports) report.verdict = verdictOf(report);
    return std::move(m_reports);
  }

 private:
  /// The plan that needs the most memory.
  const plan::Plan& largest() const {
    const auto bytes = [this](const ShapeRun& shape) { return predictedMemory(*shape.plan, m_request.run.workload()); };
    return *std::ranges::max_element(m_request.shapes, {}, bytes)->plan;
  }

  Result<void> begin() {
    const std::size_t shapes = m_request.shapes.size();
    RunRequest ofLargest = m_request.run;
    ofLargest.plan = std::shared_ptr<const plan::Plan>(m_request.shapes.front().plan, &largest());
    CLEAVE_TRY(const launch::BackendChoice choice, backendFor(ofLargest, m_progress));
    m_requests.assign(shapes, m_request.run);
    m_followers.reserve(shapes);
    m_at.assign(static_cast<std::size_t>(m_request.run.mesh().ranks()), 0);
    for (std::size_t shape = 0; shape < shapes; ++shape) {
      RunRequest& request = m_requests[shape];
      request.plan = m_request.shapes[shape].plan;
      CLEAVE_TRY(RunReport report, beginReport(request, choice));
      CLEAVE_TRY_VOID(checkRoom(request, report.spec.backend, report));
      // Later plans must keep the splits of the first, so their warnings would only describe that.
      if (shape > 0) report.warnings.clear();
      report.outcome.results.resize(m_at.size());
      report.storages.resize(m_at.size());
      m_reports.push_back(std::move(report));
      m_followers.emplace_back(request, /*loads=*/shape == 0);
    }
    return {};
  }

  /// Uses the file numbers of cleave-rank.
  static RankFiles filesOf(const TemporaryFolder& folder, const std::string& name, std::size_t shape) {
    const std::string number = shape == 0 ? "" : fmt::format("-{}", shape + 1);
    return {folder / (name + "-plan.json"), folder / (name + ".safetensors" + number),
            folder / (name + ".rank" + number), std::nullopt};
  }

  /// Writes the plans after the first one, each once. `rowsOf`: what of a padded shape is not padding.
  template <class PlanOf, class RowsOf>
  Result<std::vector<spec::RankPlan>> writeOthers(const TemporaryFolder& folder, const std::string& name,
                                                  PlanOf&& planOf, RowsOf&& rowsOf) const {
    std::vector<spec::RankPlan> then;
    std::map<const plan::Plan*, std::string> files{{planOf(0), (folder / (name + "-plan.json")).string()}};
    for (std::size_t shape = 1; shape < m_reports.size(); ++shape) {
      const plan::Plan* plan = planOf(shape);
      const auto [file, isNew] =
          files.emplace(plan, (folder / fmt::format("{}-plan-{}.json", name, shape + 1)).string());
      if (isNew) CLEAVE_TRY_VOID(writeFile(file->second, plan::toJson(*plan)));
      then.push_back({file->second, rowsOf(shape)});
    }
    return then;
  }

  Result<launch::RunOutcome> launchAll(const TemporaryFolder& folder) {
    const auto planOf = [this](std::size_t shape) { return m_request.shapes[shape].plan.get(); };
    const auto rowsOf = [this](std::size_t shape) {
      const ShapeRun& run = m_request.shapes[shape];
      return run.isPadded ? spec::Rows{run.batch / m_request.run.replicas, run.sequence} : spec::Rows();
    };
    CLEAVE_TRY(const auto then, writeOthers(folder, "outputs", planOf, rowsOf));
    m_progress.report("run");
    const auto follow = [this](const launch::RankEvent& event) { observe(event); };
    return launchRanks(*planOf(0), m_reports.front().spec.backend, filesOf(folder, "outputs", 0), m_request.run, follow,
                       m_progress, then);
  }

  void observe(const launch::RankEvent& event) {
    std::size_t& shape = m_at[static_cast<std::size_t>(event.rank)];
    const auto* done = event.message ? std::get_if<protocol::ProgramDone>(&*event.message) : nullptr;
    if (done && shape < m_reports.size()) {
      RunReport& report = m_reports[shape];
      report.outcome.results[static_cast<std::size_t>(event.rank)] = done->result;
      report.storages[static_cast<std::size_t>(event.rank)] = done->storages;
      if (shape + 1 < m_reports.size()) ++shape;
    } else {
      m_followers[shape].observe(event);
    }
    m_observer(event);
  }

  /// Requires that the run succeeded. Then all ranks have succeeded with each shape.
  void finish(std::size_t shape) {
    RunReport& report = m_reports[shape];
    report.outcome.succeeded = true;
    report.steps = m_followers[shape].steps();
    m_followers[shape].addTo(report);
    const ShapeRun& run = m_request.shapes[shape];
    if (run.isPadded) {
      report.notes.push_back(
          fmt::format("{} ran padded to {}, and outputs at padding were removed.", shapeText(run.batch, run.sequence),
                      shapeText(run.plan->model.batch * m_request.run.replicas, run.plan->model.sequence)));
    }
    if (shape > 0) reportWeights(report);
  }

  void reportWeights(RunReport& report) const {
    const std::vector<std::string>& first = m_reports.front().storages;
    for (std::size_t rank = 0; rank < first.size(); ++rank) {
      if (report.storages[rank] == first[rank] && !first[rank].empty()) continue;
      report.violations.push_back(
          fmt::format("Rank {} has the parameters of this shape at other addresses than those of the first.", rank));
    }
    if (report.violations.empty())
      report.notes.push_back(
          "No rank loaded weights for this shape: its parameters are at the same addresses as those of the first.");
  }

  using PlanOfModel = std::map<const Model*, std::shared_ptr<const plan::Plan>>;
  /// One plan for each model: shapes with the same model share one.
  template <class Make>
  Result<PlanOfModel> plansOnOneRank(Make make) const {
    PlanOfModel plans;
    for (const ShapeRun& run : m_request.shapes) {
      std::shared_ptr<const plan::Plan>& plan = plans[run.model.get()];
      if (plan) continue;
      CLEAVE_TRY(plan, make(run.model, *run.plan, m_progress));
    }
    return plans;
  }

  Result<void> compareAll(const TemporaryFolder& folder) {
    m_progress.report("unsplit run");
    CLEAVE_TRY(const auto plans, plansOnOneRank(unsplitPlan));
    const auto planOf = [&](std::size_t shape) { return plans.at(m_request.shapes[shape].model.get()).get(); };
    CLEAVE_TRY(const auto then, writeOthers(folder, "unsplit", planOf, [](std::size_t) { return spec::Rows(); }));
    const UnsplitPlace place = unsplitPlace(largest(), m_request.run.workload(), m_reports.front().spec.backend);
    CLEAVE_TRY_VOID(
        launchUnsplit(*planOf(0), place, filesOf(folder, "unsplit", 0), m_request.run, m_files, m_progress, then));
    int measured = 0;
    const auto measure = [&](std::size_t shape, int again) -> Result<std::optional<RulerFiles>> {
      const std::string name = fmt::format("reordered-{}", again);
      if (again >= measured) {
        measured = again + 1;
        CLEAVE_TRY_VOID(runReordered(folder, place, name, again));
      }
      return RulerFiles{filesOf(folder, "unsplit", shape).output, filesOf(folder, name, shape).output};
    };
    for (std::size_t shape = 0; shape < m_reports.size(); ++shape) {
      RunReport& report = m_reports[shape];
      report.comparedWith = place.text;
      if (!place.note.empty()) report.notes.push_back(place.note);
      const auto steps = m_request.run.training.steps * static_cast<std::int64_t>(shape + 1);
      CLEAVE_TRY_VOID(compareWith(
          filesOf(folder, "unsplit", shape).output, report, m_requests[shape], filesOf(folder, "outputs", shape), steps,
          [&](int again) { return measure(shape, again); }, m_progress));
    }
    return {};
  }

  /// Runs all shapes with their sums in another order, for the rulers.
  Result<void> runReordered(const TemporaryFolder& folder, const UnsplitPlace& place, const std::string& name,
                            int again) {
    CLEAVE_TRY(const auto plans, plansOnOneRank([again](const auto& model, const auto& plan, const Progress& progress) {
                 return reorderedPlan(model, plan, progress, again);
               }));
    const auto planOf = [&](std::size_t shape) { return plans.at(m_request.shapes[shape].model.get()).get(); };
    CLEAVE_TRY(const auto then, writeOthers(folder, name, planOf, [](std::size_t) { return spec::Rows(); }));
    m_progress.report("ruler");
    return launchUnsplit(*planOf(0), place, filesOf(folder, name, 0), m_request.run, m_files, m_progress, then);
  }

  const ShapesRequest& m_request;
  const ModelFiles m_files{m_request.run};
  const launch::Observer& m_observer;
  const Progress& m_progress;
  std::vector<RunRequest> m_requests;  ///< by shape, as the next two
  std::vector<RunReport> m_reports;
  std::vector<Follower> m_followers;
  std::vector<std::size_t> m_at;  ///< by rank: index of the shape that it runs
};

}  // namespace

Result<ShapeRun> ShapePlanner::first(std::shared_ptr<const plan::Plan> plan, std::int64_t batch,
                                     std::int64_t sequence) {
  ShapeRun run{batch, sequence, std::move(plan)};
  CLEAVE_TRY(run.model, m_how.open(batch, sequence));
  m_first = run.plan;
  m_planned[{batch, sequence}] = run;
  return run;
}

const ShapeRun* ShapePlanner::roomFor(const Shape& shape) const {
  const ShapeRun* smallest = nullptr;
  for (const auto& [planned, run] : m_planned) {
    const bool fits = planned.first >= shape.first && planned.second >= shape.second;
    if (fits && (!smallest || planned.first * planned.second < smallest->batch * smallest->sequence)) smallest = &run;
  }
  return smallest;
}

Result<ShapeRun> ShapePlanner::padded(const Shape& shape, const ShapeRun& room) {
  ShapeRun run{shape.first, shape.second, room.plan};
  CLEAVE_TRY(run.model, m_how.open(shape.first, shape.second));
  CLEAVE_TRY_VOID(checkPadding(*room.plan, *run.model));
  run.isPadded = true;
  return run;
}

Result<ShapeRun> ShapePlanner::next(std::int64_t batch, std::int64_t sequence, const Progress& progress) {
  const Shape shape{batch, sequence};
  if (const auto known = m_planned.find(shape); known != m_planned.end()) return known->second;
  if (const ShapeRun* room = m_how.padsToPlanned ? roomFor(shape) : nullptr) return padded(shape, *room);
  ShapeRun run{batch, sequence};
  CLEAVE_TRY(run.model, m_how.open(batch, sequence));
  std::shared_ptr<const Model> ofReplica = run.model;
  if (m_how.replicas > 1) {
    CLEAVE_TRY(ofReplica, m_how.open(batch / m_how.replicas, sequence));
  }
  CLEAVE_TRY(run.plan, planOnSameWeights(*m_first, ofReplica, progress));
  m_planned[shape] = run;
  return run;
}

Result<std::vector<RunReport>> runShapes(const ShapesRequest& request, const launch::Observer& observer,
                                         const Progress& progress) {
  if (request.shapes.size() > 1) return ShapesRun(request, observer, progress).run();
  CLEAVE_TRY(RunReport report, runPlan(request.run, observer, progress));
  return std::vector<RunReport>{std::move(report)};
}

}  // namespace cleave::pipeline
