#include "launch/listener.h"

#include "base/exhaustion.h"
#include "base/output_file.h"
#include "base/quantities.h"
#include "launch/rank_inbox.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <list>
#include <thread>

namespace cleave::launch {
namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr auto kFirstLineLimit = 5s;
constexpr std::size_t kMaxPending = 64;
constexpr int kMaxNotices = 32;

/// A connection that has not sent its join line yet.
struct PendingConnection {
  UniqueFd fd;
  Clock::time_point since;
  LineReader lines{protocol::kMaxJoinBytes};
};

/// The file that a rank sends. Wrong parts are the rank's error; a full disk is ours.
class IncomingFile {
 public:
  /// Appends a part. Returns an error sentence if the part is wrong; empty: it is right.
  Result<std::string> append(const protocol::OutputPart& part, const fs::path& to, std::int64_t maxBytes) {
    const std::int64_t bytes = std::ssize(part.bytes.data);
    if (m_isWhole) return std::string("It sent more than one output file.");
    if (part.total < 0 || part.total > maxBytes)
      return fmt::format("It announced an output file of {}, but the plan's outputs have at most {}.",
                         counted(part.total, "byte"), maxBytes);
    if (m_file && part.total != m_total) return std::string("It sent parts of files of different sizes.");
    if (bytes > part.total - m_received) return std::string("It sent more bytes than its output file has.");
    if (!m_file) {
      CLEAVE_TRY(m_file, OutputFile::open(to));
      m_total = part.total;
    }
    CLEAVE_TRY_VOID(m_file->write(std::string_view(part.bytes.data)));
    m_received += bytes;
    m_isWhole = m_received == m_total;
    if (m_isWhole) CLEAVE_TRY_VOID(m_file->finish());
    return std::string();
  }
  bool isCutOff() const { return m_file && !m_isWhole; }

 private:
  std::optional<OutputFile> m_file;
  std::int64_t m_total = 0, m_received = 0;
  bool m_isWhole = false;
};

/// A rank that has joined, or is awaited.
struct RemoteRank {
  UniqueFd fd;
  ChildState state{.awaited = true};
  LineReader lines{protocol::kMaxLineBytes};
  IncomingFile outputs;
};

class RemoteRun {
 public:
  RemoteRun(int socket, const std::string& token, const FollowRequest& request, const Observer& observer,
            const Progress& progress)
      : m_socket(socket),
        m_token(token),
        m_request(request),
        m_progress(progress),
        m_inbox(request.ranks, request.silence, observer, std::chrono::milliseconds(request.joinMs)),
        m_remoteRanks(static_cast<std::size_t>(request.ranks)) {}

  Result<RunOutcome> run();

 private:
  void waitForInput() const;
  void acceptAll();
  void readPending();
  void admit(PendingConnection& pending, const std::string& line);
  std::string whyNot(const protocol::Join& join) const;
  Result<void> readRank(int rank);
  Result<void> handle(int rank, const std::string& line);
  Result<void> readRanks();
  bool hasEnded() const;
  void note(const std::string& sentence);

  int m_socket;
  const std::string& m_token;
  const FollowRequest& m_request;
  const Progress& m_progress;
  RankInbox m_inbox;
  std::list<PendingConnection> m_pending;  ///< oldest first
  std::vector<RemoteRank> m_remoteRanks;   ///< by rank
  int m_joined = 0, m_notices = 0;
};

void RemoteRun::note(const std::string& sentence) {
  if (!m_request.notice || ++m_notices > kMaxNotices) return;
  m_request.notice(m_notices < kMaxNotices ? sentence : "Further rejected connections are not reported.");
}

void RemoteRun::waitForInput() const {
  std::vector<pollfd> fds{{m_socket, POLLIN, 0}};
  for (const PendingConnection& pending : m_pending) fds.push_back({pending.fd.get(), POLLIN, 0});
  for (const RemoteRank& remote : m_remoteRanks) {
    if (remote.fd.isOpen()) fds.push_back({remote.fd.get(), POLLIN, 0});
  }
  ::poll(fds.data(), fds.size(), static_cast<int>(kPollPeriod.count()));
}

void RemoteRun::acceptAll() {
  for (std::size_t round = 0; round < kMaxPending; ++round) {
    UniqueFd fd(::accept4(m_socket, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!fd.isOpen()) {
      // Pending connections would otherwise wake the poll at once, again and again.
      if (errno == EMFILE || errno == ENFILE || errno == ENOMEM) std::this_thread::sleep_for(kPollPeriod);
      return;
    }
    if (m_pending.size() == kMaxPending) m_pending.pop_front();
    m_pending.push_back({std::move(fd), Clock::now()});
  }
}

void RemoteRun::readPending() {
  for (auto at = m_pending.begin(); at != m_pending.end();) {
    std::vector<std::string> lines;
    const bool isOpen = at->lines.read(at->fd.get(), lines);
    // A rank sends nothing more before the answer.
    if (lines.size() == 1) admit(*at, lines.front());
    const bool isStillPending = lines.empty() && isOpen && Clock::now() - at->since < kFirstLineLimit;
    at = isStillPending ? std::next(at) : m_pending.erase(at);
  }
}

/// A rank without the token learns nothing about the run.
std::string RemoteRun::whyNot(const protocol::Join& join) const {
  if (!protocol::isSameToken(join.token, m_token))
    return "its token (CLEAVE_RUN_TOKEN) belongs to another run. Start the ranks with the commands that this run "
           "printed.";
  if (join.version != protocol::kProtocolVersion) {
    return fmt::format(
        "it uses protocol version {}, but this program uses version {}. Use cleave-rank from the same "
        "build.",
        join.version, protocol::kProtocolVersion);
  }
  if (join.ranks != m_request.ranks)
    return fmt::format("it belongs to a run of {}, but the plan is for {}.", counted(join.ranks, "rank"),
                       m_request.ranks);
  if (join.rank < 0 || join.rank >= m_request.ranks)
    return fmt::format("rank {} does not exist in a run of {} ranks.", join.rank, m_request.ranks);
  if (!m_remoteRanks[static_cast<std::size_t>(join.rank)].state.awaited)
    return "a rank with that number has already "
           "joined.";
  return {};
}

void RemoteRun::admit(PendingConnection& pending, const std::string& line) {
  const auto join = protocol::decodeJoin(line);
  if (!join) return note("A connection that is not a rank was closed.");
  const std::string why = whyNot(*join);
  const std::string answer = protocol::encode(protocol::Answer{!m_request.output.empty(), m_request.silence, why});
  const bool isSent = ::send(pending.fd.get(), answer.data(), answer.size(), MSG_NOSIGNAL) == std::ssize(answer);
  if (!why.empty()) return note(fmt::format("Rank {} was rejected: {}", join->rank, why));
  if (!isSent) return;
  if (m_joined++ == 0) {
    for (int rank = 0; rank < m_request.ranks; ++rank) m_inbox.watch.start(rank, m_inbox.now());
  }
  RemoteRank& remote = m_remoteRanks[static_cast<std::size_t>(join->rank)];
  remote.fd = std::move(pending.fd);
  remote.state.awaited = false;
  const std::string host = protocol::peerOf(remote.fd.get()).value_or("");
  m_inbox.watch.start(join->rank, m_inbox.now(), protocol::isLoopback(host) ? "" : host);
  m_inbox.observe({join->rank, protocol::PhaseChange{protocol::Phase::Spawned, 0, 0}, {}});
  m_progress.report("joined ranks", m_joined, m_request.ranks);
}

Result<void> RemoteRun::handle(int rank, const std::string& line) {
  auto message = m_inbox.decoded(rank, line);
  if (!message) return {};
  IncomingFile& outputs = m_remoteRanks[static_cast<std::size_t>(rank)].outputs;
  if (const auto* part = std::get_if<protocol::OutputPart>(&*message)) {
    if (m_request.output.empty()) return {};
    const fs::path to =
        rank == 0 ? m_request.output : fs::path(fmt::format("{}.{}", m_request.deviation.string(), rank));
    CLEAVE_TRY(std::string wrong, outputs.append(*part, to, m_request.maxOutputBytes));
    if (!wrong.empty()) m_inbox.watch.addProtocolError(rank, std::move(wrong));
    return {};
  }
  if (std::holds_alternative<protocol::RankResult>(*message) && outputs.isCutOff())
    m_inbox.watch.addProtocolError(rank, "It sent only a part of its outputs.");
  m_inbox.accept(rank, *std::move(message));
  return {};
}

Result<void> RemoteRun::readRank(int rank) {
  RemoteRank& remote = m_remoteRanks[static_cast<std::size_t>(rank)];
  if (!remote.fd.isOpen()) return {};
  std::vector<std::string> lines;
  const bool isOpen = remote.lines.read(remote.fd.get(), lines);
  for (const std::string& line : lines) CLEAVE_TRY_VOID(handle(rank, line));
  if (!lines.empty()) m_inbox.watch.markRead(rank, m_inbox.now());
  if (isOpen) return {};
  remote.fd.reset();
  remote.state.disconnected = true;
  return {};
}

Result<void> RemoteRun::readRanks() {
  for (int rank = 0; rank < m_request.ranks; ++rank) {
    const auto askedAt = m_inbox.now();
    CLEAVE_TRY_VOID(readRank(rank));
    m_inbox.watch.judge(rank, m_remoteRanks[static_cast<std::size_t>(rank)].state, askedAt, m_inbox.now());
  }
  m_inbox.reportSlowness();
  return {};
}

bool RemoteRun::hasEnded() const {
  return std::ranges::all_of(m_remoteRanks, [](const RemoteRank& remote) { return remote.state.disconnected; });
}

Result<RunOutcome> RemoteRun::run() {
  m_progress.report("waiting for the ranks");
  while (true) {
    if (m_progress.cancelled())
      return m_progress.cancelledError(m_joined == 0 ? "waiting for the ranks" : "the ranks ran");
    waitForInput();
    acceptAll();
    readPending();
    if (m_joined == 0) continue;
    CLEAVE_TRY_VOID(readRanks());
    const auto now = m_inbox.now();
    if (hasEnded() || m_inbox.watch.isSettled(now) || m_inbox.watch.isTeardownOver(now, kTeardown))
      return m_inbox.watch.outcome();
  }
}

}  // namespace

Result<Listener> Listener::open(protocol::HostPort at, std::string token) {
  if (token.empty()) token = protocol::makeToken();
  CLEAVE_TRY_VOID(protocol::checkToken(token));
  Listener listener;
  CLEAVE_TRY(listener.m_socket, protocol::listenOn(at));
  const auto address = protocol::addressOf(listener.m_socket.get());
  if (!address || *address == "0.0.0.0" || *address == "::")
    return fail(ErrorCode::BadUsage, "{} is not an address that ranks can reach. Use an address of this host.",
                at.host);
  if (protocol::isLoopback(*address) && !protocol::isLoopback(at.host)) {
    return fail(ErrorCode::BadUsage,
                "{} is {} on this host, which other hosts cannot reach. Use the address of a network (ip address "
                "lists them), or 127.0.0.1 for ranks on this host.",
                at.host, *address);
  }
  listener.m_address = std::move(at);
  listener.m_token = std::move(token);
  return listener;
}

Result<RunOutcome> Listener::follow(const FollowRequest& request, const Observer& observer, const Progress& progress) {
  const auto [allowed, open] = raiseDescriptorLimit();
  const std::int64_t needed = open + 2 * request.ranks + static_cast<std::int64_t>(kMaxPending);
  if (needed > allowed) {
    return fail(ErrorCode::Environment,
                "This process may open at most {} files and connections (ulimit -n), but needs up to {} to listen to "
                "{}. Raise that limit.",
                allowed, needed, counted(request.ranks, "rank"));
  }
  return RemoteRun(m_socket.get(), m_token, request, observer, progress).run();
}

}  // namespace cleave::launch
