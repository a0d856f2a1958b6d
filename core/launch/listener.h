#pragma once
/// The launcher's other half: a run whose ranks somebody else starts, on any number of hosts (torchrun, srun, a
/// person). They come to a port of this host, say which run and which rank they are (protocol/join.h), and are followed
/// from then on as local ones are: by the same watch, with the same outcome.
///
///     CLEAVE_TRY(auto listener, Listener::open({"10.0.0.1", 0}));
///     say(toText(listener.address()), listener.token());        // what the ranks must be told
///     CLEAVE_TRY(auto outcome, listener.attend({.ranks = 4}, observer, progress));
///
/// A rank whose connection ends before its result has failed at once; one that is silent, as behind a cut cable, after
/// `silence`. A failure, a stop, or the end of this process closes all connections, and with its connection each rank
/// ends: at once where the network works, else when its own side has waited in vain for as long.
///
/// What comes in is foreign: a connection has 5 s for its first line of 1 KiB, at most 64 may be about it at a time
/// (the oldest goes for a newer one), lines have 64 KiB, files of outputs the given size. A stranger, a rank that is
/// there already or of another world is turned away and told why, and the run goes on. `attend` blocks the calling
/// thread, which also calls the observer; stop it with the progress's token.
#include "launch/launcher.h"
#include "protocol/join.h"

namespace cleave::launch {

struct AttendRequest {
  int ranks = 2;
  std::chrono::milliseconds silence = kSilence;  ///< as of LaunchRequest
  int joinMs = 60'000;  ///< for the other ranks once the first has come, and for each to say its first word
  /// Rank 0's outputs become this file, those of a rank r that deviate `deviation` with ".r" behind; empty: not wanted.
  std::filesystem::path output, deviation;
  std::int64_t maxOutputBytes = 0;                      ///< of each
  std::function<void(const std::string&)> notice = {};  ///< sentences about who came and was turned away
};

class Listener {
 public:
  /// An empty token: a new one. BadUsage for an address of all networks at once, which tells nobody where to go, or of
  /// the loopback device under another name; Environment when the address is not this host's or the port is taken.
  static Result<Listener> open(protocol::HostPort at, std::string token = {});
  const protocol::HostPort& address() const { return m_address; }
  const std::string& token() const { return m_token; }

  /// One run. Environment when outputs cannot be written here.
  Result<RunOutcome> attend(const AttendRequest& request, const Observer& observer, const Progress& progress = {});

 private:
  UniqueFd m_socket;
  protocol::HostPort m_address;
  std::string m_token;
};

}  // namespace cleave::launch
