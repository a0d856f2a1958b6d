#include "launch/hearing.h"

namespace cleave::launch {

void Hearing::tell(const RankEvent& event) {
  const auto start = std::chrono::steady_clock::now();
  m_observer(event);
  m_observing += std::chrono::steady_clock::now() - start;
}

std::optional<protocol::Message> Hearing::decoded(int rank, const std::string& line) {
  auto message = protocol::decode(line);
  if (message) return *std::move(message);
  watch.hearNonsense(rank, message.error().message);
  return std::nullopt;
}

void Hearing::take(int rank, protocol::Message message) {
  watch.hear(rank, message);
  tell({rank, std::move(message), {}});
}

void Hearing::tellOfSlowness() {
  if (const auto slow = watch.slowness(now())) tell({slow->rank, std::nullopt, {}, slow->text});
}

}  // namespace cleave::launch
