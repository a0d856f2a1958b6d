#include "hub/refusals.h"

#include "base/json.h"

#include <algorithm>

namespace cleave::hub {
namespace {

constexpr std::string_view kWithoutNetwork = "with --local-only or HF_HUB_OFFLINE=1 what was downloaded before is used";

/// "the token of HF_TOKEN was given" or where one is looked for.
std::string tokenText(const HubSettings& settings) {
  if (!settings.token.isEmpty()) return fmt::format("the token from {} may not read it", settings.tokenFrom);
  if (!settings.whyNoToken.empty()) return fmt::format("no token was given: {}", settings.whyNoToken);
  return fmt::format("no token was given: set HF_TOKEN, or write one to {}",
                     settings.tokenLookedFor.empty() ? "the file that HF_TOKEN_PATH names" : settings.tokenLookedFor);
}

/// " The Hub says: …" where it gives a reason.
std::string reason(const Failure& failure) {
  const std::string words = failure.answer.header("x-error-message");
  return words.empty() ? "" : fmt::format(" ({} says {})", failure.host, quotedText(words));
}

/// "; it asks to come back in 30 s", of seconds or of a date (RFC 9110, 10.2.3).
std::string patience(const std::string& retryAfter) {
  if (retryAfter.empty()) return "";
  const bool isSeconds = std::ranges::all_of(retryAfter, [](char c) { return c >= '0' && c <= '9'; });
  return isSeconds ? fmt::format("; it asks to come back in {} s", retryAfter)
                   : fmt::format("; it asks to come back after {}", quotedText(retryAfter));
}

Error badInput(std::string message) { return {ErrorCode::BadInput, std::move(message)}; }
Error environment(std::string message) { return {ErrorCode::Environment, std::move(message)}; }

Error refusedStatus(const Failure& failure, const HubId& id, const std::string& file, const HubSettings& settings) {
  const std::string code = failure.answer.header("x-error-code");
  const int status = failure.answer.status;
  const std::string page = fmt::format("{}/{}", settings.endpoint, id.repo);
  if (code == "GatedRepo") {
    return badInput(fmt::format("{} is gated: ask for access on {} and give a token of the account that has it; {}.",
                                id.repo, page, tokenText(settings)));
  }
  if (code == "RevisionNotFound" || (status == 404 && code.empty() && id.revision != "main")) {
    return badInput(fmt::format("{} has no revision {}: {}/tree/main lists its branches and tags.", id.repo,
                                quotedText(id.revision), page));
  }
  if (code == "EntryNotFound") return badInput(fmt::format("{} has no {} at revision {}.", id.repo, file, id.revision));
  if (code == "RepoNotFound" || status == 404 || (status == 401 && settings.token.isEmpty())) {
    return badInput(fmt::format("{} has no model {}, or it is private: check the name; {}{}.", failure.host, id.repo,
                                tokenText(settings), reason(failure)));
  }
  if (status == 401) {
    return badInput(fmt::format("{} does not accept the token from {}{}: make a new one on {}/settings/tokens.",
                                failure.host, settings.tokenFrom, reason(failure), settings.endpoint));
  }
  if (status == 403) {
    return badInput(
        fmt::format("{} does not let {} be read{}: {}.", failure.host, id.repo, reason(failure), tokenText(settings)));
  }
  if (status == 407)
    return environment(fmt::format(
        "The proxy before {} wants a name and a password: put them into HTTPS_PROXY, as http://NAME:PASSWORD@PROXY.",
        failure.host));
  if (status == 416) {
    return environment(
        fmt::format("{} does not send the part of {} that is missing (HTTP 416): the file there has "
                    "another size than the Hub says; try again later.",
                    failure.host, file));
  }
  if (status == 429) {
    return environment(fmt::format(
        "{} has had too many requests (HTTP 429){}: {}.", failure.host, patience(failure.answer.header("retry-after")),
        settings.token.isEmpty() ? "with a token (HF_TOKEN) it allows more of them" : "try again later"));
  }
  return environment(fmt::format("{} answers HTTP {} for {} of {}{}: try again later.", failure.host, status, file,
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
          fmt::format("{} cannot be reached ({}): check the network, or HF_ENDPOINT and HTTPS_PROXY; {}.", failure.host,
                      failure.detail, kWithoutNetwork));
    case Failure::Kind::Silent:
      return environment(
          fmt::format("{} has sent nothing of {} for {} s: try again, or let it take longer with "
                      "HF_HUB_DOWNLOAD_TIMEOUT; what has come is kept.",
                      failure.host, file, settings.quietSeconds));
    case Failure::Kind::Cut:
      return environment(
          fmt::format("The connection to {} broke again and again while {} was fetched ({}): try again; "
                      "what has come is kept.",
                      failure.host, file, failure.detail));
    case Failure::Kind::Proxy:
      return environment(
          fmt::format("The proxy that HTTPS_PROXY, HTTP_PROXY or ALL_PROXY names does not lead to {} "
                      "({}): check these variables, or leave {} out of it with NO_PROXY.",
                      failure.host, failure.detail, failure.host));
    case Failure::Kind::Certificate:
      return environment(
          fmt::format("{} cannot prove who it is ({}): if a proxy of your network stands between, name "
                      "the file of its certificates in SSL_CERT_FILE.",
                      failure.host, failure.detail));
    case Failure::Kind::Handshake:
      return environment(
          fmt::format("{} does not come to terms about an encrypted connection ({}): check that HF_ENDPOINT begins as "
                      "the server speaks, https:// or http://, and the proxy; {}.",
                      failure.host, failure.detail, kWithoutNetwork));
    case Failure::Kind::NoHub:
      return environment(fmt::format("{} does not answer as a Hub does: {}. Check HF_ENDPOINT and the proxy.",
                                     failure.host, failure.detail));
    case Failure::Kind::Redirect:
      return environment(
          fmt::format("{} of {} is not fetched from {}: {}.", file, id.repo, failure.host, failure.detail));
    case Failure::Kind::Status: break;
  }
  return refusedStatus(failure, id, file, settings);
}

}  // namespace cleave::hub
