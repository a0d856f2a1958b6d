#include "hub/refusals.h"

#include "base/characters.h"
#include "base/json.h"

#include <algorithm>

namespace cleave::hub {
namespace {

constexpr std::string_view kWithoutNetwork = "use the cache with --local-only or HF_HUB_OFFLINE=1";

/// Which token was used, or where to put one.
std::string tokenText(const HubSettings& settings) {
  if (!settings.token.isEmpty()) return fmt::format("the token from {} has no access", settings.tokenFrom);
  if (!settings.whyNoToken.empty()) return fmt::format("no token was given: {}", settings.whyNoToken);
  return fmt::format("no token was given: set HF_TOKEN, or write one to {}",
                     settings.tokenLookedFor.empty() ? "the file that HF_TOKEN_PATH names" : settings.tokenLookedFor);
}

/// The Hub's own reason, if it gives one.
std::string reason(const Failure& failure) {
  const std::string words = failure.answer.header("x-error-message");
  return words.empty() ? "" : fmt::format(" ({} says {})", failure.host, quotedText(words));
}

/// The server's retry time in seconds or as a date (RFC 9110, 10.2.3).
std::string patience(const std::string& retryAfter) {
  if (retryAfter.empty()) return "";
  const bool isSeconds = std::ranges::all_of(retryAfter, isAsciiDigit);
  return isSeconds ? fmt::format(" and asks to retry after {} s", retryAfter)
                   : fmt::format(" and asks to retry after {}", quotedText(retryAfter));
}

Error badInput(std::string message) { return {ErrorCode::BadInput, std::move(message)}; }
Error environment(std::string message) { return {ErrorCode::Environment, std::move(message)}; }

Error refusedStatus(const Failure& failure, const HubId& id, const std::string& file, const HubSettings& settings) {
  const std::string code = failure.answer.header("x-error-code");
  const int status = failure.answer.status;
  const std::string page = fmt::format("{}/{}", settings.endpoint, id.repo);
  if (code == "GatedRepo") {
    return badInput(fmt::format("{} is gated. Request access on {} and use a token of that account; {}.", id.repo, page,
                                tokenText(settings)));
  }
  if (code == "RevisionNotFound" || (status == 404 && code.empty() && id.revision != "main")) {
    return badInput(fmt::format("{} has no revision {}. {}/tree/main lists its branches and tags.", id.repo,
                                quotedText(id.revision), page));
  }
  if (code == "EntryNotFound") return badInput(fmt::format("{} has no {} at revision {}.", id.repo, file, id.revision));
  if (code == "RepoNotFound" || status == 404 || (status == 401 && settings.token.isEmpty())) {
    return badInput(fmt::format("{} has no model {}, or it is private. Check the name; {}{}.", failure.host, id.repo,
                                tokenText(settings), reason(failure)));
  }
  if (status == 401) {
    return badInput(fmt::format("{} rejects the token from {}{}. Make a new one on {}/settings/tokens.", failure.host,
                                settings.tokenFrom, reason(failure), settings.endpoint));
  }
  if (status == 403) {
    return badInput(
        fmt::format("{} denies access to {}{}: {}.", failure.host, id.repo, reason(failure), tokenText(settings)));
  }
  if (status == 407)
    return environment(fmt::format(
        "The proxy before {} requires a name and a password. Set HTTPS_PROXY to http://NAME:PASSWORD@PROXY.",
        failure.host));
  if (status == 416) {
    return environment(
        fmt::format("{} does not send the missing part of {} (HTTP 416): the file there has another size than the "
                    "Hub announces. Try again later.",
                    failure.host, file));
  }
  if (status == 429) {
    return environment(
        fmt::format("{} rejects the request because of too many requests (HTTP 429){}: {}.", failure.host,
                    patience(failure.answer.header("retry-after")),
                    settings.token.isEmpty() ? "set HF_TOKEN, which allows more requests" : "try again later"));
  }
  return environment(fmt::format("{} answers HTTP {} for {} of {}{}. Try again later.", failure.host, status, file,
                                 id.repo, reason(failure)));
}

}  // namespace

bool isUnreachable(const Failure& failure) {
  return failure.kind == Failure::Kind::Unreachable || failure.kind == Failure::Kind::Silent ||
         failure.kind == Failure::Kind::Cut || failure.kind == Failure::Kind::Handshake ||
         (failure.kind == Failure::Kind::Status && failure.answer.status >= 500);
}

Error refusal(const Failure& failure, const HubId& id, const std::string& file, const HubSettings& settings) {
  switch (failure.kind) {
    case Failure::Kind::Unreachable:
      return environment(
          fmt::format("{} cannot be reached ({}). Check the network, HF_ENDPOINT and HTTPS_PROXY, or {}.", failure.host,
                      failure.detail, kWithoutNetwork));
    case Failure::Kind::Silent:
      return environment(
          fmt::format("{} has sent nothing of {} for {} s. Try again, or increase HF_HUB_DOWNLOAD_TIMEOUT; received "
                      "bytes are kept.",
                      failure.host, file, settings.quietSeconds));
    case Failure::Kind::Cut:
      return environment(
          fmt::format("The connection to {} broke repeatedly during the download of {} ({}). Try again; received "
                      "bytes are kept.",
                      failure.host, file, failure.detail));
    case Failure::Kind::Proxy:
      return environment(
          fmt::format("The proxy in HTTPS_PROXY, HTTP_PROXY or ALL_PROXY does not reach {} ({}). Check these "
                      "variables, or add {} to NO_PROXY.",
                      failure.host, failure.detail, failure.host));
    case Failure::Kind::Certificate:
      return environment(
          fmt::format("The certificate of {} cannot be verified ({}). If your network uses a proxy, set "
                      "SSL_CERT_FILE to the proxy's certificates.",
                      failure.host, failure.detail));
    case Failure::Kind::Handshake:
      return environment(
          fmt::format("{} cannot make an encrypted connection ({}). Check the proxy, and http:// or https:// in "
                      "HF_ENDPOINT, or {}.",
                      failure.host, failure.detail, kWithoutNetwork));
    case Failure::Kind::NoHub:
      return environment(fmt::format("{} does not answer like a Hub: {}. Check HF_ENDPOINT and the proxy.",
                                     failure.host, failure.detail));
    case Failure::Kind::Redirect:
      return environment(
          fmt::format("{} of {} is not downloaded from {}: {}.", file, id.repo, failure.host, failure.detail));
    case Failure::Kind::Status: break;
  }
  return refusedStatus(failure, id, file, settings);
}

}  // namespace cleave::hub
