#pragma once
/// Starts N local `cleave-rank` processes, follows them, and never leaves one behind.
///
/// Each rank inherits two pipes: events (rank → launcher, see events.h) and control (launcher → rank: its end of file
/// tells the rank to end within a second, also when the launcher was killed). Ranks are in one process group. A rank
/// that dies, reports an error or writes nothing for longer than `silence` fails the run: all others are stopped
/// (SIGTERM, then SIGKILL) within 5 s, and the first to fail is named with its last words. One that lives and that the
/// others wait for is told of (RankEvent::notice), and the run goes on. A rank is judged by all that
/// it has said: one that ended is listened to first, and the time an observer takes counts against nobody. `launch`
/// blocks the calling thread, which also calls the observer; stop it with the progress's token.
#include "base/progress.h"
#include "launch/gpus.h"
#include "protocol/events.h"

#include <chrono>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace cleave::launch {

enum class Backend : std::uint8_t { Auto, Gloo, Nccl };
std::string_view toText(Backend backend);
std::optional<Backend> parseBackend(std::string_view text);

/// Ten heartbeats: a rank's pulse is no work, so that a machine must be very busy to hold it up for so long.
inline constexpr std::chrono::milliseconds kSilence{2500};

/// A process with a full GPU and its communicators takes seconds to end; eight of them at once take tens of seconds.
inline constexpr std::chrono::milliseconds kTeardown{60'000};

struct LaunchRequest {
  std::filesystem::path rankProgram;  ///< the cleave-rank executable
  std::filesystem::path planFile;     ///< empty: they run none (rankArguments say what they do)
  int ranks = 2;
  Backend backend = Backend::Gloo;                 ///< Auto is resolved before (see chooseBackend)
  std::vector<std::string> rankArguments;          ///< "--input", FILE, "--output", FILE, "--skip-weights", ...
  std::chrono::milliseconds silence = kSilence;    ///< a rank that sends nothing for so long counts as dead
  std::chrono::milliseconds teardown = kTeardown;  ///< a rank with a result may take this long to end
};

struct RankExit {
  int rank = -1;
  bool failed = false;
  ErrorCode code =
      ErrorCode::RankFailed;   ///< of its error or its exit code: BadInput, Environment, ...; else RankFailed
  std::string what;            ///< "was killed by signal 9", "ended with code 3", "sent nothing for 10 s"
  std::string lastWords;       ///< its error message, or the end of its standard error
  bool isOutOfMemory = false;  ///< the kernel ended it for want of memory
  /// When the launcher knew of it, on its clock that stands still while an observer is busy.
  std::chrono::steady_clock::time_point seen = {};
};

struct RunOutcome {
  bool succeeded = false;
  std::optional<RankExit> firstFailure;
  std::vector<std::optional<protocol::RankResult>> results;  ///< by rank
};

/// Called on the launching thread, in the order the lines arrived. `line` is a line of the rank's standard error,
/// `notice` a sentence of the launcher's own about it; or empty.
struct RankEvent {
  int rank = 0;
  std::optional<protocol::Message> message;
  std::string line, notice = {};
};
using Observer = std::function<void(const RankEvent&)>;

Result<RunOutcome> launch(const LaunchRequest& request, const Observer& observer, const Progress& progress = {});

/// The cleave-rank that was installed with this program. Environment when it is missing.
Result<std::filesystem::path> rankProgram();

/// What ranks communicate over, and why, in one sentence.
struct BackendChoice {
  Backend backend = Backend::Gloo;  ///< Gloo or Nccl
  std::string why;                  ///< "Gloo on CPUs: no GPU found."
};
/// Auto → Nccl where NCCL can run so many ranks here (gpus.h), else Gloo. Nccl where it cannot: Environment.
/// `bytesPerRank`: what each needs on its GPU; Auto takes Gloo where a GPU has less; 0: does not matter. Asks CUDA
/// (seconds) unless Gloo is asked for, or Auto on a machine without any sign of a GPU.
Result<BackendChoice> chooseBackend(Backend wanted, int ranks, std::int64_t bytesPerRank = 0,
                                    const Progress& progress = {});
/// The same with CUDA's answer at hand.
Result<BackendChoice> chooseBackend(Backend wanted, int ranks, std::int64_t bytesPerRank, const GpuProbe& probe);

}  // namespace cleave::launch
