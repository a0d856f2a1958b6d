#include "options/rank_options.h"

#include "pipeline/session/option_types.h"
#include "program/mesh.h"

namespace cleave::options {

void declareRank(CLI::App& app, RankOptions& options) {
  app.description("One rank of a tensor-parallel run of a plan.");
  app.name("cleave-rank");
  app.add_option("plan", options.request.planFile, "Plan file from `cleave-cli plan --json`")
      ->type_name(option_types::kPlan);
  app.add_option("--then", options.then,
                 "Plan file of the same model to run after the first, on the loaded weights (repeatable). "
                 "BATCHxSEQUENCE:FILE: compare only this part of its outputs; the rest is padding")
      ->type_name(option_types::kPlan);
  app.add_option("--replicas", options.request.replicas,
                 "Number of data-parallel replicas; each computes different rows of the batch")
      ->check(CLI::Range(1, program::kMostReplicas))
      ->capture_default_str();
  app.add_flag("--calibrate", options.calibrates,
               "Do not run a plan: measure the compute and communication speed of this rank");
  app.add_flag(
      "--probe", options.probes,
      "Do not run a plan: run a kernel on each GPU and print CUDA's properties; exit code 4 if no GPU is usable");
  app.add_option("--backend", options.request.backend, "gloo (CPUs) or nccl (GPUs)")
      ->check(CLI::IsMember({"gloo", "nccl"}))
      ->capture_default_str();
  app.add_option("--input", options.input, "Safetensors file with input_ids, labels, ...; default: random ids")
      ->type_name(option_types::kFile);
  app.add_option("--output", options.output, "Safetensors file for the outputs of rank 0")
      ->type_name(option_types::kFile);
  app.add_option("--deviation", options.deviation,
                 "Safetensors file FILE.RANK for another rank's outputs if they differ from those of rank 0")
      ->type_name(option_types::kFile);
  app.add_option("--watch", options.watch, "File with the names of values of the forward pass to record")
      ->type_name(option_types::kFile);
  app.add_option("--watched", options.watched, "Safetensors file FILE.RANK for the recorded values")
      ->type_name(option_types::kFile);
  app.add_option("--connect-timeout", options.connectTimeout, "Seconds to wait for the other ranks at the start")
      ->check(CLI::Range(1, 86'400))
      ->capture_default_str();
  app.add_option("--collective-timeout", options.collectiveTimeout,
                 "Fail if a collective takes longer than this many seconds")
      ->check(CLI::Range(1, 86'400))
      ->capture_default_str();
  app.add_flag("--skip-weights", options.request.skipWeights,
               "Fill all parameters from the plan's seed instead of loading them");
  app.add_flag("--init-missing", options.request.initMissing,
               "Fill parameters that are missing in the checkpoint from the plan's seed");
  auto* passes =
      app.add_option("--passes", options.request.passes, "Run the forward pass N times and report the median time")
          ->check(CLI::Range(1, 1'000'000))
          ->capture_default_str();
  app.add_flag("--quiet", options.request.isQuiet,
               "Do not sample memory or report collectives and progress during the run");
  app.add_flag("--times", options.request.recordsTimes,
               "Record a timeline of this rank in the last training step, or in a second, warm forward pass");
  program::Training& training = options.request.training;
  app.add_option("--train-steps", training.steps, "Run N training steps instead of one forward pass")->excludes(passes);
  app.add_option("--optimizer", options.optimizer, "sgd, momentum or adamw")
      ->capture_default_str()
      ->type_name(option_types::oneOf({"sgd", "momentum", "adamw"}));
  app.add_option("--lr", training.learningRate, "Learning rate")->capture_default_str();
  app.add_option("--weight-decay", training.weightDecay, "Weight decay")->capture_default_str();
  app.add_option("--clip-norm", options.clipNorm, "Scale gradients down to this norm");
  app.add_option("--accumulate", training.accumulate, "Micro-batches per step")->capture_default_str();
  program::Generation& generation = options.request.generation;
  app.add_option("--generate", generation.tokens, "Generate N tokens after the prompt in --input");
  app.add_option("--decode", options.request.decodeFile, "With --generate: plan file of a decode step")
      ->check(CLI::ExistingFile);
  app.add_option("--end-token", generation.endTokens, "With --generate: stop a row at this token (repeatable)");
  app.add_option("--padding-token", generation.paddingToken, "With --generate: token that pads stopped rows")
      ->capture_default_str();
  app.add_option("--events-fd", options.eventsFd,
                 "Inherited pipe for events; default: readable lines on standard error");
  app.add_option(
         "--events-to", options.eventsTo,
         "HOST:PORT of cleave-cli run --listen, which receives the events; CLEAVE_RUN_TOKEN is that run's token")
      ->envname("CLEAVE_EVENTS_TO");
  app.add_option("--control-fd", options.controlFd, "Inherited pipe; this rank exits at its end of file");
  app.add_option("--listen-fd", options.request.listenFd, "Inherited listening socket on MASTER_PORT (rank 0)");
}

}  // namespace cleave::options
