#include "launch/listener.h"

#include "base/exhaustion.h"
#include "base/output_file.h"
#include "base/quantities.h"
#include "launch/hearing.h"

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

constexpr auto kPollPeriod = 50ms;
constexpr auto kFirstLineLimit = 5s;
constexpr std::size_t kMaxStrangers = 64;
constexpr int kMaxNotices = 32;

/// A connection that has not said yet who it is.
struct Stranger {
  UniqueFd fd;
  Clock::time_point since;
  LineReader lines{protocol::kMaxJoinBytes};
};

/// The file that a rank sends; wrong parts are its fault, a full disk is ours.
class IncomingFile {
 public:
  /// What is wrong with the part, in a sentence; empty: nothing.
  Result<std::string> take(const protocol::OutputPart& part, const fs::path& to, std::int64_t maxBytes) {
    const std::int64_t bytes = std::ssize(part.bytes.data);
    if (m_isWhole) return std::string("It sent more than one file of outputs.");
    if (part.total < 0 || part.total > maxBytes)
      return fmt::format("It wants to send a file of {}, and the outputs of its plan have at most {}.",
                         counted(part.total, "byte"), maxBytes);
    if (m_file && part.total != m_total) return std::string("It sent parts of files of different sizes.");
    if (bytes > part.total - m_received) return std::string("It sent more of its file than there is.");
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

/// A rank that was let in, or is awaited.
struct Guest {
  UniqueFd fd;
  ChildState state{.awaited = true};
  LineReader lines{protocol::kMaxLineBytes};
  IncomingFile outputs;
};

class Attendance {
 public:
  Attendance(int socket, const std::string& token, const AttendRequest& request, const Observer& observer,
             const Progress& progress)
      : m_socket(socket),
        m_token(token),
        m_request(request),
        m_progress(progress),
        m_hearing(request.ranks, request.silence, observer, std::chrono::milliseconds(request.joinMs)),
        m_guests(static_cast<std::size_t>(request.ranks)) {}

  Result<RunOutcome> run();

 private:
  void waitForInput() const;
  void acceptAll();
  void hearStrangers();
  void letIn(Stranger& stranger, const std::string& line);
  std::string whyNot(const protocol::Join& join) const;
  Result<void> listen(int rank);
  Result<void> take(int rank, const std::string& line);
  Result<void> hearGuests();
  bool hasEnded() const;
  void note(const std::string& sentence);

  int m_socket;
  const std::string& m_token;
  const AttendRequest& m_request;
  const Progress& m_progress;
  Hearing m_hearing;
  std::list<Stranger> m_strangers;  ///< the oldest first
  std::vector<Guest> m_guests;      ///< by rank
  int m_come = 0, m_notices = 0;
};

void Attendance::note(const std::string& sentence) {
  if (!m_request.notice || ++m_notices > kMaxNotices) return;
  m_request.notice(m_notices < kMaxNotices ? sentence : "More was turned away, which is not told any more.");
}

void Attendance::waitForInput() const {
  std::vector<pollfd> fds{{m_socket, POLLIN, 0}};
  for (const Stranger& stranger : m_strangers) fds.push_back({stranger.fd.get(), POLLIN, 0});
  for (const Guest& guest : m_guests) {
    if (guest.fd.isOpen()) fds.push_back({guest.fd.get(), POLLIN, 0});
  }
  ::poll(fds.data(), fds.size(), static_cast<int>(kPollPeriod.count()));
}

void Attendance::acceptAll() {
  for (std::size_t round = 0; round < kMaxStrangers; ++round) {
    UniqueFd fd(::accept4(m_socket, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!fd.isOpen()) {
      // What waits to be accepted would wake the poll at once, again and again.
      if (errno == EMFILE || errno == ENFILE || errno == ENOMEM) std::this_thread::sleep_for(kPollPeriod);
      return;
    }
    if (m_strangers.size() == kMaxStrangers) m_strangers.pop_front();
    m_strangers.push_back({std::move(fd), Clock::now()});
  }
}

void Attendance::hearStrangers() {
  for (auto at = m_strangers.begin(); at != m_strangers.end();) {
    std::vector<std::string> lines;
    const bool isOpen = at->lines.read(at->fd.get(), lines);
    // A rank says no more before it is answered.
    if (lines.size() == 1) letIn(*at, lines.front());
    const bool isStillStrange = lines.empty() && isOpen && Clock::now() - at->since < kFirstLineLimit;
    at = isStillStrange ? std::next(at) : m_strangers.erase(at);
  }
}

/// Nothing is said of a run to whom has not its token.
std::string Attendance::whyNot(const protocol::Join& join) const {
  if (!protocol::isSameToken(join.token, m_token))
    return "its token (CLEAVE_RUN_TOKEN) is that of another run: start the ranks with what this run printed.";
  if (join.version != protocol::kProtocolVersion) {
    return fmt::format("it speaks protocol version {}, and here {} is spoken: use cleave-rank from the same build.",
                       join.version, protocol::kProtocolVersion);
  }
  if (join.ranks != m_request.ranks)
    return fmt::format("it is one of {}, and the plan is for {}.", counted(join.ranks, "rank"), m_request.ranks);
  if (join.rank < 0 || join.rank >= m_request.ranks)
    return fmt::format("there is no rank {} of {}.", join.rank, m_request.ranks);
  if (!m_guests[static_cast<std::size_t>(join.rank)].state.awaited) return "a rank of that number is here already.";
  return {};
}

void Attendance::letIn(Stranger& stranger, const std::string& line) {
  const auto join = protocol::decodeJoin(line);
  if (!join) return note("Somebody connected who is no rank.");
  const std::string why = whyNot(*join);
  const std::string answer = protocol::encode(protocol::Answer{!m_request.output.empty(), m_request.silence, why});
  const bool isSent = ::send(stranger.fd.get(), answer.data(), answer.size(), MSG_NOSIGNAL) == std::ssize(answer);
  if (!why.empty()) return note(fmt::format("Rank {} was turned away: {}", join->rank, why));
  if (!isSent) return;
  if (m_come++ == 0) {
    for (int rank = 0; rank < m_request.ranks; ++rank) m_hearing.watch.start(rank, m_hearing.now());
  }
  Guest& guest = m_guests[static_cast<std::size_t>(join->rank)];
  guest.fd = std::move(stranger.fd);
  guest.state.awaited = false;
  const std::string host = protocol::peerOf(guest.fd.get()).value_or("");
  m_hearing.watch.start(join->rank, m_hearing.now(), protocol::isLoopback(host) ? "" : host);
  m_hearing.tell({join->rank, protocol::PhaseChange{protocol::Phase::Spawned, 0, 0}, {}});
  m_progress.report("ranks that have come", m_come, m_request.ranks);
}

Result<void> Attendance::take(int rank, const std::string& line) {
  auto message = m_hearing.decoded(rank, line);
  if (!message) return {};
  IncomingFile& outputs = m_guests[static_cast<std::size_t>(rank)].outputs;
  if (const auto* part = std::get_if<protocol::OutputPart>(&*message)) {
    if (m_request.output.empty()) return {};
    const fs::path to =
        rank == 0 ? m_request.output : fs::path(fmt::format("{}.{}", m_request.deviation.string(), rank));
    CLEAVE_TRY(std::string wrong, outputs.take(*part, to, m_request.maxOutputBytes));
    if (!wrong.empty()) m_hearing.watch.hearNonsense(rank, std::move(wrong));
    return {};
  }
  if (std::holds_alternative<protocol::RankResult>(*message) && outputs.isCutOff())
    m_hearing.watch.hearNonsense(rank, "It sent its outputs in part only.");
  m_hearing.take(rank, *std::move(message));
  return {};
}

Result<void> Attendance::listen(int rank) {
  Guest& guest = m_guests[static_cast<std::size_t>(rank)];
  if (!guest.fd.isOpen()) return {};
  std::vector<std::string> lines;
  const bool isOpen = guest.lines.read(guest.fd.get(), lines);
  for (const std::string& line : lines) CLEAVE_TRY_VOID(take(rank, line));
  if (!lines.empty()) m_hearing.watch.heard(rank, m_hearing.now());
  if (isOpen) return {};
  guest.fd.reset();
  guest.state.disconnected = true;
  return {};
}

Result<void> Attendance::hearGuests() {
  for (int rank = 0; rank < m_request.ranks; ++rank) {
    const auto askedAt = m_hearing.now();
    CLEAVE_TRY_VOID(listen(rank));
    m_hearing.watch.judge(rank, m_guests[static_cast<std::size_t>(rank)].state, askedAt, m_hearing.now());
  }
  m_hearing.tellOfSlowness();
  return {};
}

bool Attendance::hasEnded() const {
  return std::ranges::all_of(m_guests, [](const Guest& guest) { return guest.state.disconnected; });
}

Result<RunOutcome> Attendance::run() {
  m_progress.report("waiting for the ranks");
  while (true) {
    if (m_progress.cancelled())
      return m_progress.cancelledError(m_come == 0 ? "waiting for the ranks" : "the ranks ran");
    waitForInput();
    acceptAll();
    hearStrangers();
    if (m_come == 0) continue;
    CLEAVE_TRY_VOID(hearGuests());
    const auto now = m_hearing.now();
    if (hasEnded() || m_hearing.watch.isSettled(now) || m_hearing.watch.isTeardownOver(now, kTeardown))
      return m_hearing.watch.outcome();
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
    return fail(ErrorCode::BadUsage, "{} is no address that ranks could go to: name one of this host's.", at.host);
  if (protocol::isLoopback(*address) && !protocol::isLoopback(at.host)) {
    return fail(ErrorCode::BadUsage,
                "{} is {} on this host, where no other reaches it: name the address of a network (ip address shows "
                "them), or 127.0.0.1 for ranks of this host.",
                at.host, *address);
  }
  listener.m_address = std::move(at);
  listener.m_token = std::move(token);
  return listener;
}

Result<RunOutcome> Listener::attend(const AttendRequest& request, const Observer& observer, const Progress& progress) {
  const auto [allowed, open] = raiseDescriptorLimit();
  const std::int64_t needed = open + 2 * request.ranks + static_cast<std::int64_t>(kMaxStrangers);
  if (needed > allowed) {
    return fail(ErrorCode::Environment,
                "This process may have no more than {} files and connections open at once (ulimit -n), and needs up to "
                "{} to listen to {}: raise that limit.",
                allowed, needed, counted(request.ranks, "rank"));
  }
  return Attendance(m_socket.get(), m_token, request, observer, progress).run();
}

}  // namespace cleave::launch
