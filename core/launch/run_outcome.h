#pragma once
/// The events of a run of ranks, and its outcome. The launcher and the listener share these types.
#include "base/result.h"
#include "protocol/events.h"

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace cleave::launch {

struct RankExit {
  int rank = -1;
  bool failed = false;
  ErrorCode code = ErrorCode::RankFailed;  ///< code of its error or exit: BadInput, Environment, ...; else RankFailed
  std::string what;                        ///< "was killed by signal 9", "ended with code 3", "sent nothing for 10 s"
  std::string lastMessage;                 ///< its error message, or the last lines of its standard error
  bool isOutOfMemory = false;              ///< the kernel killed it for lack of memory
  /// Time of detection on the launcher's clock, which stops while an observer is busy.
  std::chrono::steady_clock::time_point seen = {};
};

struct RunOutcome {
  bool succeeded = false;
  std::optional<RankExit> firstFailure;
  std::vector<std::optional<protocol::RankResult>> results;  ///< by rank
};

/// Called on the launching thread, in the order of the lines. `line` is a line of the rank's standard error; `notice`
/// is a sentence of the launcher about the rank. Both may be empty.
struct RankEvent {
  int rank = 0;
  std::optional<protocol::Message> message;
  std::string line, notice = {};
};
using Observer = std::function<void(const RankEvent&)>;

}  // namespace cleave::launch
