#include "protocol/join.h"

#include "base/characters.h"
#include "base/exhaustion.h"
#include "base/json.h"

#include <nlohmann/json.hpp>

#include <poll.h>
#include <sys/random.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>

namespace cleave::protocol {
namespace {

using Clock = std::chrono::steady_clock;
using Json = nlohmann::ordered_json;

constexpr JsonLimits kLimits{.bytes = kMaxJoinBytes, .depth = 2, .elements = 16};
constexpr std::chrono::milliseconds kMostSilence = std::chrono::hours(24);
constexpr std::size_t kLeastToken = 16, kMostToken = 128, kMostWords = 400;

Result<std::string> typeOf(const JsonObject& line) { return line.text("type", std::string()); }

/// A line without its newline. No bytes may follow it yet.
Result<std::string> readLine(int fd, std::chrono::milliseconds limit) {
  const auto deadline = Clock::now() + limit;
  std::string line;
  while (true) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
    pollfd waiting{fd, POLLIN, 0};
    const int ready = left.count() <= 0 ? 0 : ::poll(&waiting, 1, static_cast<int>(left.count()));
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return fail(ErrorCode::Environment, "it sent no answer in time");
    std::array<char, kMaxJoinBytes> buffer;
    const ssize_t got = ::recv(fd, buffer.data(), buffer.size(), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fail(ErrorCode::Environment, "{}", reasonInWords(errno));
    if (got == 0) return fail(ErrorCode::Environment, "it closed the connection");
    line.append(buffer.data(), static_cast<std::size_t>(got));
    if (const auto end = line.find('\n'); end != std::string::npos) return line.substr(0, end);
    if (line.size() > kMaxJoinBytes) return fail(ErrorCode::Environment, "its answer is not that of a listener");
  }
}

Result<void> sendAll(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t put = ::send(fd, text.data(), text.size(), MSG_NOSIGNAL);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return fail(ErrorCode::Environment, "{}", reasonInWords(errno));
    text.remove_prefix(static_cast<std::size_t>(put));
  }
  return {};
}

Result<Answer> ask(int fd, const Join& join, std::chrono::milliseconds limit) {
  CLEAVE_TRY_VOID(sendAll(fd, encode(join)));
  CLEAVE_TRY(const std::string line, readLine(fd, limit));
  auto answer = decodeAnswer(line);
  if (!answer) return fail(ErrorCode::Environment, "its answer is not that of a listener");
  return answer;
}

}  // namespace

std::string encode(const Join& join) {
  return jsonText(Json{{"type", "join"},
                       {"version", join.version},
                       {"token", join.token},
                       {"rank", join.rank},
                       {"ranks", join.ranks}}) +
         "\n";
}

Result<Join> decodeJoin(std::string_view line) {
  CLEAVE_TRY(const nlohmann::json json, parseJson(line, "A rank's first line", kLimits));
  CLEAVE_TRY(const JsonObject object, JsonObject::of(json, "A rank's first line"));
  CLEAVE_TRY(const std::string type, typeOf(object));
  if (type != "join") return fail(ErrorCode::BadInput, "A rank's first line is not a join message.");
  constexpr IntegerRange kInts{std::numeric_limits<int>::min(), std::numeric_limits<int>::max()};
  Join join;
  CLEAVE_TRY(const std::int64_t version, object.integer("version", kInts));
  CLEAVE_TRY(const std::int64_t rank, object.integer("rank", kInts));
  CLEAVE_TRY(const std::int64_t ranks, object.integer("ranks", kInts));
  CLEAVE_TRY(join.token, object.text("token"));
  join.version = static_cast<int>(version);
  join.rank = static_cast<int>(rank);
  join.ranks = static_cast<int>(ranks);
  return join;
}

std::string encode(const Answer& answer) {
  if (answer.refusal.empty()) {
    return jsonText(Json{
               {"type", "welcome"}, {"wants_outputs", answer.wantsOutputs}, {"silence_ms", answer.silence.count()}}) +
           "\n";
  }
  return jsonText(Json{{"type", "refused"}, {"why", answer.refusal.substr(0, kMostWords)}}) + "\n";
}

Result<Answer> decodeAnswer(std::string_view line) {
  CLEAVE_TRY(const nlohmann::json json, parseJson(line, "The listener's answer", kLimits));
  CLEAVE_TRY(const JsonObject object, JsonObject::of(json, "The listener's answer"));
  CLEAVE_TRY(const std::string type, typeOf(object));
  Answer answer;
  if (type == "welcome") {
    CLEAVE_TRY(answer.wantsOutputs, object.flag("wants_outputs", false));
    CLEAVE_TRY(const std::int64_t silence, object.integer("silence_ms", {1, kMostSilence.count()}, kPeerGone.count()));
    answer.silence = std::chrono::milliseconds(silence);
    return answer;
  }
  if (type != "refused") return fail(ErrorCode::BadInput, "The listener's answer is neither a welcome nor a refusal.");
  CLEAVE_TRY(answer.refusal, object.text("why"));
  if (answer.refusal.empty()) return fail(ErrorCode::BadInput, "The listener refused without a reason.");
  return answer;
}

Result<void> checkToken(std::string_view token) {
  if (hasOnlyLettersDigitsAnd("-_", token) && token.size() >= kLeastToken && token.size() <= kMostToken) return {};
  return fail(ErrorCode::BadUsage,
              "The run's token (CLEAVE_RUN_TOKEN) has {} characters; use {} to {} letters, digits, - and _. Without "
              "it cleave-cli run --listen makes one.",
              token.size(), kLeastToken, kMostToken);
}

std::string makeToken() {
  std::array<unsigned char, 16> bytes;
  CLEAVE_CHECK(::getrandom(bytes.data(), bytes.size(), 0) == std::ssize(bytes), "no random bytes");
  std::string token;
  for (const unsigned char byte : bytes) token += fmt::format("{:02x}", byte);
  return token;
}

bool isSameToken(std::string_view a, std::string_view b) {
  unsigned difference = a.size() == b.size() ? 0 : 1;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i)
    difference |= static_cast<unsigned char>(a[i]) ^ static_cast<unsigned char>(b[i]);
  return difference == 0;
}

Result<Joined> joinRun(const HostPort& listener, const Join& join, std::chrono::milliseconds limit) {
  const auto deadline = Clock::now() + limit;
  CLEAVE_TRY_VOID(checkToken(join.token));
  auto connection = connectTo(listener, limit);
  if (!connection) {
    return fail(connection.error().code,
                "Rank {} cannot report to its listener: {} Check that cleave-cli run --listen runs there and that no "
                "firewall blocks this host.",
                join.rank, connection.error().message);
  }
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
  const auto answer = ask(connection->get(), join, std::max(left, std::chrono::milliseconds(1000)));
  if (!answer) {
    return fail(answer.error().code, "Rank {} cannot report to {}: {}.", join.rank, toText(listener),
                answer.error().message);
  }
  if (!answer->refusal.empty())
    return fail(ErrorCode::BadUsage, "The listener at {} rejected rank {}: {}", toText(listener), join.rank,
                answer->refusal);
  giveUpOnSilence(connection->get(), answer->silence);
  return Joined{std::move(*connection), answer->wantsOutputs};
}

}  // namespace cleave::protocol
