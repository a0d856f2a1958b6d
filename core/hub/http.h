#pragma once
/// HTTP requests over libcurl, many at once. Redirects are followed here: the token goes only to the Hub's own origin
/// (scheme, host and port), and a redirect from https to http is rejected.
///
/// Temporary errors (a broken or silent connection, 5xx, 429 with Retry-After) are retried as long as attempts add
/// new bytes, and a few times without.
///
///     HttpClient client(settings, progress);
///     CLEAVE_TRY(const Answer answer, client.ask({.url = address, .isHead = true}));
///
/// One thread uses an object, and it works while `perform` is called.
#include "base/progress.h"
#include "hub/hub_settings.h"

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>

namespace cleave::hub {

/// Both ends inclusive, as in the Range header.
struct ByteRange {
  std::int64_t first = 0, last = 0;
};

struct Answer {
  int status = 0;
  std::string url;                             ///< final address, after redirects
  std::map<std::string, std::string> headers;  ///< names in lower case
  std::string body;                            ///< of a call without `consume`
  /// Target of a redirect that was not followed.
  std::string redirectsTo;
  std::string header(const std::string& name) const;  ///< empty: the header is missing
  bool isOk() const { return status >= 200 && status < 300; }
};

/// Why there is no usable answer.
struct Failure {
  enum class Kind : std::uint8_t { Unreachable, Silent, Cut, Proxy, Certificate, Handshake, Redirect, NoHub, Status };
  Kind kind = Kind::Status;
  std::string host;    ///< host of the request
  std::string detail;  ///< a clause without a full stop: libcurl's message, or for NoHub what is wrong with the answer
  Answer answer;       ///< the answer for kind Status, else what was received
};

struct Call {
  std::string url;
  bool isHead = false;
  bool staysAtOrigin = false;  ///< a redirect to another origin is an answer and not followed
  bool mayBeMissing = false;   ///< 404 is an answer
  /// Called before each attempt. Returns the range to request; nothing: the whole file.
  std::function<std::optional<ByteRange>()> begin = nullptr;
  /// Receives the body of 200 and 206 in pieces. An error ends the call, and `perform` with it. True: it had new
  /// bytes.
  std::function<Result<bool>(const Answer&, std::span<const std::byte>)> consume = nullptr;

  // Result of the call.
  Answer answer;
  std::optional<Failure> failure;
};

class HttpClient {
 public:
  /// `onWait` receives the reason of a wait: "the server asks to retry after 30 s (429)".
  HttpClient(const HubSettings& settings, const Progress& progress,
             std::function<void(const std::string&)> onWait = nullptr);
  ~HttpClient();
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  /// Performs the calls from `next`, at most `atOnce` at a time, and passes each to `finished`. It returns when `next`
  /// gives nothing (null: not yet) and no call is in progress. An error of `finished` or of a call's receiver ends it
  /// at once; Cancelled if the progress was cancelled.
  Result<void> perform(int atOnce, const std::function<std::shared_ptr<Call>()>& next,
                       const std::function<Result<void>(Call&)>& finished);
  /// One call; an error is in its `failure`.
  Result<void> perform(Call& call);

 private:
  struct State;
  std::unique_ptr<State> m_state;
};

}  // namespace cleave::hub
