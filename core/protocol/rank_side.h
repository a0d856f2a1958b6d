#pragma once
/// The rank's side of a run: its identity (environment), its reports (events), its end (control). No LibTorch.
///
/// | fact           | torchrun, launcher | Slurm                                                |
/// |----------------|--------------------|------------------------------------------------------|
/// | rank           | RANK               | SLURM_PROCID                                         |
/// | local rank     | LOCAL_RANK         | SLURM_LOCALID                                        |
/// | world size     | WORLD_SIZE         | SLURM_NTASKS                                         |
/// | where to meet  | MASTER_ADDR        | first host of SLURM_STEP_NODELIST or SLURM_NODELIST  |
/// |                | MASTER_PORT        | 20000 + SLURM_JOB_ID modulo 20000                    |
///
/// The first column wins if both are set. Without any of them there is one rank. If torchrun's agent serves the store
/// at that address (TORCHELASTIC_USE_AGENT_STORE), no rank may serve a store there.
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
  int masterPort = 0;      ///< 0: not set (allowed for one rank)
  std::string agentStore;  ///< prefix of this attempt's keys in the agent's store, "/worker/attempt_0"; empty: rank 0
                           ///< serves the store
};

/// `variable` behaves like getenv. BadUsage names a missing, malformed or out-of-range variable.
Result<RankEnvironment> readRankEnvironment(const std::function<const char*(const char*)>& variable);

/// "node[07-09,12],gpu3" → "node07": the host where Slurm puts rank 0 by default.
std::string firstHost(std::string_view slurmNodeList);

/// Writes messages as lines to a pipe or a connection, from any thread. If the reader is gone, the result is useless:
/// the process prints its last message on standard error and ends at once.
class EventWriter {
 public:
  explicit EventWriter(int fd, std::string lastMessage = {}) : m_fd(fd), m_lastWords(std::move(lastMessage)) {}
  void write(const Message& message);
  /// The file as OutputPart messages. BadInput or Environment if it cannot be read.
  Result<void> writeFile(const std::filesystem::path& file);

 private:
  std::mutex m_mutex;
  int m_fd;
  std::string m_lastWords;
};

/// Starts a thread that ends the process (exit code of Cancelled) when the control pipe, or the connection that
/// replaces it, closes: the launcher is gone or stops the rank. The last message goes to standard error.
void endWithControlPipe(int fd, std::string lastMessage = {});

/// A message as text for a terminal; nullopt for messages that only programs use.
std::optional<std::string> readable(int rank, const Message& message);

}  // namespace cleave::protocol
