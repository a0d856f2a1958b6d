#pragma once
/// Addresses and connections between hosts. A rank needs them to report to a remote launcher, and to find its own
/// address that others can reach. The system resolves names, with its own time limits.
#include "base/result.h"
#include "base/unique_fd.h"

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace cleave::protocol {

struct HostPort {
  std::string host;
  int port = 0;
  bool operator==(const HostPort&) const = default;
};
/// "node0:29500", "[fd00::1]:29500", "10.0.0.1". `defaultPort` is used if the text has no port; nullopt: a port is
/// required. BadUsage starts with `what` ("--listen").
Result<HostPort> parseHostPort(std::string_view text, std::string_view what, std::optional<int> defaultPort = {});
/// IPv6 addresses are in brackets.
std::string toText(const HostPort& at);

/// True for "localhost", 127.x.x.x and ::1.
bool isLoopback(std::string_view address);

/// The numeric address to which a socket of this host is bound.
std::optional<std::string> addressOf(int socket);

/// The numeric address of the other end of a connection.
std::optional<std::string> peerOf(int socket);

/// The local address from which packets to `host` leave, and to which `host` can answer. If `host` is this host's own
/// name, a network address is preferred to a loopback address. Sends nothing. nullopt: there is no route. A host with
/// only a loopback device returns 127.0.0.1.
std::optional<std::string> ownAddressTowards(const std::string& host);

/// Listens on a port of an address of this host. Port 0 selects a free one and stores it in `at.port`. Environment if
/// the host does not have that address or the port is in use.
Result<UniqueFd> listenOn(HostPort& at);

/// Retries until it succeeds or the time is over, because the listener may start later. The connection fails (every
/// read and write) when the peer acknowledges nothing for `kPeerGone`. Environment reports the error of the last
/// attempt.
Result<UniqueFd> connectTo(const HostPort& at, std::chrono::milliseconds limit);
inline constexpr std::chrono::milliseconds kPeerGone{10'000};
/// The connection fails when the peer has not acknowledged sent data for this long.
void giveUpOnSilence(int socket, std::chrono::milliseconds limit);

}  // namespace cleave::protocol
