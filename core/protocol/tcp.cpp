#include "protocol/tcp.h"

#include "base/exhaustion.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <memory>
#include <thread>

namespace cleave::protocol {
namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr auto kTryAgain = 200ms;
constexpr int kBacklog = 1024;
/// Addresses for documentation (RFC 5737, RFC 3849): no host has them, so a packet to one would take the default route.
constexpr std::array<const char*, 2> kElsewhere{"192.0.2.1", "2001:db8::1"};

struct FreeAddresses {
  void operator()(addrinfo* list) const { ::freeaddrinfo(list); }
};
using Addresses = std::unique_ptr<addrinfo, FreeAddresses>;

Result<Addresses> lookUp(const HostPort& at, int type) {
  addrinfo wanted{};
  wanted.ai_socktype = type;
  addrinfo* found = nullptr;
  const int reason = ::getaddrinfo(at.host.c_str(), std::to_string(at.port).c_str(), &wanted, &found);
  if (reason != 0) {
    return fail(ErrorCode::Environment, "This machine cannot resolve the host {}: {}. Check the name.", at.host,
                reason == EAI_SYSTEM ? reasonInWords(errno) : ::gai_strerror(reason));
  }
  return Addresses(found);
}

/// `nameOf`: getsockname or getpeername.
std::optional<std::string> numericEnd(int socket, int (*nameOf)(int, sockaddr*, socklen_t*)) {
  sockaddr_storage end{};
  socklen_t size = sizeof end;
  auto* address = reinterpret_cast<sockaddr*>(&end);
  if (nameOf(socket, address, &size) != 0) return std::nullopt;
  std::array<char, NI_MAXHOST> text{};
  if (::getnameinfo(address, size, text.data(), text.size(), nullptr, 0, NI_NUMERICHOST) != 0) return std::nullopt;
  return text.data();
}

/// Connecting a datagram socket sends nothing, but the system selects the route.
std::optional<std::string> addressOfTheWayTo(const std::string& host) {
  const auto addresses = lookUp({host, 9}, SOCK_DGRAM);
  if (!addresses) return std::nullopt;
  for (const addrinfo* to = addresses->get(); to; to = to->ai_next) {
    const UniqueFd fd(::socket(to->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    if (fd.isOpen() && ::connect(fd.get(), to->ai_addr, to->ai_addrlen) == 0) return addressOf(fd.get());
  }
  return std::nullopt;
}

template <class T>
void set(int fd, int level, int option, T value) {
  ::setsockopt(fd, level, option, &value, sizeof value);
}

/// A silent network is detected by missing acknowledgements, and by keepalive probes when nothing is sent.
void giveUpOnSilentPeers(int fd) {
  constexpr int kIdleS = 4, kBetweenS = 2, kProbes = 3;  // kPeerGone in total
  set(fd, IPPROTO_TCP, TCP_NODELAY, 1);
  set(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
  set(fd, IPPROTO_TCP, TCP_KEEPIDLE, kIdleS);
  set(fd, IPPROTO_TCP, TCP_KEEPINTVL, kBetweenS);
  set(fd, IPPROTO_TCP, TCP_KEEPCNT, kProbes);
  giveUpOnSilence(fd, kPeerGone);
}

void setBlocking(int fd) { ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) & ~O_NONBLOCK); }

/// One attempt; returns 0 or an errno.
int tryToConnect(const addrinfo& to, std::chrono::milliseconds limit, UniqueFd& connected) {
  UniqueFd fd(::socket(to.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.isOpen()) return errno;
  if (::connect(fd.get(), to.ai_addr, to.ai_addrlen) != 0 && errno != EINPROGRESS) return errno;
  pollfd waiting{fd.get(), POLLOUT, 0};
  int ready = 0;
  while ((ready = ::poll(&waiting, 1, static_cast<int>(limit.count()))) < 0 && errno == EINTR) continue;
  if (ready <= 0) return ready == 0 ? ETIMEDOUT : errno;
  int reason = 0;
  socklen_t size = sizeof reason;
  ::getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &reason, &size);
  if (reason != 0) return reason;
  giveUpOnSilentPeers(fd.get());
  setBlocking(fd.get());
  connected = std::move(fd);
  return 0;
}

Result<int> portIn(std::string_view text, std::string_view whole, std::string_view what) {
  int port = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (error != std::errc() || stop != text.data() + text.size() || port < 1 || port > 65535)
    return fail(ErrorCode::BadUsage, "{} is {}: the port must be an integer in 1..65535.", what, whole);
  return port;
}

}  // namespace

void giveUpOnSilence(int socket, std::chrono::milliseconds limit) {
  set(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, static_cast<unsigned>(limit.count()));
}

Result<HostPort> parseHostPort(std::string_view text, std::string_view what, std::optional<int> defaultPort) {
  HostPort at{{}, defaultPort.value_or(0)};
  std::string_view rest = text;
  if (rest.starts_with('[')) {
    const auto end = rest.find(']');
    at.host = end == std::string_view::npos ? "" : rest.substr(1, end - 1);
    rest.remove_prefix(std::min(end, rest.size() - 1) + 1);
  } else {
    const bool isIpv6 = std::ranges::count(rest, ':') > 1;
    at.host = rest.substr(0, isIpv6 ? rest.size() : rest.find(':'));
    rest.remove_prefix(at.host.size());
  }
  const bool isNumber = at.host.find_first_not_of("0123456789") == std::string::npos;
  const bool isClean = at.host.find_first_of(" \t\r\n'\"\\$`;&|<>()@/") == std::string::npos;
  if (at.host.empty() || isNumber || !isClean || (rest.empty() ? !defaultPort : rest.front() != ':'))
    return fail(ErrorCode::BadUsage, "{} is \"{}\". Write HOST:PORT, or [ADDRESS]:PORT for IPv6.", what, text);
  if (!rest.empty()) {
    CLEAVE_TRY(at.port, portIn(rest.substr(1), text, what));
  }
  return at;
}

std::string toText(const HostPort& at) {
  return at.host.find(':') == std::string::npos ? fmt::format("{}:{}", at.host, at.port)
                                                : fmt::format("[{}]:{}", at.host, at.port);
}

bool isLoopback(std::string_view address) {
  return address == "localhost" || address == "::1" || address.starts_with("127.");
}

std::optional<std::string> addressOf(int socket) { return numericEnd(socket, ::getsockname); }

std::optional<std::string> peerOf(int socket) { return numericEnd(socket, ::getpeername); }

std::optional<std::string> ownAddressTowards(const std::string& host) {
  auto own = addressOfTheWayTo(host);
  if (!own || !isLoopback(*own) || isLoopback(host)) return own;
  // Debian maps a host's own name to a loopback address, which other hosts cannot reach.
  for (const char* elsewhere : kElsewhere) {
    if (auto other = addressOfTheWayTo(elsewhere)) return other;
  }
  return own;
}

Result<UniqueFd> listenOn(HostPort& at) {
  CLEAVE_TRY(const Addresses addresses, lookUp(at, SOCK_STREAM));
  int reason = 0;
  for (const addrinfo* to = addresses.get(); to; to = to->ai_next) {
    UniqueFd fd(::socket(to->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    set(fd.get(), SOL_SOCKET, SO_REUSEADDR, 1);  // connections of an earlier run may linger
    sockaddr_storage own{};
    socklen_t size = sizeof own;
    if (fd.isOpen() && ::bind(fd.get(), to->ai_addr, to->ai_addrlen) == 0 && ::listen(fd.get(), kBacklog) == 0 &&
        ::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&own), &size) == 0) {
      // The port is at the same offset in the addresses of both families.
      at.port = ntohs(reinterpret_cast<sockaddr_in*>(&own)->sin_port);
      return fd;
    }
    reason = errno;
  }
  return fail(ErrorCode::Environment, "Cannot listen on {}: {}.", toText(at), reasonInWords(reason));
}

Result<UniqueFd> connectTo(const HostPort& at, std::chrono::milliseconds limit) {
  const auto deadline = Clock::now() + limit;
  int reason = ETIMEDOUT;
  CLEAVE_TRY(const Addresses addresses, lookUp(at, SOCK_STREAM));
  while (true) {
    for (const addrinfo* to = addresses.get(); to; to = to->ai_next) {
      const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
      if (left.count() <= 0) break;
      UniqueFd connected;
      reason = tryToConnect(*to, left, connected);
      if (reason == 0) return connected;
    }
    if (Clock::now() + kTryAgain > deadline) break;
    std::this_thread::sleep_for(kTryAgain);
  }
  return fail(ErrorCode::Environment, "No answer from {}: {}.", toText(at), reasonInWords(reason));
}

}  // namespace cleave::protocol
