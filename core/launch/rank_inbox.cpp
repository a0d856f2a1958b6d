#include "launch/rank_inbox.h"

namespace cleave::launch {

void RankInbox::observe(const RankEvent& event) {
  const auto start = std::chrono::steady_clock::now();
  m_observer(event);
  m_observing += std::chrono::steady_clock::now() - start;
}

std::optional<protocol::Message> RankInbox::decoded(int rank, const std::string& line) {
  auto message = protocol::decode(line);
  if (message) return *std::move(message);
  watch.addProtocolError(rank, message.error().message);
  return std::nullopt;
}

void RankInbox::accept(int rank, protocol::Message message) {
  watch.addMessage(rank, message);
  observe({rank, std::move(message), {}});
}

void RankInbox::reportSlowness() {
  if (const auto slow = watch.slowness(now())) observe({slow->rank, std::nullopt, {}, slow->text});
}

}  // namespace cleave::launch
