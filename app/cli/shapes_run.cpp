#include "cli/shapes_run.h"

#include "cli/console.h"
#include "cli/pass_outcome.h"
#include "cli/run_checks.h"
#include "cli/run_documents.h"
#include "cli/shapes.h"
#include "pipeline/run/run_shapes.h"
#include "pipeline/source/open.h"
#include "pipeline/source/source_files.h"

#include <set>

namespace cleave::cli {
namespace {

/// Plans the shapes in turn, until one has no plan.
class PlannedShapes {
 public:
  PlannedShapes(RunFlags& flags, const std::vector<spec::RunShape>& wanted, const Progress& progress)
      : m_flags(flags), m_progress(progress) {
    for (const spec::RunShape& shape : wanted) {
      const auto made = m_planner ? planNext(shape) : planFirst(shape);
      if (made) continue;
      m_failure = made.error();
      break;
    }
  }
  const pipeline::ShapesRequest& request() const { return m_request; }
  const std::optional<Error>& failure() const { return m_failure; }  ///< of the shape after those of the request

 private:
  Result<void> planFirst(const spec::RunShape& shape) {
    m_flags.source.settings.input.batch = shape.batch;
    m_flags.source.settings.input.sequence = shape.sequence;
    CLEAVE_TRY(const RunSource::Made made, m_flags.source.make(m_progress));
    const auto open = [this, model = made.model](
                          std::int64_t batch, std::int64_t sequence) -> Result<std::shared_ptr<const pipeline::Model>> {
      spec::InputSpec own = m_flags.source.settings.input;
      own.batch = batch;
      own.sequence = sequence;
      own.dropout = m_flags.source.settings.plan.dropsOut();
      return pipeline::captureAgain(*model, own);
    };
    m_planner.emplace(pipeline::ShapePlanning{open, m_flags.source.mesh.dp, m_flags.spec.padsToPlanned});
    m_request.run = m_flags.request(made.plan);
    CLEAVE_TRY_VOID(m_flags.checkOutputs(pipeline::sourceFilesOf(made.plan->model)));
    CLEAVE_TRY_VOID(checkModelFiles(m_request.run));
    CLEAVE_TRY_VOID(checkMemoryFits(m_request.run, m_progress));
    warn(made.warnings);
    CLEAVE_TRY(m_request.shapes.emplace_back(), m_planner->first(made.plan, shape.batch, shape.sequence));
    return {};
  }

  Result<void> planNext(const spec::RunShape& shape) {
    CLEAVE_TRY_VOID(m_flags.source.rowsOfReplica(shape.batch));
    CLEAVE_TRY(auto next, m_planner->next(shape.batch, shape.sequence, m_progress));
    pipeline::RunRequest own = m_request.run;
    own.plan = next.plan;
    CLEAVE_TRY_VOID(checkMemoryFits(own, m_progress));
    m_request.shapes.push_back(std::move(next));
    return {};
  }

  RunFlags& m_flags;
  const Progress& m_progress;
  std::optional<pipeline::ShapePlanner> m_planner;
  pipeline::ShapesRequest m_request;
  std::optional<Error> m_failure;
};

}  // namespace

Result<int> runShapes(RunFlags& flags, const Progress& progress) {
  CLEAVE_TRY(RunDocuments documents, RunDocuments::open(flags.json, "", progress.stopToken()));
  const std::vector<spec::RunShape>& wanted = flags.spec.shapes;
  const PlannedShapes planned(flags, wanted, progress);
  std::vector<pipeline::RunReport> reports;
  std::optional<Error> failure = planned.failure();
  if (!failure) {
    auto ran = pipeline::runShapes(planned.request(), rankObserver(progress), progress);
    endProgress();
    if (ran)
      reports = *std::move(ran);
    else
      failure = ran.error();
  }
  ShapesDocument document;
  int worst = 0;
  Result<void> printed;
  for (std::size_t i = 0; i < reports.size(); ++i) {
    const PassOutcome outcome = outcomeOf(reports[i], *planned.request().shapes[i].plan);
    const bool isChecked = outcome.verdict != pipeline::RunVerdict::NotChecked;
    worst = std::max(worst, outcome.exitCode());
    document.add(wanted[i], outcome.report, isChecked ? std::optional(outcome.exitCode() == 0) : std::nullopt);
    if (printed) printed = documents.print(fmt::format("{}\n{}", wordsOf(wanted[i]), outcome.summary));
    if (outcome.failure) failure = Error{outcome.failure->code, wordsOf(wanted[i]) + ": " + outcome.failure->message};
  }
  if (failure && (reports.empty() || !reports.back().outcome.firstFailure)) {
    const spec::RunShape& shape = wanted[planned.failure() ? planned.request().shapes.size() : reports.size()];
    document.add(shape, *failure);
    if (!failure->message.starts_with(wordsOf(shape))) failure->message = wordsOf(shape) + ": " + failure->message;
  }
  CLEAVE_TRY_VOID(documents.writeReport(document.text()));
  if (failure) return tl::unexpected(*std::move(failure));
  CLEAVE_TRY_VOID(printed);
  return worst;
}

}  // namespace cleave::cli
