#include "launch/launcher.h"

#include "base/exhaustion.h"
#include "base/throttle.h"
#include "launch/child_process.h"
#include "launch/oom_watch.h"
#include "launch/rank_inbox.h"

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
#include <thread>

extern char** environ;

namespace cleave::launch {
namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr auto kLookPeriod = 200ms;  // interval between looks at a rank's control group
constexpr auto kTermGrace = 1s;
constexpr auto kStopLimit = 5s;
constexpr std::size_t kMaxStderrLine = 4096;

/// A bound, listening socket on the loopback address. Rank 0 receives it, so that no other process can use the port in
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

/// Worker processes get no credentials, and no variables in which another launcher described its ranks.
bool isKeptFromRanks(std::string_view name) {
  std::string upper(name);
  std::transform(upper.begin(), upper.end(), upper.begin(), [](unsigned char c) { return std::toupper(c); });
  for (std::string_view secret :
       {"TOKEN", "SECRET", "PASSWORD", "PASSWD", "API_KEY", "APIKEY", "ACCESS_KEY", "CREDENTIAL"}) {
    if (upper.find(secret) != std::string::npos) return true;
  }
  for (std::string_view other : {"TORCHELASTIC_", "SLURM_", "CLEAVE_EVENTS_TO"}) {
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

/// A rank's process and the unfinished parts of its lines.
struct RankProcess {
  ChildProcess process;
  OomWatch oom;
  Throttle looks{kLookPeriod};
  LineReader eventLines{protocol::kMaxLineBytes};
  LineReader errorLines{kMaxStderrLine};
};

class Run {
 public:
  Run(const LaunchRequest& request, const Observer& observer, const Progress& progress)
      : m_request(request), m_progress(progress), m_inbox(request.ranks, request.silence, observer) {}
  // No rank outlives this object, also after an exception of the observer.
  ~Run() { stopAll(); }
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  Result<RunOutcome> run();

 private:
  Result<void> startRanks();
  void waitForInput() const;
  void listen(int rank);
  void observeRanks();
  void reportUnended();
  void stopAll();
  bool anyRunning();

  const LaunchRequest& m_request;
  const Progress& m_progress;
  RankInbox m_inbox;
  std::vector<RankProcess> m_ranks;
};

Result<void> Run::startRanks() {
  CLEAVE_TRY(const ListenSocket socket, listenOnFreePort());
  m_ranks.reserve(m_request.ranks);
  for (int rank = 0; rank < m_request.ranks; ++rank) {
    ChildSpec spec;
    spec.program = m_request.rankProgram;
    if (!m_request.planFile.empty()) spec.arguments.push_back(m_request.planFile.string());
    spec.arguments.insert(spec.arguments.end(),
                          {"--backend", std::string(toText(m_request.backend)), "--events-fd",
                           std::to_string(kEventsFd), "--control-fd", std::to_string(kControlFd)});
    if (rank == 0) {
      spec.listenFd = socket.fd.get();
      spec.arguments.insert(spec.arguments.end(), {"--listen-fd", std::to_string(kListenFd)});
    }
    spec.arguments.insert(spec.arguments.end(), m_request.rankArguments.begin(), m_request.rankArguments.end());
    spec.environment = rankEnvironment(rank, m_request.ranks, socket.port);
    spec.group = m_ranks.empty() ? 0 : m_ranks.front().process.pid();
    CLEAVE_TRY(ChildProcess child, ChildProcess::start(spec));
    m_ranks.push_back(RankProcess{.process = std::move(child), .oom = OomWatch()});
    m_inbox.watch.start(rank, m_inbox.now());
    m_inbox.observe({rank, protocol::PhaseChange{protocol::Phase::Spawned, 0, 0}, {}});
  }
  return {};
}

void Run::waitForInput() const {
  std::vector<pollfd> fds;
  for (const RankProcess& rank : m_ranks) {
    for (const UniqueFd* fd : {&rank.process.events, &rank.process.error}) {
      if (fd->isOpen()) fds.push_back({fd->get(), POLLIN, 0});
    }
  }
  ::poll(fds.data(), fds.size(), static_cast<int>(kPollPeriod.count()));
}

void Run::listen(int rank) {
  RankProcess& from = m_ranks[static_cast<std::size_t>(rank)];
  std::vector<std::string> lines;
  if (from.process.events.isOpen() && !from.eventLines.read(from.process.events.get(), lines))
    from.process.events.reset();
  for (const std::string& line : lines) {
    if (auto message = m_inbox.decoded(rank, line)) m_inbox.accept(rank, *std::move(message));
  }
  bool hasRead = !lines.empty();
  lines.clear();
  if (from.process.error.isOpen() && !from.errorLines.read(from.process.error.get(), lines)) {
    from.process.error.reset();
    if (std::string rest = from.errorLines.extractRest(); !rest.empty()) lines.push_back(std::move(rest));
  }
  hasRead = hasRead || !lines.empty();
  for (std::string& line : lines) {
    m_inbox.observe({rank, std::nullopt, line});
    m_inbox.watch.addErrorLine(rank, std::move(line));
  }
  if (hasRead) m_inbox.watch.markRead(rank, m_inbox.now());
}

/// Reads the ranks' lines and judges the ranks. The kernel is asked first: everything that a rank wrote before it ended
/// is then in its pipes.
void Run::observeRanks() {
  for (std::size_t rank = 0; rank < m_ranks.size(); ++rank) {
    RankProcess& of = m_ranks[rank];
    ChildState child = of.process.poll();
    if (!child.exited && of.looks.isDue(Clock::now())) of.oom.look(of.process.pid());
    if (child.exited && child.signal == SIGKILL) child.outOfMemoryReason = of.oom.why();
    const auto askedAt = m_inbox.now();
    listen(static_cast<int>(rank));
    m_inbox.watch.judge(static_cast<int>(rank), child, askedAt, m_inbox.now());
  }
  m_inbox.reportSlowness();
}

void Run::reportUnended() {
  for (int rank = 0; rank < m_request.ranks; ++rank) {
    if (m_ranks[static_cast<std::size_t>(rank)].process.poll().exited) continue;
    m_inbox.observe({rank,
                     std::nullopt,
                     {},
                     fmt::format("Rank {} did not end within {:g} s of its result and was stopped.", rank,
                                 std::chrono::duration<double>(m_request.teardown).count())});
  }
}

bool Run::anyRunning() {
  return std::any_of(m_ranks.begin(), m_ranks.end(), [](RankProcess& r) { return !r.process.poll().exited; });
}

void Run::stopAll() {
  if (!anyRunning()) return;
  // The group may include processes that a rank started. The single kills reach a rank that left the group.
  const auto signalAll = [&](int signal) {
    if (!anyRunning()) return;
    ::kill(-m_ranks.front().process.pid(), signal);
    for (RankProcess& rank : m_ranks) rank.process.kill(signal);
  };
  const auto start = Clock::now();
  signalAll(SIGTERM);
  for (RankProcess& rank : m_ranks) rank.process.control.reset();
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
    if (!anyRunning() || m_inbox.watch.isSettled(m_inbox.now())) break;
    if (m_inbox.watch.isTeardownOver(m_inbox.now(), m_request.teardown)) {
      reportUnended();
      break;
    }
  }
  observeRanks();
  RunOutcome result = m_inbox.watch.outcome();
  stopAll();
  return result;
}

}  // namespace

Result<RunOutcome> launch(const LaunchRequest& request, const Observer& observer, const Progress& progress) {
  if (request.ranks < 1) return fail(ErrorCode::BadUsage, "The number of ranks is {}; use at least 1.", request.ranks);
  if (request.backend == Backend::Auto) return fail(ErrorCode::BadUsage, "Resolve the backend before launching ranks.");
  return Run(request, observer, progress).run();
}

}  // namespace cleave::launch
