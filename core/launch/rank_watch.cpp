#include "launch/rank_watch.h"

#include "base/exhaustion.h"
#include "base/quantities.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>

namespace cleave::launch {
namespace {

using namespace std::chrono_literals;

// After the first sign of failure the other ranks are read for this long. A peer that only noticed the broken
// connection often reports before the kernel reports the death that caused it.
constexpr std::chrono::milliseconds kSettle = 300ms;
// If every failure so far was caused by a peer, the ranks that are still waited for get longer: a rank that reports its
// own error late is not blamed for silence.
constexpr std::chrono::milliseconds kPeerSettle = 2s;
// A stopped process (SIGSTOP) keeps its connections open and would block the others forever.
constexpr auto kStoppedGrace = 1s;
constexpr std::size_t kLastLines = 12;

/// The resource that a rank ran out of before main(), where it cannot report it: the loader and LibTorch find no memory
/// or descriptors.
std::optional<std::string> exhaustionIn(const std::deque<std::string>& lines) {
  for (const std::string& line : lines) {
    if (auto want = exhaustionQuotedIn(line)) return want;
  }
  return std::nullopt;
}

/// "rank 3", "ranks 1, 2 and 3"
std::string namesOf(const std::vector<int>& ranks) {
  const std::size_t last = ranks.size() - 1;
  if (last == 0) return fmt::format("rank {}", ranks.front());
  return fmt::format("ranks {} and {}",
                     fmt::join(ranks.begin(), ranks.begin() + static_cast<std::ptrdiff_t>(last), ", "), ranks[last]);
}

}  // namespace

RankWatch::RankWatch(int ranks, std::chrono::milliseconds silence, std::chrono::milliseconds startGrace)
    : m_silence(silence), m_startGrace(startGrace), m_ranks(static_cast<std::size_t>(ranks)) {}

void RankWatch::start(int rank, Time now, std::string host) {
  at(rank).lastReadAt = now;
  at(rank).host = std::move(host);
}

void RankWatch::addMessage(int rank, const protocol::Message& message) {
  at(rank).hasSentMessage = true;
  if (const auto* error = std::get_if<protocol::RankError>(&message)) at(rank).error = *error;
  if (const auto* result = std::get_if<protocol::RankResult>(&message)) at(rank).result = *result;
  if (const auto* phase = std::get_if<protocol::PhaseChange>(&message)) {
    if (std::exchange(at(rank).phase, phase->phase) != phase->phase) at(rank).beats.clear();
  }
  if (const auto* sample = std::get_if<protocol::MemorySample>(&message)) at(rank).memory = *sample;
  if (const auto* beat = std::get_if<protocol::Heartbeat>(&message))
    at(rank).waited = std::chrono::microseconds(beat->waitedUs);
}

void RankWatch::addProtocolError(int rank, std::string why) {
  at(rank).hasSentMessage = true;
  if (at(rank).protocolError.empty()) at(rank).protocolError = std::move(why);
}

void RankWatch::addErrorLine(int rank, std::string line) {
  auto& lines = at(rank).lastLines;
  lines.push_back(std::move(line));
  if (lines.size() > kLastLines) lines.pop_front();
}

void RankWatch::markRead(int rank, Time now) {
  if (at(rank).result && at(rank).resultAt == Time()) at(rank).resultAt = now;
  at(rank).lastReadAt = now;
  auto& beats = at(rank).beats;
  if (const auto waited = std::exchange(at(rank).waited, std::nullopt)) beats.push_back({now, *waited});
  while (beats.size() > 2 && now - beats[1].at >= kSlow) beats.pop_front();
}

/// "was killed by the kernel ..., and its last report was 58 MiB, 40 MiB of parameters and ..."
std::string RankWatch::ofMemory(const Rank& rank, const ChildState& state) const {
  std::string text =
      fmt::format("was killed by the kernel for lack of memory (signal {}): {}", state.signal, state.outOfMemoryReason);
  if (rank.memory.rss == 0) return text;
  return text + fmt::format(", and its last report was {}, {} of parameters and {} of activations",
                            bytesText(rank.memory.rss), bytesText(rank.memory.weights),
                            bytesText(rank.memory.activations));
}

std::optional<std::string> RankWatch::whatFailed(Rank& rank, const ChildState& state, Time askedAt) const {
  if (!state.outOfMemoryReason.empty()) return ofMemory(rank, state);
  if (state.exited && state.signal != 0)
    return fmt::format("was killed by signal {} ({})", state.signal, strsignal(state.signal));
  if (!rank.protocolError.empty()) return "broke the protocol";
  if (state.exited && state.code != 0) return fmt::format("ended with code {}", state.code);
  if (state.exited) return rank.result ? std::nullopt : std::optional<std::string>("ended without a result");
  if (rank.error) return "reported an error";
  if (rank.result) return std::nullopt;
  if (state.disconnected) return "ended without a result: its connection was closed";
  if (state.stopped && !rank.stoppedSince) rank.stoppedSince = askedAt;
  if (!state.stopped) rank.stoppedSince.reset();
  if (rank.stoppedSince && askedAt - *rank.stoppedSince > kStoppedGrace) {
    return fmt::format("was stopped by signal {} ({})", state.signal, strsignal(state.signal));
  }
  const auto limit = rank.hasSentMessage ? m_silence : std::max(m_silence, m_startGrace);
  if (askedAt - rank.lastReadAt > limit) {
    rank.isSilent = !state.awaited;
    return fmt::format("{} {:g} s", state.awaited ? "has not connected within" : "sent nothing for",
                       std::chrono::duration<double>(limit).count());
  }
  return std::nullopt;
}

RankExit& RankWatch::failureOf(int rank, Time now) {
  const auto known = std::ranges::find(m_failures, rank, &RankExit::rank);
  if (known != m_failures.end()) return *known;
  if (m_failures.empty()) m_firstFailureAt = now;
  return m_failures.emplace_back(RankExit{.rank = rank, .failed = true, .seen = now});
}

void RankWatch::judge(int rank, const ChildState& state, Time askedAt, Time now) {
  auto what = whatFailed(at(rank), state, askedAt);
  if (!what) return;
  ErrorCode code = state.exited ? protocol::errorCodeOf(state.code) : ErrorCode::RankFailed;
  if (at(rank).error)
    code = at(rank).error->code;
  else if (exhaustionIn(at(rank).lastLines) || !state.outOfMemoryReason.empty())
    code = ErrorCode::Environment;
  RankExit& failure = failureOf(rank, now);
  failure.what = *std::move(what);  // "reported an error" becomes "ended with code 3"
  failure.code = code;
  failure.isOutOfMemory = !state.outOfMemoryReason.empty();
}

bool RankWatch::hasFailedByItself(const RankExit& failure) const {
  const auto& error = at(failure.rank).error;
  return !error || !error->peerFailed;
}

/// Ranks that have neither failed nor sent a result.
std::vector<int> RankWatch::waitedFor() const {
  std::vector<int> ranks;
  for (int rank = 0; rank < static_cast<int>(m_ranks.size()); ++rank) {
    const bool hasFailed = std::ranges::find(m_failures, rank, &RankExit::rank) != m_failures.end();
    if (!hasFailed && !at(rank).result) ranks.push_back(rank);
  }
  return ranks;
}

bool RankWatch::isTeardownOver(Time now, std::chrono::milliseconds teardown) const {
  return m_failures.empty() && std::ranges::all_of(m_ranks, [&](const Rank& rank) {
           return rank.result && rank.resultAt != Time() && now - rank.resultAt > teardown;
         });
}

bool RankWatch::isSettled(Time now) const {
  if (m_failures.empty()) return false;
  const bool isAnyToBlame = std::ranges::any_of(m_failures, [&](const RankExit& e) { return hasFailedByItself(e); });
  return now - m_firstFailureAt > (isAnyToBlame || waitedFor().empty() ? kSettle : kPeerSettle);
}

std::string RankWatch::lastMessage(const Rank& rank) {
  if (rank.error) return rank.error->message;
  if (!rank.protocolError.empty()) return rank.protocolError;
  std::string text;
  for (const std::string& line : rank.lastLines) text += (text.empty() ? "" : "\n") + line;
  if (const auto want = exhaustionIn(rank.lastLines)) text += fmt::format("\nThe cause: {}.", *want);
  return text;
}

RunOutcome RankWatch::outcome() const {
  RunOutcome result;
  for (const Rank& rank : m_ranks) result.results.push_back(rank.result);
  result.succeeded = m_failures.empty();
  if (!result.succeeded) result.firstFailure = firstFailure();
  return result;
}

/// A rank with its own failure comes before one that only lost a peer. If all only lost a peer, the rank that they
/// waited for comes first.
RankExit RankWatch::firstFailure() const {
  const auto own = std::ranges::find_if(m_failures, [&](const RankExit& e) { return hasFailedByItself(e); });
  RankExit first = own == m_failures.end() ? m_failures.front() : *own;
  const std::vector<int> silent = waitedFor();
  if (own == m_failures.end() && !silent.empty()) {
    std::string complaint = lastMessage(at(first.rank));
    if (complaint.ends_with('.')) complaint.pop_back();
    first = {.rank = silent.front(),
             .failed = true,
             .code = ErrorCode::RankFailed,
             .what = fmt::format("did not answer rank {}, which gave up: {}", first.rank, complaint),
             .seen = first.seen};
  }
  first.what += whySilent(first.rank);
  first.lastMessage = lastMessage(at(first.rank));
  return first;
}

/// Possible causes. Ranks of one host that fall silent together have a common cause.
std::string RankWatch::whySilent(int silent) const {
  const Rank& rank = at(silent);
  if (!rank.isSilent || rank.host.empty()) return {};
  std::vector<int> alike;
  int there = 0;
  for (int other = 0; other < std::ssize(m_ranks); ++other) {
    if (other == silent || at(other).host != rank.host || at(other).result) continue;
    ++there;
    if (at(other).lastReadAt - rank.lastReadAt <= 3 * protocol::kHeartbeatPeriod) alike.push_back(other);
  }
  if (there == 0) return fmt::format(": it was stopped, or {} or its network is down", rank.host);
  if (std::ssize(alike) == there)
    return fmt::format(", and neither did {}: {} or its network is down", namesOf(alike), rank.host);
  return fmt::format(" while others on {} did: it was stopped, or its host is overloaded", rank.host);
}

/// Share of the last kSlow that the rank spent in collectives, 0 to 1. nullopt if it does not run the program or is
/// silent, which is not the same as slow.
std::optional<double> RankWatch::waitingShare(const Rank& rank, Time now) const {
  if (rank.phase != protocol::Phase::Running || rank.result || rank.error || rank.stoppedSince) return std::nullopt;
  if (rank.beats.size() < 2 || now - rank.beats.back().at > 5 * protocol::kHeartbeatPeriod) return std::nullopt;
  const Beat &first = rank.beats.front(), &last = rank.beats.back();
  if (last.at - first.at < kSlow * 2 / 3) return std::nullopt;
  return std::chrono::duration<double>(last.waited - first.waited) / (last.at - first.at);
}

std::optional<RankWatch::Notice> RankWatch::slowness(Time now) {
  constexpr double kMuch = 0.6, kDifference = 0.35;
  constexpr int kMoreSeldom = 4;
  std::vector<double> shares;
  for (const Rank& rank : m_ranks) {
    const auto share = waitingShare(rank, now);
    if (!share) return std::nullopt;
    shares.push_back(*share);
  }
  if (shares.size() == 1) return std::nullopt;
  const auto slowest = std::ranges::min_element(shares);
  const double own = std::exchange(*slowest, 2);
  const double others = std::ranges::min(shares);
  if (others < kMuch || others - own < kDifference) return std::nullopt;
  const int slow = static_cast<int>(slowest - shares.begin());
  if (m_slow == slow && now - m_slowReportedAt < m_untilNext) return std::nullopt;
  m_untilNext = m_slow == slow ? m_untilNext * kMoreSeldom : kSlow * kMoreSeldom;
  m_slow = slow;
  m_slowReportedAt = now;
  return Notice{slow,
                fmt::format("Rank {} keeps {} waiting: {} in collectives for {:.0f} % of the last {:g} s, this rank "
                            "for {:.0f} %.",
                            slow, shares.size() == 2 ? "the other" : "the others",
                            shares.size() == 2 ? "that rank was" : "each of them was", 100 * others,
                            std::chrono::duration<double>(kSlow).count(), 100 * own)};
}

}  // namespace cleave::launch
