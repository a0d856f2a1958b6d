/// cleave-rank PLAN runs one rank of a run; cleave-rank --calibrate runs one rank of a calibration. Cleave's launcher,
/// torchrun or srun start it and pass its rank in the environment: protocol/rank_side.h.
#include "base/file_mapping.h"
#include "base/libtorch_folder.h"
#include "base/secret.h"
#include "base/standard_streams.h"
#include "base/temporary_folder.h"
#include "libtorch/bridge/errors.h"
#include "libtorch/rank/process/calibration.h"
#include "libtorch/rank/process/probe.h"
#include "libtorch/rank/process/rank.h"
#include "options/rank_options.h"
#include "options/standard_flags.h"
#include "protocol/join.h"
#include "protocol/rank_side.h"

#include <CLI/CLI.hpp>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <limits>
#include <memory>
#include <optional>

#include <malloc.h>
#include <unistd.h>

using namespace cleave;

namespace {

std::string ncclLibrary() {
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  return (self.parent_path() / kNcclLibrary).string();
}

/// A pass frees all its memory, and the next one allocates it again. Memory that glibc returns to the system in between
/// must be faulted in and cleared page by page: thousands of faults, and 5 % of a small model's pass. So the heap keeps
/// freed memory and serves all sizes that glibc allows. In training, large tensors stay outside the heap. There a
/// gradient is freed just before its replacement is allocated, a small block takes its place, and the gaps were a fifth
/// of a large model's memory.
void keepFreedMemory(bool trains) {
  constexpr int kMostInHeap = 32 << 20;  // glibc's maximum; it rejects larger values
  constexpr int kMostInHeapOfTraining = 1 << 20;
  ::mallopt(M_MMAP_THRESHOLD, trains ? kMostInHeapOfTraining : kMostInHeap);
  ::mallopt(M_TRIM_THRESHOLD, std::numeric_limits<int>::max());
}

/// Skips destructors: a process group's destructor would wait for peers that may have exited.
[[noreturn]] void end(int code) {
  std::fflush(nullptr);
  ::_exit(code);
}

const torch_rank::EventSink* exitSink = nullptr;
std::unique_ptr<char[]> reserve;  // for the last message of a rank without memory

/// An exception that no thread catches, such as Gloo's for failed allocations, is reported as this rank's error too.
[[noreturn]] void reportAndEnd() {
  reserve.reset();
  const Error error = bridge::uncaughtError();
  if (exitSink) (*exitSink)(protocol::RankError{error.message, error.code == ErrorCode::RankFailed, error.code});
  end(exitCode(error.code));
}

/// The destination of messages: the launcher's pipe, a remote listener, or text on standard error.
class Report {
 public:
  /// For a rank that a launcher started on this machine.
  explicit Report(int eventsFd) {
    if (eventsFd >= 0) m_writer = std::make_unique<protocol::EventWriter>(eventsFd);
  }

  /// Blocks until the listener accepts this rank. The rank exits when the connection closes.
  Result<void> join(torch_rank::RankRequest& request, const std::string& listener) {
    const char* token = std::getenv("CLEAVE_RUN_TOKEN");
    CLEAVE_TRY(const protocol::HostPort at, protocol::parseHostPort(listener, "--events-to"));
    const protocol::Join join{.token = token ? token : "", .rank = request.rank, .ranks = request.worldSize};
    CLEAVE_TRY(protocol::Joined joined, protocol::joinRun(at, join, request.connectTimeout));
    m_connection = std::move(joined.connection);
    const std::string words = fmt::format(
        "cleave-rank: rank {} exits, because the listener at {} has ended or is "
        "unreachable.",
        request.rank, protocol::toText(at));
    protocol::endWithControlPipe(m_connection.get(), words);
    m_writer = std::make_unique<protocol::EventWriter>(m_connection.get(), words);
    if (!joined.wantsOutputs) return {};
    CLEAVE_TRY(m_folder, TemporaryFolder::make("cleave-rank"));
    if (!request.outputFile) request.outputFile = *m_folder / "outputs.safetensors";
    if (!request.deviationFile) request.deviationFile = *m_folder / "outputs";
    m_outputs = request.rank == 0 ? *request.outputFile
                                  : fs::path(fmt::format("{}.{}", request.deviationFile->string(), request.rank));
    return {};
  }

  void send(int rank, const protocol::Message& message) {
    const auto* error = std::get_if<protocol::RankError>(&message);
    if (const auto text = protocol::readable(rank, message); text && (!m_writer || (m_connection.isOpen() && error)))
      std::fprintf(stderr, "%s\n", text->c_str());
    if (error) m_folder.reset();
    if (std::holds_alternative<protocol::RankResult>(message)) sendOutputs(rank);
    if (m_writer) m_writer->write(message);
    if (error) end(exitCode(error->code));
  }

 private:
  void sendOutputs(int rank) {
    std::error_code error;
    if (m_outputs.empty() || !fs::exists(m_outputs, error)) return;
    if (const auto sent = m_writer->writeFile(m_outputs); !sent)
      send(rank, protocol::RankError{sent.error().message, false, sent.error().code});
  }

  std::unique_ptr<protocol::EventWriter> m_writer;
  UniqueFd m_connection;
  std::optional<TemporaryFolder> m_folder;
  fs::path m_outputs;  ///< set if the listener requested them; else empty
};

/// Prints the sentence, and returns its exit code.
int refuse(const Error& error) {
  std::fprintf(stderr, "cleave-rank: %s\n", error.message.c_str());
  return exitCode(error.code);
}

int runAsRank(const options::RankOptions& options, torch_rank::RankRequest request) {
  auto environment = protocol::readRankEnvironment([](const char* name) { return std::getenv(name); });
  if (!environment) return refuse(environment.error());
  request.rank = environment->rank;
  request.localRank = environment->localRank;
  request.worldSize = environment->worldSize;
  request.masterAddress = environment->masterAddress;
  request.masterPort = environment->masterPort;
  request.agentStore = environment->agentStore;
  if (request.watchedFile) request.watchedFile = fmt::format("{}.{}", request.watchedFile->string(), request.rank);
  request.ncclLibrary = ncclLibrary();

  Report report(options.eventsFd);
  if (options.eventsFd < 0 && !options.eventsTo.empty()) {
    if (const auto joined = report.join(request, options.eventsTo); !joined) return refuse(joined.error());
  }
  const torch_rank::EventSink sink = [&](const protocol::Message& message) { report.send(request.rank, message); };
  exitSink = &sink;
  reserve = std::make_unique<char[]>(1 << 20);
  std::set_terminate(reportAndEnd);
  reportLostPages();
  const auto result =
      options.calibrates ? torch_rank::calibrateRank(request, sink) : torch_rank::runRank(request, sink);
  return result ? 0 : exitCode(result.error().code);
}

/// Reports to the launcher, or as text on standard output.
int probe(int eventsFd) {
  std::optional<protocol::EventWriter> writer;
  if (eventsFd >= 0) writer.emplace(eventsFd);
  bool isUsable = false;
  const torch_rank::EventSink sink = [&](const protocol::Message& message) {
    if (writer) writer->write(message);
    const auto* gpu = std::get_if<protocol::GpuFound>(&message);
    isUsable = isUsable || (gpu && gpu->error.empty());
    if (writer || !(gpu || std::holds_alternative<protocol::CudaFound>(message))) return;
    std::printf("%s\n", protocol::readable(0, message)->c_str());
  };
  const auto probed = torch_rank::probeGpus(ncclLibrary(), sink);
  if (writer) return probed ? 0 : exitCode(probed.error().code);
  if (!probed) std::fprintf(stderr, "cleave-rank: %s\n", probed.error().message.c_str());
  return isUsable ? 0 : exitCode(ErrorCode::Environment);
}

}  // namespace

int main(int argc, char** argv) {
  hideSecretsOfEnvironment();
  holdStandardStreams();
  failWritesInsteadOfEnding();
  options::RankOptions options;
  CLI::App app;
  options.declare(app);
  options::addVersionFlag(app);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : exitCode(ErrorCode::BadUsage);
  }
  auto request = options.request();
  if (!request) return refuse(request.error());
  if (options.controlFd >= 0) protocol::endWithControlPipe(options.controlFd);
  if (options.probes) end(probe(options.eventsFd));
  if (request->backend == "gloo") keepFreedMemory(request->training.isAsked());
  end(runAsRank(options, *std::move(request)));
}
