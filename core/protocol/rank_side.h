#pragma once
/// The rank's side of a run: who it is (environment), how it reports (events), when it must end (control). No LibTorch.
///
/// | fact           | torchrun, launcher | Slurm                                                |
/// |----------------|--------------------|------------------------------------------------------|
/// | rank           | RANK               | SLURM_PROCID                                         |
/// | local rank     | LOCAL_RANK         | SLURM_LOCALID                                        |
/// | world size     | WORLD_SIZE         | SLURM_NTASKS                                         |
/// | where to meet  | MASTER_ADDR        | first host of SLURM_STEP_NODELIST or SLURM_NODELIST  |
/// |                | MASTER_PORT        | 20000 + SLURM_JOB_ID modulo 20000                    |
///
/// Where both are set the first column counts. Nothing set: one rank alone. Where torchrun says that its agent serves
/// the store at that address (TORCHELASTIC_USE_AGENT_STORE), no rank may serve one there.
#include "protocol/events.h"

#include <filesystem>
#include <functional>
#include <mutex>
#include <optional>
#include <string>

namespace cleave::protocol {

struct RankEnvironment {
  int rank = 0, localRank = 0, worldSize = 1;
  std::string masterAddress = "127.0.0.1";
  int masterPort = 0;      ///< 0: not given (fine for one rank)
  std::string agentStore;  ///< prefix of this attempt's keys in the agent's store, "/worker/attempt_0"; empty: rank 0
                           ///< serves
};

/// `variable` answers like getenv. BadUsage names the variable that is missing, malformed or out of range.
Result<RankEnvironment> readRankEnvironment(const std::function<const char*(const char*)>& variable);

/// "node[07-09,12],gpu3" → "node07": the host on which Slurm puts rank 0 by default.
std::string firstHost(std::string_view slurmNodeList);

/// Writes messages as lines to a pipe or a connection, from any thread. When the reader is gone the process ends at
/// once, with these last words on standard error: nobody is left to want the result.
class EventWriter {
 public:
  explicit EventWriter(int fd, std::string lastWords = {}) : m_fd(fd), m_lastWords(std::move(lastWords)) {}
  void write(const Message& message);
  /// The file as messages OutputPart. BadInput or Environment when it cannot be read.
  Result<void> writeFile(const std::filesystem::path& file);

 private:
  std::mutex m_mutex;
  int m_fd;
  std::string m_lastWords;
};

/// Starts a thread that ends the process (exit code of Cancelled) as soon as the control pipe, or the connection that
/// serves as one, reaches its end: the launcher is gone or wants the rank gone. The last words go to standard error.
void endWithControlPipe(int fd, std::string lastWords = {});

/// A message as a person reads it in a terminal; nullopt for those that only matter to a program.
std::optional<std::string> readable(int rank, const Message& message);

}  // namespace cleave::protocol
