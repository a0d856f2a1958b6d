#include "hub/http.h"

#include "base/json.h"
#include "base/quantities.h"
#include "base/version.h"
#include "hub/address.h"

#include <curl/curl.h>

#include <algorithm>
#include <array>
#include <deque>
#include <mutex>

namespace cleave::hub {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr int kMostRedirects = 10;
constexpr int kAttempts = 5, kAttemptsToReach = 2;
constexpr auto kFirstPause = 500ms;
constexpr auto kLongestPause = 300s;
constexpr auto kLookPeriod = 100ms;
constexpr std::size_t kMostHeaderBytes = 64 << 10;
constexpr std::size_t kMostBodyBytes = 32 << 20;

using Easy = std::unique_ptr<CURL, decltype(&curl_easy_cleanup)>;

/// Header lines of a request. They are wiped, because one may hold the token.
class HeaderLines {
 public:
  HeaderLines() = default;
  HeaderLines(const HeaderLines&) = delete;
  HeaderLines& operator=(const HeaderLines&) = delete;
  ~HeaderLines() {
    for (curl_slist* at = m_lines; at != nullptr; at = at->next)
      std::fill_n(static_cast<volatile char*>(at->data), std::string_view(at->data).size(), '\0');
    curl_slist_free_all(m_lines);
  }
  void add(const std::string& line) { m_lines = curl_slist_append(m_lines, line.c_str()); }
  curl_slist* get() const { return m_lines; }

 private:
  curl_slist* m_lines = nullptr;
};

/// One call in progress.
struct Flight {
  std::shared_ptr<Call> call;
  Easy easy{nullptr, &curl_easy_cleanup};
  std::unique_ptr<HeaderLines> lines;
  std::string url;
  int redirects = 0;
  bool leftOrigin = false;  ///< a redirect left the Hub's origin, so the token is not sent
  std::size_t headerBytes = 0;
  std::optional<Error> error;  ///< error of the call's receiver
  std::string noAnswer;        ///< why the answer is not from a Hub; empty: it is valid
  bool hasNewBytes = false;    ///< true if this attempt added new bytes
  int attempts = 0;            ///< consecutive attempts without new bytes
  Clock::time_point notBefore{};
  std::array<char, CURL_ERROR_SIZE> words{};
};

std::string lowered(std::string_view text) {
  std::string result(text);
  std::ranges::transform(result, result.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return result;
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && static_cast<unsigned char>(text.front()) <= ' ') text.remove_prefix(1);
  while (!text.empty() && static_cast<unsigned char>(text.back()) <= ' ') text.remove_suffix(1);
  return text;
}

std::size_t receiveHeader(const char* bytes, std::size_t size, std::size_t count, void* flight) {
  auto& self = *static_cast<Flight*>(flight);
  const std::string_view line(bytes, size * count);
  self.headerBytes += line.size();
  if (self.headerBytes > kMostHeaderBytes) {
    self.noAnswer = fmt::format("its answer has more than {} of headers", bytesText(kMostHeaderBytes));
    return 0;
  }
  if (line.starts_with("HTTP/")) self.call->answer.headers.clear();  // of an interim answer, such as 100 Continue
  if (const auto colon = line.find(':'); colon != std::string_view::npos)
    self.call->answer.headers[lowered(trimmed(line.substr(0, colon)))] = trimmed(line.substr(colon + 1));
  return line.size();
}

std::size_t receiveBody(const char* bytes, std::size_t size, std::size_t count, void* flight) {
  auto& self = *static_cast<Flight*>(flight);
  Call& call = *self.call;
  const std::size_t length = size * count;
  long status = 0;
  curl_easy_getinfo(self.easy.get(), CURLINFO_RESPONSE_CODE, &status);
  call.answer.status = static_cast<int>(status);
  if (const std::string packed = call.answer.header("content-encoding"); !packed.empty() && packed != "identity") {
    self.noAnswer = fmt::format("its answer is compressed ({}) against the request", quotedText(packed));
    return 0;
  }
  if (!call.consume || (status != 200 && status != 206)) {
    if (call.answer.body.size() + length > kMostBodyBytes) {
      self.noAnswer = fmt::format("its answer has more than {}", bytesText(kMostBodyBytes));
      return 0;
    }
    call.answer.body.append(bytes, length);
    return length;
  }
  auto added = call.consume(call.answer, std::as_bytes(std::span(bytes, length)));
  if (!added) {
    self.error = added.error();
    return 0;
  }
  self.hasNewBytes = self.hasNewBytes || *added;
  return length;
}

Failure::Kind kindOf(CURLcode code, long proxyStatus) {
  if (proxyStatus >= 300) return Failure::Kind::Proxy;
  switch (code) {
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_CONNECT:
    case CURLE_INTERFACE_FAILED: return Failure::Kind::Unreachable;
    case CURLE_WEIRD_SERVER_REPLY: return Failure::Kind::NoHub;  // a malformed header
    case CURLE_OPERATION_TIMEDOUT: return Failure::Kind::Silent;
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_PROXY: return Failure::Kind::Proxy;
    case CURLE_SSL_CONNECT_ERROR: return Failure::Kind::Handshake;
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_SSL_ISSUER_ERROR:
    case CURLE_SSL_CIPHER:
    case CURLE_SSL_ENGINE_INITFAILED: return Failure::Kind::Certificate;
    default: return Failure::Kind::Cut;
  }
}

bool isRedirect(int status) {
  return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

/// Errors that may go away when retried.
bool isPassing(const Failure& failure) {
  switch (failure.kind) {
    case Failure::Kind::Unreachable:
    case Failure::Kind::Silent:
    case Failure::Kind::Cut: return true;
    case Failure::Kind::Status: {
      const int status = failure.answer.status;
      return status == 408 || status == 429 || status == 500 || status == 502 || status == 503 || status == 504;
    }
    default: return false;
  }
}

void initialiseOnce() {
  static std::once_flag once;
  std::call_once(once, [] { curl_global_init(CURL_GLOBAL_DEFAULT); });
}

}  // namespace

std::string Answer::header(const std::string& name) const {
  const auto found = headers.find(name);
  return found == headers.end() ? std::string() : found->second;
}

struct HttpClient::State {
  State(const HubSettings& theSettings, const Progress& theProgress, std::function<void(const std::string&)> onWaiting)
      : settings(theSettings), progress(theProgress), onWait(std::move(onWaiting)) {
    initialiseOnce();
    multi = curl_multi_init();
    if (auto found = originOf(settings.endpoint)) origin = *std::move(found);
  }
  ~State() {
    drop();
    curl_multi_cleanup(multi);
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  void drop();
  bool mayHaveToken(const Flight& flight) const;
  void start(Flight& flight);
  void setOptions(Flight& flight);
  Result<void> end(Flight& flight, CURLcode code);
  bool follows(Flight& flight);
  std::optional<Failure> failureOf(Flight& flight, CURLcode code);
  bool triesAgain(Flight& flight, const Failure& failure);
  void startDue();
  Result<bool> finishEnded(const std::function<Result<void>(Call&)>& finished);

  const HubSettings& settings;
  const Progress& progress;
  std::function<void(const std::string&)> onWait;
  CURLM* multi = nullptr;
  Origin origin;             ///< status of the Hub
  bool hasAnswered = false;  ///< once a server answered, an unreachable one may come back
  std::deque<std::unique_ptr<Flight>> flights;
};

void HttpClient::State::drop() {
  for (const auto& flight : flights)
    if (flight->easy) curl_multi_remove_handle(multi, flight->easy.get());
  flights.clear();
}

bool HttpClient::State::mayHaveToken(const Flight& flight) const {
  if (settings.token.isEmpty() || flight.leftOrigin) return false;
  const auto asked = originOf(flight.url);
  return asked && *asked == origin;
}

void HttpClient::State::setOptions(Flight& flight) {
  CURL* const easy = flight.easy.get();
  const Call& call = *flight.call;
  const auto set = [&](CURLoption option, auto value) { curl_easy_setopt(easy, option, value); };
  set(CURLOPT_URL, flight.url.c_str());
  set(CURLOPT_PROTOCOLS_STR, "http,https");
  set(CURLOPT_FOLLOWLOCATION, 0L);
  set(CURLOPT_NOSIGNAL, 1L);
  set(CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));  // each part uses its own connection
  set(CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
  set(CURLOPT_CONNECTTIMEOUT, static_cast<long>(settings.quietSeconds));
  set(CURLOPT_LOW_SPEED_LIMIT, 1L);
  set(CURLOPT_LOW_SPEED_TIME, static_cast<long>(settings.quietSeconds));
  set(CURLOPT_BUFFERSIZE, 256L << 10);
  set(CURLOPT_ERRORBUFFER, flight.words.data());
  set(CURLOPT_HEADERFUNCTION, &receiveHeader);
  set(CURLOPT_HEADERDATA, &flight);
  set(CURLOPT_WRITEFUNCTION, &receiveBody);
  set(CURLOPT_WRITEDATA, &flight);
  set(CURLOPT_PRIVATE, &flight);
  set(CURLOPT_USERAGENT, fmt::format("cleave/{}", version()).c_str());
  if (!settings.certificates.empty()) set(CURLOPT_CAINFO, settings.certificates.c_str());
  if (call.isHead) set(CURLOPT_NOBODY, 1L);
  if (const auto range = call.begin ? call.begin() : std::nullopt)
    set(CURLOPT_RANGE, fmt::format("{}-{}", range->first, range->last).c_str());
  flight.lines = std::make_unique<HeaderLines>();
  flight.lines->add("Accept-Encoding: identity");
  if (mayHaveToken(flight)) {
    std::string line = "Authorization: Bearer " + settings.token.reveal();
    flight.lines->add(line);
    wipe(line);
  }
  set(CURLOPT_HTTPHEADER, flight.lines->get());
}

void HttpClient::State::start(Flight& flight) {
  flight.call->answer = {};
  flight.headerBytes = 0;
  flight.words.fill('\0');
  flight.hasNewBytes = false;
  flight.noAnswer.clear();
  flight.easy.reset(curl_easy_init());
  setOptions(flight);
  curl_multi_add_handle(multi, flight.easy.get());
}

/// Follows a redirect, or fails with `words` if it must not be followed.
bool HttpClient::State::follows(Flight& flight) {
  Answer& answer = flight.call->answer;
  const std::string location = answer.header("location");
  if (!isRedirect(answer.status) || location.empty()) return false;
  const auto target = addressFrom(flight.url, location);
  const auto from = originOf(flight.url);
  const auto to = target ? originOf(*target) : Result<Origin>(tl::unexpected(target.error()));
  const auto refuse = [&](const std::string& why) {
    flight.call->failure = Failure{Failure::Kind::Redirect, from ? from->host : "", why, answer};
    return false;
  };
  // `to` contains the error for `target`.
  if (!to || !from) return refuse(fmt::format("its redirect is invalid: {}", (to ? from.error() : to.error()).message));
  if (from->scheme == "https" && to->scheme == "http")
    return refuse(fmt::format("it redirects from https to http, to {}", to->host));
  if (*from != *to && flight.call->staysAtOrigin) {
    answer.redirectsTo = *target;
    return false;
  }
  if (++flight.redirects > kMostRedirects)
    return refuse(fmt::format("it redirects more than {} times", kMostRedirects));
  flight.leftOrigin = flight.leftOrigin || *from != *to;
  flight.url = *target;
  start(flight);
  return true;
}

std::optional<Failure> HttpClient::State::failureOf(Flight& flight, CURLcode code) {
  Call& call = *flight.call;
  if (call.failure) return call.failure;
  const auto asked = originOf(flight.url);
  const std::string host = asked ? asked->host : flight.url;
  if (!flight.noAnswer.empty()) return Failure{Failure::Kind::NoHub, host, flight.noAnswer, call.answer};
  if (code != CURLE_OK) {
    long proxyStatus = 0;
    curl_easy_getinfo(flight.easy.get(), CURLINFO_HTTP_CONNECTCODE, &proxyStatus);
    std::string words = flight.words[0] != '\0' ? flight.words.data() : curl_easy_strerror(code);
    while (words.ends_with('.') || words.ends_with('\n')) words.pop_back();
    return Failure{kindOf(code, proxyStatus), host, withoutUser(words), call.answer};
  }
  const int status = call.answer.status;
  const bool isAnswer = call.answer.isOk() || !call.answer.redirectsTo.empty() || (status == 404 && call.mayBeMissing);
  if (isAnswer) return std::nullopt;
  return Failure{Failure::Kind::Status, host, "", call.answer};
}

bool HttpClient::State::triesAgain(Flight& flight, const Failure& failure) {
  if (!isPassing(failure)) return false;
  flight.attempts = flight.hasNewBytes ? 0 : flight.attempts + 1;
  const bool isLost =
      (failure.kind == Failure::Kind::Unreachable || failure.kind == Failure::Kind::Silent) && !hasAnswered;
  if (flight.attempts >= (isLost ? kAttemptsToReach : kAttempts)) return false;
  Clock::duration pause = flight.attempts == 0 ? 0ms : kFirstPause * (1 << (flight.attempts - 1));
  curl_off_t asked = 0;
  curl_easy_getinfo(flight.easy.get(), CURLINFO_RETRY_AFTER, &asked);
  if (failure.kind == Failure::Kind::Status && asked > 0) {
    if (std::chrono::seconds(asked) > kLongestPause) return false;
    pause = std::max<Clock::duration>(pause, std::chrono::seconds(asked));
    if (onWait)
      onWait(fmt::format("{} asks to retry after {} s (HTTP {})", failure.host, asked, failure.answer.status));
  }
  if (failure.kind == Failure::Kind::Silent && onWait)
    onWait(fmt::format("{} has sent nothing for {} s; trying again", failure.host, settings.quietSeconds));
  flight.notBefore = Clock::now() + pause;
  flight.url = flight.call->url;
  flight.redirects = 0;
  flight.leftOrigin = false;
  flight.easy.reset();
  return true;
}

/// Removes the call if it has ended; else it is retried.
Result<void> HttpClient::State::end(Flight& flight, CURLcode code) {
  Call& call = *flight.call;
  long status = 0;
  curl_easy_getinfo(flight.easy.get(), CURLINFO_RESPONSE_CODE, &status);
  call.answer.status = static_cast<int>(status);
  call.answer.url = flight.url;
  hasAnswered = hasAnswered || status > 0;
  curl_multi_remove_handle(multi, flight.easy.get());
  if (flight.error) return tl::unexpected(*flight.error);
  call.failure.reset();
  if (code == CURLE_OK && follows(flight)) return {};
  call.failure = failureOf(flight, code);
  if (call.failure && triesAgain(flight, *call.failure)) return {};
  flight.easy.reset();
  flight.call.reset();  // the call has ended
  return {};
}

void HttpClient::State::startDue() {
  const auto now = Clock::now();
  for (const auto& flight : flights)
    if (!flight->easy && flight->notBefore <= now) start(*flight);
}

/// True if a call ended, which makes room for another.
Result<bool> HttpClient::State::finishEnded(const std::function<Result<void>(Call&)>& finished) {
  bool isAnyOver = false;
  int left = 0;
  while (CURLMsg* const message = curl_multi_info_read(multi, &left)) {
    if (message->msg != CURLMSG_DONE) continue;
    const CURLcode code = message->data.result;
    void* owner = nullptr;
    curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &owner);
    auto& flight = *static_cast<Flight*>(owner);
    const std::shared_ptr<Call> call = flight.call;
    CLEAVE_TRY_VOID(end(flight, code));
    if (flight.call) continue;
    std::erase_if(flights, [&](const auto& one) { return one.get() == &flight; });
    isAnyOver = true;
    CLEAVE_TRY_VOID(finished(*call));
  }
  return isAnyOver;
}

HttpClient::HttpClient(const HubSettings& settings, const Progress& progress,
                       std::function<void(const std::string&)> onWait)
    : m_state(std::make_unique<State>(settings, progress, std::move(onWait))) {}
HttpClient::~HttpClient() = default;

Result<void> HttpClient::perform(int atOnce, const std::function<std::shared_ptr<Call>()>& next,
                                 const std::function<Result<void>(Call&)>& finished) {
  State& state = *m_state;
  // No flight outlives this scope, because each refers to the caller's objects.
  const std::unique_ptr<State, void (*)(State*)> landing(&state, [](State* self) { self->drop(); });
  while (true) {
    while (std::ssize(state.flights) < atOnce) {
      std::shared_ptr<Call> call = next();
      if (!call) break;
      auto flight = std::make_unique<Flight>();
      flight->url = call->url;
      flight->call = std::move(call);
      state.flights.push_back(std::move(flight));
    }
    if (state.flights.empty()) return {};
    if (state.progress.cancelled()) return state.progress.cancelledError("asking the Hub");
    state.startDue();
    int running = 0;
    curl_multi_perform(state.multi, &running);
    CLEAVE_TRY(const bool isAnyOver, state.finishEnded(finished));
    if (isAnyOver) continue;
    curl_multi_poll(state.multi, nullptr, 0, static_cast<int>(std::chrono::milliseconds(kLookPeriod).count()), nullptr);
  }
}

Result<void> HttpClient::perform(Call& call) {
  std::shared_ptr<Call> only(&call, [](Call*) {});
  return perform(
      1, [&] { return std::exchange(only, nullptr); }, [](Call&) { return Result<void>(); });
}

}  // namespace cleave::hub
