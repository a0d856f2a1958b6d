#include "options/rank_options.h"

#include "base/overwriting.h"
#include "settings/option_types.h"
#include "spec/rank/rank_settings.h"

namespace cleave::options {
namespace {

/// BadUsage for flags that exclude each other.
Result<void> checkTogether(const spec::RankSpec& spec) {
  if (spec.generation.isAsked() != !spec.decodeFile.empty())
    return fail(ErrorCode::BadUsage, "--generate and --decode must be used together.");
  if (spec.generation.isAsked() &&
      (spec.training.isAsked() || spec.recordsTimes || spec.replicas > 1 || !spec.then.empty())) {
    return fail(ErrorCode::BadUsage,
                "--generate cannot be combined with --train-steps, --times, --replicas or --then.");
  }
  if (!spec.then.empty() && (spec.inputFile || spec.watchFile))
    return fail(ErrorCode::BadUsage, "--then cannot be combined with --input or --watch.");
  if (spec.training.isAsked() && spec.passes > 1)
    return fail(ErrorCode::BadUsage, "--train-steps cannot be combined with --passes.");
  return {};
}

}  // namespace

RankOptions::RankOptions() : m_flags(spec::rankSettings()) {}

void RankOptions::declare(CLI::App& app) {
  app.description("One rank of a tensor-parallel run of a plan.");
  app.name("cleave-rank");
  app.add_option("plan", planFile, "Plan file from `cleave-cli plan --json`")->type_name(option_types::kPlan);
  app.add_flag("--calibrate", calibrates,
               "Do not run a plan: measure the compute and communication speed of this rank");
  app.add_flag(
      "--probe", probes,
      "Do not run a plan: run a kernel on each GPU and print CUDA's properties; exit code 4 if no GPU is usable");
  m_flags.addTo(app);
  app.add_option("--events-fd", eventsFd, "Inherited pipe for events; default: readable lines on standard error");
  app.add_option(
         "--events-to", eventsTo,
         "HOST:PORT of cleave-cli run --listen, which receives the events; CLEAVE_RUN_TOKEN is that run's token")
      ->envname("CLEAVE_EVENTS_TO");
  app.add_option("--control-fd", controlFd, "Inherited pipe; this rank exits at its end of file");
  app.add_option("--listen-fd", listenFd, "Inherited listening socket on MASTER_PORT (rank 0)");
}

Result<torch_rank::RankRequest> RankOptions::request() const {
  torch_rank::RankRequest request;
  if (int{calibrates} + int{probes} + int{!planFile.empty()} != 1)
    return fail(ErrorCode::BadUsage, "no plan given. Pass a plan file, --calibrate or --probe.");
  spec::RankSpec& spec = request;
  CLEAVE_TRY_VOID(m_flags.readInto(spec));
  CLEAVE_TRY_VOID(checkTogether(spec));
  CLEAVE_TRY_VOID(refuseOverwriting({{"--output", spec.outputFile.value_or("")}},
                                    {{"the plan", planFile}, {"--input", spec.inputFile.value_or("")}}));
  request.planFile = planFile;
  request.listenFd = listenFd;
  return request;
}

}  // namespace cleave::options
