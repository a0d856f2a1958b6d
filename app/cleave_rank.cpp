/// cleave-rank PLAN: one rank of a run. Started by Cleave's launcher, torchrun or srun, which tell it who it is:
/// protocol/rank_side.h.
#include "base/overwriting.h"
#include "base/standard_streams.h"
#include "libtorch/bridge/errors.h"
#include "libtorch/rank/rank.h"
#include "protocol/rank_side.h"

#include <CLI/CLI.hpp>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <memory>

#include <unistd.h>

using namespace cleave;

namespace {

struct Options {
  torch_rank::RankRequest request;
  int eventsFd = -1, controlFd = -1, connectTimeout = 60;
  std::string input, output, deviation;
};

void declare(CLI::App& app, Options& options) {
  app.add_option("plan", options.request.planFile, "Plan file, as `cleave-cli plan --json` writes it")->required();
  app.add_option("--backend", options.request.backend, "gloo (CPUs) or nccl (GPUs)")
      ->check(CLI::IsMember({"gloo", "nccl"}))
      ->capture_default_str();
  app.add_option("--input", options.input, "Safetensors file with input_ids, labels, ...; random ids without it");
  app.add_option("--output", options.output, "Safetensors file that rank 0 writes the outputs to");
  app.add_option("--deviation", options.deviation,
                 "Safetensors file that another rank writes its outputs to when they are not rank 0's, as FILE.RANK");
  app.add_option("--connect-timeout", options.connectTimeout, "Seconds to wait for the other ranks at the start")
      ->check(CLI::Range(1, 86'400))
      ->capture_default_str();
  app.add_flag("--skip-weights", options.request.skipWeights,
               "Fill all parameters from the plan's seed instead of reading them");
  app.add_flag("--init-missing", options.request.initMissing,
               "Fill parameters that the checkpoint lacks from the plan's seed");
  app.add_option("--events-fd", options.eventsFd,
                 "Inherited pipe to write events to; readable lines on standard error without it");
  app.add_option("--control-fd", options.controlFd, "Inherited pipe whose end of file ends this rank");
  app.add_option("--listen-fd", options.request.listenFd, "Inherited socket that listens on MASTER_PORT (rank 0)");
}

std::string ncclLibrary() {
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  return (self.parent_path() / "libcleave_nccl.so").string();
}

/// Without destructors: a process group's would wait for peers that may be gone.
[[noreturn]] void end(int code) {
  std::fflush(nullptr);
  ::_exit(code);
}

const torch_rank::EventSink* toldOfTheEnd = nullptr;
std::unique_ptr<char[]> reserve;  // for the last words of a rank that has no memory left

/// An exception that no thread catches, such as one of Gloo's that finds no memory, is this rank's error too.
[[noreturn]] void tellAndEnd() {
  reserve.reset();
  Error error{ErrorCode::RankFailed, "An unknown exception ended the rank."};
  try {
    if (const auto thrown = std::current_exception()) std::rethrow_exception(thrown);
  } catch (const std::exception&) {
    error = bridge::currentError();
  } catch (...) {
  }
  if (toldOfTheEnd)
    (*toldOfTheEnd)(protocol::RankError{error.message, error.code == ErrorCode::RankFailed, error.code});
  end(exitCode(error.code));
}

int runAsRank(Options& options) {
  auto environment = protocol::readRankEnvironment([](const char* name) { return std::getenv(name); });
  if (!environment) {
    std::fprintf(stderr, "cleave-rank: %s\n", environment.error().message.c_str());
    return exitCode(environment.error().code);
  }
  torch_rank::RankRequest& request = options.request;
  request.rank = environment->rank;
  request.localRank = environment->localRank;
  request.worldSize = environment->worldSize;
  request.masterAddress = environment->masterAddress;
  request.masterPort = environment->masterPort;
  request.agentStore = environment->agentStore;
  request.connectTimeout = std::chrono::seconds(options.connectTimeout);
  if (!options.input.empty()) request.inputFile = options.input;
  if (!options.output.empty()) request.outputFile = options.output;
  if (!options.deviation.empty()) request.deviationFile = options.deviation;
  request.ncclLibrary = ncclLibrary();

  std::unique_ptr<protocol::EventWriter> writer;
  if (options.eventsFd >= 0) writer = std::make_unique<protocol::EventWriter>(options.eventsFd);
  const torch_rank::EventSink sink = [&](const protocol::Message& message) {
    if (writer) {
      writer->write(message);
    } else if (const auto text = protocol::readable(request.rank, message)) {
      std::fprintf(stderr, "%s\n", text->c_str());
    }
    if (const auto* error = std::get_if<protocol::RankError>(&message)) end(exitCode(error->code));
  };
  toldOfTheEnd = &sink;
  reserve = std::make_unique<char[]>(1 << 20);
  std::set_terminate(tellAndEnd);
  const auto result = torch_rank::runRank(request, sink);
  return result ? 0 : exitCode(result.error().code);
}

}  // namespace

int main(int argc, char** argv) {
  holdStandardStreams();
  // A broken pipe is an error of write(), not a reason to die silently.
  std::signal(SIGPIPE, SIG_IGN);
  Options options;
  CLI::App app{"One rank of a tensor-parallel run of a plan", "cleave-rank"};
  declare(app, options);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : exitCode(ErrorCode::BadUsage);
  }
  const auto& request = options.request;
  if (const auto apart = refuseOverwriting({{"--output", options.output}},
                                           {{"the plan", request.planFile}, {"--input", options.input}});
      !apart) {
    std::fprintf(stderr, "cleave-rank: %s\n", apart.error().message.c_str());
    return exitCode(apart.error().code);
  }
  if (options.controlFd >= 0) protocol::endWithControlPipe(options.controlFd);
  end(runAsRank(options));
}
