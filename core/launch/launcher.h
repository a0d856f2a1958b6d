#pragma once
/// Starts N local `cleave-rank` processes, follows them, and never leaves one running.
///
/// Each rank inherits two pipes: events (rank → launcher, see events.h) and control (launcher → rank: its end of file
/// ends the rank within a second, also if the launcher was killed). Ranks are in one process group. A rank that dies,
/// reports an error or is silent for longer than `silence` fails the run: all others are stopped (SIGTERM, then
/// SIGKILL) within 5 s, and the first failed rank is named with its last message. A slow rank that the others wait for
/// is reported (RankEvent::notice), and the run continues. All output of an ended rank is read before it is judged, and
/// the observer's own time does not count as silence. `launch` blocks the calling thread, which also calls the
/// observer; stop it with the progress's token.
#include "base/progress.h"
#include "launch/backend.h"
#include "launch/run_outcome.h"

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

namespace cleave::launch {

/// Ten heartbeats: sending one costs almost nothing, so only a very busy machine delays it this long.
inline constexpr std::chrono::milliseconds kSilence{2500};

/// A process with a full GPU and its communicators takes seconds to end; eight at once take tens of seconds.
inline constexpr std::chrono::milliseconds kTeardown{60'000};

struct LaunchRequest {
  std::filesystem::path rankProgram;  ///< the cleave-rank executable
  std::filesystem::path planFile;     ///< empty: the ranks run no plan (rankArguments say what they do)
  int ranks = 2;
  Backend backend = Backend::Gloo;                 ///< Auto is resolved before (see chooseBackend)
  std::vector<std::string> rankArguments;          ///< "--input", FILE, "--output", FILE, "--skip-weights", ...
  std::chrono::milliseconds silence = kSilence;    ///< a rank that sends nothing for this long counts as failed
  std::chrono::milliseconds teardown = kTeardown;  ///< limit for a rank to end after its result
};

Result<RunOutcome> launch(const LaunchRequest& request, const Observer& observer, const Progress& progress = {});

}  // namespace cleave::launch
