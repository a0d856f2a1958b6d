#pragma once
/// How a rank that was started elsewhere comes to whoever listens for its run: it connects, says which run it is of and
/// which rank, and is let in or turned away. From then on the connection is what the two pipes are to a local rank: its
/// lines are events.h's, and its end ends the rank.
///
/// | from     | line                                                                 |
/// |----------|----------------------------------------------------------------------|
/// | rank     | {"type":"join","version":2,"token":"8c5f…","rank":2,"ranks":4}       |
/// | listener | {"type":"welcome","wants_outputs":true,"silence_ms":2500}            |
/// |          | or {"type":"refused","why":"Rank 2 is here already."}, and the end   |
///
/// The token is the run's, and made by the listener: it keeps out strangers and ranks of other runs. It goes over the
/// network as it is, so that it is no protection where others can listen in.
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
/// BadInput for any other line. The version is for the listener to judge: it can tell the rank.
Result<Join> decodeJoin(std::string_view line);

struct Answer {
  bool wantsOutputs = false;  ///< the rank sends what it would write for `--output` and `--deviation`
  /// Either side gives the other up that has said, or acknowledged, nothing for so long.
  std::chrono::milliseconds silence = kPeerGone;
  std::string refusal;  ///< why not; empty: welcome
};
std::string encode(const Answer& answer);
Result<Answer> decodeAnswer(std::string_view line);

/// Letters, digits, '-' and '_', 16 to 128 of them. BadUsage else, without showing it.
Result<void> checkToken(std::string_view token);
std::string makeToken();
/// In a time that does not tell how much of them is alike.
bool isSameToken(std::string_view a, std::string_view b);

struct Joined {
  UniqueFd connection;
  bool wantsOutputs = false;
};
/// The rank's part, blocking. Environment: nobody answers in time; BadUsage: the listener's refusal.
Result<Joined> joinRun(const HostPort& listener, const Join& join, std::chrono::milliseconds limit);

}  // namespace cleave::protocol
