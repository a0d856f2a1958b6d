#pragma once
/// Asking a web server, many things at once, over libcurl. Redirects are followed by hand: the token goes to the
/// origin of the Hub alone (scheme, host and port), never to another, and nobody leads from https to http.
///
/// What goes wrong for a moment (a connection that is cut or silent, 5xx, 429 with Retry-After) is tried again, as long
/// as each attempt brings something or there were few that did not.
///
///     HttpClient client(settings, progress);
///     CLEAVE_TRY(const Answer answer, client.ask({.url = address, .isHead = true}));
///
/// An object is used by one thread, which works while `perform` is called.
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

/// Both ends included, as the header Range has them.
struct ByteRange {
  std::int64_t first = 0, last = 0;
};

struct Answer {
  int status = 0;
  std::string url;                             ///< where it came from, after redirects
  std::map<std::string, std::string> headers;  ///< names in lower case
  std::string body;                            ///< of a call without `take`
  /// Of a redirect that was not followed: where it leads.
  std::string redirectsTo;
  std::string header(const std::string& name) const;  ///< empty: there is none
  bool isOk() const { return status >= 200 && status < 300; }
};

/// Why there is no answer that can be used.
struct Failure {
  enum class Kind : std::uint8_t { Unreachable, Silent, Cut, Proxy, Certificate, Handshake, Redirect, NoHub, Status };
  Kind kind = Kind::Status;
  std::string host;    ///< that was asked
  std::string detail;  ///< a clause without a full stop: libcurl's words; of NoHub what is wrong with the answer
  Answer answer;       ///< of kind Status; of others what came of it
};

struct Call {
  std::string url;
  bool isHead = false;
  bool staysAtOrigin = false;  ///< a redirect to another origin is an answer, not followed
  bool mayBeMissing = false;   ///< 404 is an answer
  /// Called before each attempt; says which bytes to ask for, nothing: all.
  std::function<std::optional<ByteRange>()> begin = nullptr;
  /// Takes the body of 200 and 206 as it comes. An error ends the call, and `perform` with it. True: it brought
  /// something that was not there.
  std::function<Result<bool>(const Answer&, std::span<const std::byte>)> take = nullptr;

  // What became of it.
  Answer answer;
  std::optional<Failure> failure;
};

class HttpClient {
 public:
  /// `onWait` hears what is waited for: "the server asks for 30 s of patience (429)".
  HttpClient(const HubSettings& settings, const Progress& progress,
             std::function<void(const std::string&)> onWait = nullptr);
  ~HttpClient();
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  /// Performs what `next` gives (null: nothing for now), at most `atOnce` at a time, and hands each to `finished`,
  /// until `next` gives nothing and nothing is under way. An error of `finished` or of a call's `take` ends it at once;
  /// Cancelled when the progress says so.
  Result<void> perform(int atOnce, const std::function<std::shared_ptr<Call>()>& next,
                       const std::function<Result<void>(Call&)>& finished);
  /// One call; what failed stands in it.
  Result<void> perform(Call& call);

 private:
  struct State;
  std::unique_ptr<State> m_state;
};

}  // namespace cleave::hub
