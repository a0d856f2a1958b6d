#pragma once
/// How a rank started elsewhere joins its run. It connects to the listener, sends its run and rank, and is accepted or
/// rejected. The connection then replaces the two pipes of a local rank: it carries the lines of events.h, and its end
/// ends the rank.
///
/// | from     | line                                                                 |
/// |----------|----------------------------------------------------------------------|
/// | rank     | {"type":"join","version":2,"token":"8c5f…","rank":2,"ranks":4}       |
/// | listener | {"type":"welcome","wants_outputs":true,"silence_ms":2500}            |
/// |          | or {"type":"refused","why":"Rank 2 is here already."}, and the end   |
///
/// The listener makes a token for each run, which keeps out other connections and ranks of other runs. It is sent in
/// clear text, so it does not protect against anyone who can read the network.
#include "base/unique_fd.h"
#include "protocol/events.h"
#include "protocol/tcp.h"

namespace cleave::protocol {

inline constexpr std::size_t kMaxJoinBytes = 1024;

struct Join {
  int version = kProtocolVersion;
  std::string token;
  int rank = 0, ranks = 1;
};
std::string encode(const Join& join);  ///< one line, with the newline
/// BadInput for any other line. The listener checks the version, so that it can answer the rank.
Result<Join> decodeJoin(std::string_view line);

struct Answer {
  bool wantsOutputs = false;  ///< true if the rank sends the files of `--output` and `--deviation`
  /// Each side gives up the other after this time without a message or an acknowledgement.
  std::chrono::milliseconds silence = kPeerGone;
  std::string refusal;  ///< reason for the rejection; empty: welcome
};
std::string encode(const Answer& answer);
Result<Answer> decodeAnswer(std::string_view line);

/// 16 to 128 letters, digits, '-' and '_'. Otherwise BadUsage, without showing the token.
Result<void> checkToken(std::string_view token);
std::string makeToken();
/// Compares in constant time, so that the time does not reveal a common prefix.
bool isSameToken(std::string_view a, std::string_view b);

struct Joined {
  UniqueFd connection;
  bool wantsOutputs = false;
};
/// The rank's side of joining; blocks. Environment: no answer in time; BadUsage: the listener rejected the rank.
Result<Joined> joinRun(const HostPort& listener, const Join& join, std::chrono::milliseconds limit);

}  // namespace cleave::protocol
