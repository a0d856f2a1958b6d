#pragma once
/// A listening socket on the loopback address. It never accepts or answers, and stays open.
#include <QtGlobal>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

namespace cleave::test {

struct LoopbackListener {
  int fd = ::socket(AF_INET, SOCK_STREAM, 0);
  int port = 0;
  LoopbackListener() {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* raw = reinterpret_cast<sockaddr*>(&address);
    if (::bind(fd, raw, size) != 0 || ::listen(fd, 64) != 0 || ::getsockname(fd, raw, &size) != 0) qFatal("no socket");
    port = ntohs(address.sin_port);
  }
};

}  // namespace cleave::test
