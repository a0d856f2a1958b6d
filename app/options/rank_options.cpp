#include "options/rank_options.h"

#include "base/option_types.h"
#include "program/mesh.h"

namespace cleave::options {

void declareRank(CLI::App& app, RankOptions& options) {
  app.description("One rank of a tensor-parallel run of a plan.");
  app.name("cleave-rank");
  app.add_option("plan", options.request.planFile, "Plan file, as `cleave-cli plan --json` writes it")
      ->type_name(option_types::kPlan);
  app.add_option("--then", options.then,
                 "Plan file of the same model that runs behind the first, on the weights that it has loaded; "
                 "BATCHxSEQUENCE:FILE where no more than that counts, and the rest is padding; may be repeated")
      ->type_name(option_types::kPlan);
  app.add_option("--replicas", options.request.replicas,
                 "How many times over the plan's ranks run, each time on other rows of the batch")
      ->check(CLI::Range(1, program::kMostReplicas))
      ->capture_default_str();
  app.add_flag("--calibrate", options.calibrates, "Run no plan: measure how fast this rank computes and communicates");
  app.add_flag("--probe", options.probes,
               "Run no plan: run a kernel on each GPU and print what CUDA offers; exit code 4 where no GPU is usable");
  app.add_option("--backend", options.request.backend, "gloo (CPUs) or nccl (GPUs)")
      ->check(CLI::IsMember({"gloo", "nccl"}))
      ->capture_default_str();
  app.add_option("--input", options.input, "Safetensors file with input_ids, labels, ...; random ids without it")
      ->type_name(option_types::kFile);
  app.add_option("--output", options.output, "Safetensors file that rank 0 writes the outputs to")
      ->type_name(option_types::kFile);
  app.add_option("--deviation", options.deviation,
                 "Safetensors file that another rank writes its outputs to when they are not rank 0's, as FILE.RANK")
      ->type_name(option_types::kFile);
  app.add_option("--watch", options.watch, "File that names values of the forward pass to look at")
      ->type_name(option_types::kFile);
  app.add_option("--watched", options.watched, "Safetensors file for what is seen of them, as FILE.RANK")
      ->type_name(option_types::kFile);
  app.add_option("--connect-timeout", options.connectTimeout, "Seconds to wait for the other ranks at the start")
      ->check(CLI::Range(1, 86'400))
      ->capture_default_str();
  app.add_option("--collective-timeout", options.collectiveTimeout,
                 "Fail when a collective has not completed after this many seconds")
      ->check(CLI::Range(1, 86'400))
      ->capture_default_str();
  app.add_flag("--skip-weights", options.request.skipWeights,
               "Fill all parameters from the plan's seed instead of reading them");
  app.add_flag("--init-missing", options.request.initMissing,
               "Fill parameters that the checkpoint lacks from the plan's seed");
  auto* passes = app.add_option("--passes", options.request.passes,
                                "Run the forward pass so many times and tell the median of their times")
                     ->check(CLI::Range(1, 1'000'000))
                     ->capture_default_str();
  app.add_flag("--quiet", options.request.isQuiet,
               "Sample no memory, and tell of no collective and no progress, before the end");
  app.add_flag("--times", options.request.recordsTimes,
               "Tell what this rank did when, in the last training step or in a second, warm forward pass");
  program::Training& training = options.request.training;
  app.add_option("--train-steps", training.steps, "Train for so many steps instead of one forward pass")
      ->excludes(passes);
  app.add_option("--optimizer", options.optimizer, "sgd, momentum or adamw")
      ->capture_default_str()
      ->type_name(option_types::oneOf({"sgd", "momentum", "adamw"}));
  app.add_option("--lr", training.learningRate, "Learning rate")->capture_default_str();
  app.add_option("--weight-decay", training.weightDecay, "Weight decay")->capture_default_str();
  app.add_option("--clip-norm", options.clipNorm, "Scale gradients down to this norm");
  app.add_option("--accumulate", training.accumulate, "Micro-batches a step")->capture_default_str();
  program::Generation& generation = options.request.generation;
  app.add_option("--generate", generation.tokens, "Generate so many tokens behind the prompt that is the input");
  app.add_option("--decode", options.request.decodeFile, "With --generate: plan file of a step behind the prompt")
      ->check(CLI::ExistingFile);
  app.add_option("--end-token", generation.endTokens, "With --generate: a row ends behind this token; may be repeated");
  app.add_option("--padding-token", generation.paddingToken, "With --generate: fills up rows that have ended")
      ->capture_default_str();
  app.add_option("--events-fd", options.eventsFd,
                 "Inherited pipe to write events to; readable lines on standard error without it");
  app.add_option("--events-to", options.eventsTo,
                 "HOST:PORT where cleave-cli run --listen waits for the events; CLEAVE_RUN_TOKEN is that run's token")
      ->envname("CLEAVE_EVENTS_TO");
  app.add_option("--control-fd", options.controlFd, "Inherited pipe whose end of file ends this rank");
  app.add_option("--listen-fd", options.request.listenFd, "Inherited socket that listens on MASTER_PORT (rank 0)");
}

}  // namespace cleave::options
