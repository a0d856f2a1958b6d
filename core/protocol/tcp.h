#pragma once
/// Addresses and connections between hosts: what a rank needs to report to a launcher elsewhere, and to find out by
/// which of its own addresses others reach it. Names are looked up by the system, which has time limits of its own.
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
/// "node0:29500", "[fd00::1]:29500", "10.0.0.1"; `defaultPort` where none is named, nullopt: one must be. BadUsage,
/// with `what` ("--listen") in front.
Result<HostPort> parseHostPort(std::string_view text, std::string_view what, std::optional<int> defaultPort = {});
/// With brackets around an address of IPv6.
std::string toText(const HostPort& at);

/// True for "localhost", 127.x.x.x and ::1.
bool isLoopback(std::string_view address);

/// The numeric address that a socket of this host is bound to.
std::optional<std::string> addressOf(int socket);

/// The numeric address of the other end of a connection.
std::optional<std::string> peerOf(int socket);

/// The address of this host that packets to `host` leave from: the one that `host` can answer to. Where `host` is this
/// host's own name, that of a network rather than the loopback device's, if there is any. Nothing is sent; nullopt when
/// there is no way to it. A host that has no network but loopback answers 127.0.0.1.
std::optional<std::string> ownAddressTowards(const std::string& host);

/// Listens on the port of an address of this host (0: any free one, which `at.port` is then). Environment when the host
/// has no such address or the port is taken.
Result<UniqueFd> listenOn(HostPort& at);

/// Tries until it succeeds or the time is over: whoever listens may come later. The peer is given up (every read and
/// write fails) when it has acknowledged nothing for `kPeerGone`. Environment says what the last try found.
Result<UniqueFd> connectTo(const HostPort& at, std::chrono::milliseconds limit);
inline constexpr std::chrono::milliseconds kPeerGone{10'000};
/// From here on the peer is given up when it has acknowledged nothing of what was sent for so long.
void giveUpOnSilence(int socket, std::chrono::milliseconds limit);

}  // namespace cleave::protocol
