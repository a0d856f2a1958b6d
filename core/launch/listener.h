#pragma once
/// A run whose ranks are started elsewhere, on any number of hosts (torchrun, srun, a person). The ranks connect to a
/// port of this host and send their run and rank (protocol/join.h). They are then followed like local ranks: the same
/// watch, the same outcome.
///
///     CLEAVE_TRY(auto listener, Listener::open({"10.0.0.1", 0}));
///     print(toText(listener.address()), listener.token());        // the ranks need both
///     CLEAVE_TRY(auto outcome, listener.follow({.ranks = 4}, observer, progress));
///
/// A rank whose connection ends before its result fails at once. A silent rank, as after a cut cable, fails after
/// `silence`. A failure, a stop, or the end of this process closes all connections, and each rank then ends: at once if
/// the network works, else after its own time limit.
///
/// Incoming data is untrusted: a connection has 5 s for its first line of at most 1 KiB, at most 64 connections may
/// wait (a newer one replaces the oldest), a line has at most 64 KiB, output files have the given limit. A connection
/// without the token, a rank that has already joined or a rank of another world size is rejected with a reason, and the
/// run goes on. `follow` blocks the calling thread, which also calls the observer; stop it with the progress's token.
#include "launch/launcher.h"
#include "protocol/join.h"

namespace cleave::launch {

struct FollowRequest {
  int ranks = 2;
  std::chrono::milliseconds silence = kSilence;  ///< as in LaunchRequest
  int joinMs = 60'000;  ///< limit for the other ranks after the first has joined, and for each rank's first message
  /// Rank 0's outputs are written to `output`, those of a deviating rank r to `deviation` with ".r" appended; empty:
  /// not requested.
  std::filesystem::path output, deviation;
  std::int64_t maxOutputBytes = 0;                      ///< limit for each file
  std::function<void(const std::string&)> notice = {};  ///< receives sentences about rejected connections
};

class Listener {
 public:
  /// An empty token means a new one. BadUsage for a wildcard address, which ranks cannot connect to, or for a host name
  /// that maps to the loopback device. Environment if this host does not have the address or the port is in use.
  static Result<Listener> open(protocol::HostPort at, std::string token = {});
  const protocol::HostPort& address() const { return m_address; }
  const std::string& token() const { return m_token; }

  /// Follows one run. Environment if outputs cannot be written here.
  Result<RunOutcome> follow(const FollowRequest& request, const Observer& observer, const Progress& progress = {});

 private:
  UniqueFd m_socket;
  protocol::HostPort m_address;
  std::string m_token;
};

}  // namespace cleave::launch
