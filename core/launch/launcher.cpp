#include "launch/launcher.h"

#include "base/exhaustion.h"
#include "launch/child_process.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <deque>
#include <thread>

extern char** environ;

namespace cleave::launch {
namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr auto kPollPeriod = 50ms;
// After the first sign of failure the other ranks are listened to for so long: a peer that only noticed the broken
// connection often reports before the kernel tells of the death that caused it.
constexpr auto kSettle = 300ms;
// Where every failure so far is that of a peer, the ranks that have not spoken get longer, so that the one all wait for
// is the one that is left.
constexpr auto kPeerSettle = 2s;
// A stopped process (SIGSTOP) keeps its connections open and would stall the others for ever.
constexpr auto kStoppedGrace = 1s;
// Reading LibTorch from a cold disk takes longer than any silence afterwards.
constexpr auto kStartGrace = 60s;
constexpr auto kTermGrace = 2s;
constexpr auto kStopLimit = 5s;
constexpr std::size_t kMaxStderrLine = 4096;
constexpr std::size_t kLastLines = 12;

/// A bound, listening socket on the loopback address: handed to rank 0, so that nobody else can take the port in
/// between.
struct ListenSocket {
  UniqueFd fd;
  int port = 0;
};

Result<ListenSocket> listenOnFreePort() {
  ListenSocket result;
  result.fd = UniqueFd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* raw = reinterpret_cast<sockaddr*>(&address);
  if (!result.fd.isOpen() || ::bind(result.fd.get(), raw, size) != 0 || ::listen(result.fd.get(), 1024) != 0 ||
      ::getsockname(result.fd.get(), raw, &size) != 0) {
    return fail(ErrorCode::Environment, "Cannot listen on 127.0.0.1: {}.", reasonInWords(errno));
  }
  result.port = ntohs(address.sin_port);
  return result;
}

/// Credentials stay out of workers; so does what another launcher said about ranks.
bool isKeptFromRanks(std::string_view name) {
  std::string upper(name);
  std::transform(upper.begin(), upper.end(), upper.begin(), [](unsigned char c) { return std::toupper(c); });
  for (std::string_view secret :
       {"TOKEN", "SECRET", "PASSWORD", "PASSWD", "API_KEY", "APIKEY", "ACCESS_KEY", "CREDENTIAL"}) {
    if (upper.find(secret) != std::string::npos) return true;
  }
  for (std::string_view other : {"TORCHELASTIC_", "SLURM_"}) {
    if (upper.starts_with(other)) return true;
  }
  for (std::string_view own : {"RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"}) {
    if (upper == own) return true;
  }
  return false;
}

int usableCores() {
  cpu_set_t set;
  if (::sched_getaffinity(0, sizeof set, &set) == 0) return std::max(1, CPU_COUNT(&set));
  return std::max(1u, std::thread::hardware_concurrency());
}

std::vector<std::string> rankEnvironment(int rank, int ranks, int port) {
  std::vector<std::string> result;
  bool threadsGiven = false;
  for (char** entry = environ; entry && *entry; ++entry) {
    const std::string_view text = *entry;
    const std::string_view name = text.substr(0, text.find('='));
    if (isKeptFromRanks(name)) continue;
    threadsGiven = threadsGiven || name == "OMP_NUM_THREADS";
    result.emplace_back(text);
  }
  result.push_back(fmt::format("RANK={}", rank));
  result.push_back(fmt::format("LOCAL_RANK={}", rank));
  result.push_back(fmt::format("WORLD_SIZE={}", ranks));
  result.push_back(fmt::format("LOCAL_WORLD_SIZE={}", ranks));
  result.emplace_back("MASTER_ADDR=127.0.0.1");
  result.push_back(fmt::format("MASTER_PORT={}", port));
  if (!threadsGiven) result.push_back(fmt::format("OMP_NUM_THREADS={}", std::max(1, usableCores() / ranks)));
  return result;
}

struct RankState {
  RankState(ChildProcess started, Clock::time_point now) : process(std::move(started)), lastHeard(now) {}
  ChildProcess process;
  LineReader eventLines{protocol::kMaxLineBytes};
  LineReader errorLines{kMaxStderrLine};
  std::deque<std::string> lastLines;
  std::optional<protocol::RankError> error;
  std::optional<protocol::RankResult> result;
  Clock::time_point lastHeard;
  std::optional<Clock::time_point> stoppedSince;
  bool hasSpoken = false;
  std::string protocolError;
};

class Run {
 public:
  Run(const LaunchRequest& request, const Observer& observer, const Progress& progress)
      : m_request(request), m_observer(observer), m_progress(progress) {}
  // Whatever ends this object, also an exception of the observer: no rank outlives it.
  ~Run() { stopAll(); }
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  Result<RunOutcome> run();

 private:
  Result<void> startRanks();
  void tell(const RankEvent& event);
  /// The clock that ranks are judged by: it stands still while the observer is busy.
  Clock::time_point now() const { return Clock::now() - m_observing; }
  void waitForInput() const;
  void listen(int rank);
  void handleLine(int rank, const std::string& line);
  void observeRanks();
  std::optional<std::string> whatFailed(RankState& rank, const ChildState& state, Clock::time_point readAt);
  void noteFailure(int rank, std::string what, ErrorCode code);
  std::optional<std::string> wantOf(const RankState& rank) const;
  bool hasFailedByItself(const RankExit& failure) const;
  std::vector<int> waitedFor() const;
  bool isSettled() const;
  RankExit firstFailure() const;
  std::string lastWords(const RankState& rank) const;
  RunOutcome outcome();
  void stopAll();
  bool anyRunning();

  const LaunchRequest& m_request;
  const Observer& m_observer;
  const Progress& m_progress;
  std::vector<RankState> m_ranks;
  std::vector<RankExit> m_failures;  ///< in the order they were seen, at most one a rank
  Clock::time_point m_firstFailureAt{};
  Clock::duration m_observing{};
};

Result<void> Run::startRanks() {
  CLEAVE_TRY(const ListenSocket socket, listenOnFreePort());
  m_ranks.reserve(m_request.ranks);
  for (int rank = 0; rank < m_request.ranks; ++rank) {
    ChildSpec spec;
    spec.program = m_request.rankProgram;
    spec.arguments = {m_request.planFile.string(),
                      "--backend",
                      std::string(toText(m_request.backend)),
                      "--events-fd",
                      std::to_string(kEventsFd),
                      "--control-fd",
                      std::to_string(kControlFd)};
    if (rank == 0) {
      spec.listenFd = socket.fd.get();
      spec.arguments.insert(spec.arguments.end(), {"--listen-fd", std::to_string(kListenFd)});
    }
    spec.arguments.insert(spec.arguments.end(), m_request.rankArguments.begin(), m_request.rankArguments.end());
    spec.environment = rankEnvironment(rank, m_request.ranks, socket.port);
    spec.group = m_ranks.empty() ? 0 : m_ranks.front().process.pid();
    CLEAVE_TRY(ChildProcess child, ChildProcess::start(spec));
    m_ranks.emplace_back(std::move(child), now());
    tell({rank, protocol::PhaseChange{protocol::Phase::Spawned, 0, 0}, {}});
  }
  return {};
}

void Run::tell(const RankEvent& event) {
  const auto start = Clock::now();
  m_observer(event);
  m_observing += Clock::now() - start;
}

void Run::waitForInput() const {
  std::vector<pollfd> fds;
  for (const RankState& rank : m_ranks) {
    for (const UniqueFd* fd : {&rank.process.events, &rank.process.error}) {
      if (fd->isOpen()) fds.push_back({fd->get(), POLLIN, 0});
    }
  }
  ::poll(fds.data(), fds.size(), static_cast<int>(kPollPeriod.count()));
}

void Run::handleLine(int rank, const std::string& line) {
  RankState& state = m_ranks[rank];
  auto message = protocol::decode(line);
  if (!message) {
    if (state.protocolError.empty()) state.protocolError = message.error().message;
    return;
  }
  if (const auto* error = std::get_if<protocol::RankError>(&*message)) state.error = *error;
  if (const auto* result = std::get_if<protocol::RankResult>(&*message)) state.result = *result;
  tell({rank, std::move(*message), {}});
}

void Run::listen(int rank) {
  RankState& state = m_ranks[rank];
  std::vector<std::string> lines;
  if (state.process.events.isOpen() && !state.eventLines.read(state.process.events.get(), lines))
    state.process.events.reset();
  for (const std::string& line : lines) handleLine(rank, line);
  state.hasSpoken = state.hasSpoken || !lines.empty();
  bool isHeard = !lines.empty();
  lines.clear();
  if (state.process.error.isOpen() && !state.errorLines.read(state.process.error.get(), lines)) {
    state.process.error.reset();
    if (std::string rest = state.errorLines.takeRest(); !rest.empty()) lines.push_back(std::move(rest));
  }
  isHeard = isHeard || !lines.empty();
  for (std::string& line : lines) {
    tell({rank, std::nullopt, line});
    state.lastLines.push_back(std::move(line));
    if (state.lastLines.size() > kLastLines) state.lastLines.pop_front();
  }
  if (isHeard) state.lastHeard = now();
}

/// `state` is what the kernel said, and `readAt` when, before the rank's pipes were read to their end.
std::optional<std::string> Run::whatFailed(RankState& rank, const ChildState& state, Clock::time_point readAt) {
  if (state.exited && state.signal != 0)
    return fmt::format("was killed by signal {} ({})", state.signal, strsignal(state.signal));
  if (!rank.protocolError.empty()) return "broke the protocol";
  if (state.exited && state.code != 0) return fmt::format("ended with code {}", state.code);
  if (state.exited) return rank.result ? std::nullopt : std::optional<std::string>("ended without a result");
  if (rank.error) return "reported an error";
  if (state.stopped && !rank.stoppedSince) rank.stoppedSince = readAt;
  if (!state.stopped) rank.stoppedSince.reset();
  if (rank.stoppedSince && readAt - *rank.stoppedSince > kStoppedGrace) {
    return fmt::format("was stopped by signal {} ({})", state.signal, strsignal(state.signal));
  }
  const auto silence = std::chrono::milliseconds(m_request.silenceMs);
  const auto limit = rank.hasSpoken ? silence : std::max<std::chrono::milliseconds>(silence, kStartGrace);
  if (readAt - rank.lastHeard > limit) {
    return fmt::format("sent nothing for {:g} s", std::chrono::duration<double>(limit).count());
  }
  return std::nullopt;
}

void Run::noteFailure(int rank, std::string what, ErrorCode code) {
  const auto known =
      std::find_if(m_failures.begin(), m_failures.end(), [&](const RankExit& e) { return e.rank == rank; });
  if (known != m_failures.end()) {
    known->what = std::move(what);  // "reported an error" becomes "ended with code 3"
    known->code = code;
    return;
  }
  if (m_failures.empty()) m_firstFailureAt = now();
  m_failures.push_back({rank, true, code, std::move(what), {}});
}

/// Reads what the ranks have said and judges them by it. The kernel is asked first: whatever a rank wrote before it
/// ended lies in its pipes then, however long ago that was.
void Run::observeRanks() {
  for (std::size_t rank = 0; rank < m_ranks.size(); ++rank) {
    RankState& state = m_ranks[rank];
    const ChildState child = state.process.poll();
    const auto readAt = now();
    listen(static_cast<int>(rank));
    auto what = whatFailed(state, child, readAt);
    if (!what) continue;
    ErrorCode code = child.exited ? protocol::errorCodeOf(child.code) : ErrorCode::RankFailed;
    if (wantOf(state)) code = ErrorCode::Environment;
    if (state.error) code = state.error->code;
    noteFailure(static_cast<int>(rank), std::move(*what), code);
  }
}

/// What a rank lacked that could not say so itself: before its main() the loader and LibTorch find neither room nor
/// descriptors.
std::optional<std::string> Run::wantOf(const RankState& rank) const {
  for (const std::string& line : rank.lastLines) {
    if (auto want = exhaustionQuotedIn(line); want && !rank.error) return want;
  }
  return std::nullopt;
}

bool Run::hasFailedByItself(const RankExit& failure) const {
  const auto& error = m_ranks[static_cast<std::size_t>(failure.rank)].error;
  return !error || !error->peerFailed;
}

/// Ranks that have neither failed nor come to a result.
std::vector<int> Run::waitedFor() const {
  std::vector<int> ranks;
  for (int rank = 0; rank < static_cast<int>(m_ranks.size()); ++rank) {
    const bool hasFailed =
        std::any_of(m_failures.begin(), m_failures.end(), [&](const RankExit& e) { return e.rank == rank; });
    if (!hasFailed && !m_ranks[static_cast<std::size_t>(rank)].result) ranks.push_back(rank);
  }
  return ranks;
}

bool Run::isSettled() const {
  if (m_failures.empty()) return false;
  const bool isAnyToBlame =
      std::any_of(m_failures.begin(), m_failures.end(), [&](const RankExit& e) { return hasFailedByItself(e); });
  const auto limit = isAnyToBlame || waitedFor().size() <= 1 ? std::chrono::milliseconds(kSettle)
                                                             : std::chrono::milliseconds(kPeerSettle);
  return now() - m_firstFailureAt > limit;
}

std::string Run::lastWords(const RankState& rank) const {
  if (rank.error) return rank.error->message;
  if (!rank.protocolError.empty()) return rank.protocolError;
  std::string text;
  for (const std::string& line : rank.lastLines) text += (text.empty() ? "" : "\n") + line;
  if (const auto want = wantOf(rank)) text += fmt::format("\nThat is, {}.", *want);
  return text;
}

RunOutcome Run::outcome() {
  RunOutcome result;
  for (RankState& rank : m_ranks) result.results.push_back(rank.result);
  result.succeeded = m_failures.empty();
  if (!result.succeeded) result.firstFailure = firstFailure();
  return result;
}

/// A rank that failed by itself goes before one that only lost its peer; where all did, before them goes the one that
/// they waited for.
RankExit Run::firstFailure() const {
  const auto own =
      std::find_if(m_failures.begin(), m_failures.end(), [&](const RankExit& e) { return hasFailedByItself(e); });
  RankExit first = own == m_failures.end() ? m_failures.front() : *own;
  const std::vector<int> silent = waitedFor();
  if (own == m_failures.end() && !silent.empty()) {
    std::string complaint = lastWords(m_ranks[static_cast<std::size_t>(first.rank)]);
    if (complaint.ends_with('.')) complaint.pop_back();
    first = {silent.front(),
             true,
             ErrorCode::RankFailed,
             fmt::format("did not answer rank {}, which gave up: {}", first.rank, complaint),
             {}};
  }
  first.lastWords = lastWords(m_ranks[static_cast<std::size_t>(first.rank)]);
  return first;
}

bool Run::anyRunning() {
  return std::any_of(m_ranks.begin(), m_ranks.end(), [](RankState& r) { return !r.process.poll().exited; });
}

void Run::stopAll() {
  if (!anyRunning()) return;
  // The group may hold what a rank started; the single kills reach a rank that left the group.
  const auto signalAll = [&](int signal) {
    if (!anyRunning()) return;
    ::kill(-m_ranks.front().process.pid(), signal);
    for (RankState& rank : m_ranks) rank.process.kill(signal);
  };
  const auto start = Clock::now();
  signalAll(SIGTERM);
  for (RankState& rank : m_ranks) rank.process.control.reset();
  while (anyRunning() && Clock::now() - start < kTermGrace) std::this_thread::sleep_for(10ms);
  signalAll(SIGKILL);
  while (anyRunning() && Clock::now() - start < kStopLimit) std::this_thread::sleep_for(10ms);
}

Result<RunOutcome> Run::run() {
  CLEAVE_TRY_VOID(startRanks());
  while (true) {
    if (m_progress.cancelled()) {
      stopAll();
      return m_progress.cancelledError("the ranks ran");
    }
    waitForInput();
    observeRanks();
    if (!anyRunning() || isSettled()) break;
  }
  observeRanks();
  RunOutcome result = outcome();
  stopAll();
  return result;
}

}  // namespace

Result<RunOutcome> launch(const LaunchRequest& request, const Observer& observer, const Progress& progress) {
  if (request.ranks < 1) return fail(ErrorCode::BadUsage, "A run wants at least one rank, not {}.", request.ranks);
  if (request.backend == Backend::Auto) return fail(ErrorCode::BadUsage, "Resolve the backend before launching ranks.");
  return Run(request, observer, progress).run();
}

}  // namespace cleave::launch
