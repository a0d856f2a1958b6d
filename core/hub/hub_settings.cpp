#include "hub/hub_settings.h"

#include "base/json.h"
#include "hub/address.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>

namespace cleave::hub {
namespace {

constexpr const char* kWithholds = "HF_HUB_DISABLE_IMPLICIT_TOKEN";
constexpr std::int64_t kLongestToken = 4096;
constexpr int kLongestQuietSeconds = 3600;
constexpr std::string_view kWhatNoTokenHas = "it has white space, control characters or non-ASCII letters";

bool isTrue(std::optional<std::string> value) {
  if (!value) return false;
  std::ranges::transform(*value, value->begin(), [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return *value == "1" || *value == "ON" || *value == "YES" || *value == "TRUE";
}

/// Expands "~/x" like a shell.
fs::path expanded(const std::string& path, const Environment& environment) {
  if (!path.starts_with("~/")) return path;
  const auto home = environment("HOME");
  return home ? fs::path(*home) / path.substr(2) : fs::path(path);
}

/// Removes surrounding white space. The given text is wiped.
Secret tokenIn(std::string text) {
  const auto isSpace = [](char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; };
  const auto begin = std::ranges::find_if_not(text, isSpace);
  const auto end = std::find_if_not(text.rbegin(), std::make_reverse_iterator(begin), isSpace).base();
  Secret token(std::string(begin, end));
  wipe(text);
  return token;
}

/// The token becomes part of a header line, so it may not contain blanks or control characters.
bool isToken(const Secret& token) {
  return std::ranges::all_of(token.reveal(), [](char c) { return c > ' ' && c < '\x7F'; });
}

struct Reader {
  const Environment& environment;
  std::optional<std::string> get(const char* name) const {
    auto value = environment(name);
    if (value && value->empty()) return std::nullopt;
    return value;
  }

  std::optional<fs::path> home() const {
    if (const auto own = get("HF_HOME")) return expanded(*own, environment);
    if (const auto cache = get("XDG_CACHE_HOME")) return expanded(*cache, environment) / "huggingface";
    if (const auto user = get("HOME")) return fs::path(*user) / ".cache" / "huggingface";
    return std::nullopt;
  }

  Result<fs::path> cache() const {
    for (const char* name : {"HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"})
      if (const auto own = get(name)) return expanded(*own, environment);
    if (const auto folder = home()) return *folder / "hub";
    return fail(ErrorCode::Environment, "The folder of the Hub's cache is unknown. Set HF_HUB_CACHE, HF_HOME or HOME.");
  }

  /// An unusable file counts as missing. The reason is reported only when a token is needed.
  Result<void> readToken(HubSettings& settings) const {
    for (const char* name : {"HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"}) {
      Secret token = tokenIn(get(name).value_or(""));
      if (token.isEmpty()) continue;
      if (!isToken(token)) return fail(ErrorCode::BadInput, "{} is not a valid token: {}.", name, kWhatNoTokenHas);
      settings.token = std::move(token);
      settings.tokenFrom = name;
      return {};
    }
    const auto folder = home();
    const auto named = get("HF_TOKEN_PATH");
    if (!named && !folder) return {};
    const fs::path file = named ? expanded(*named, environment) : *folder / "token";
    settings.tokenLookedFor = file.string();
    std::error_code ignored;
    if (!fs::exists(file, ignored)) return {};
    auto text = readTextFile(file, kLongestToken);
    const bool isRead = text.has_value();
    Secret token = isRead ? tokenIn(*std::move(text)) : Secret();
    if (!isRead)
      settings.whyNoToken = fmt::format("{} cannot be read", file.string());
    else if (token.isEmpty())
      settings.whyNoToken = fmt::format("{} is empty", file.string());
    else if (!isToken(token))
      settings.whyNoToken = fmt::format("{} has no valid token: {}", file.string(), kWhatNoTokenHas);
    if (!settings.whyNoToken.empty()) return {};
    settings.token = std::move(token);
    settings.tokenFrom = file.string();
    return {};
  }

  Result<void> readQuietSeconds(HubSettings& settings) const {
    constexpr const char* kName = "HF_HUB_DOWNLOAD_TIMEOUT";
    const auto text = get(kName);
    if (!text) return {};
    int seconds = 0;
    const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), seconds);
    if (error != std::errc() || end != text->data() + text->size() || seconds < 1 || seconds > kLongestQuietSeconds)
      return fail(ErrorCode::BadInput, "{} is {}. Write whole seconds from 1 to {}.", kName, quotedText(*text),
                  kLongestQuietSeconds);
    settings.quietSeconds = seconds;
    return {};
  }
};

}  // namespace

Result<HubSettings> hubSettings(const Environment& environment) {
  const Reader reader{environment};
  HubSettings settings;
  if (const auto endpoint = reader.get("HF_ENDPOINT")) {
    settings.endpoint = *endpoint;
    while (settings.endpoint.ends_with('/')) settings.endpoint.pop_back();
    if (!settings.endpoint.starts_with("https://") && !settings.endpoint.starts_with("http://"))
      return fail(ErrorCode::BadInput, "HF_ENDPOINT is {}. Write an address that begins with https:// or http://.",
                  quotedText(withoutUser(*endpoint)));
    if (const auto origin = originOf(settings.endpoint); !origin)
      return fail(ErrorCode::BadInput, "HF_ENDPOINT: {}.", origin.error().message);
  }
  CLEAVE_TRY(settings.cache, reader.cache());
  if (!isTrue(reader.get(kWithholds)))
    CLEAVE_TRY_VOID(reader.readToken(settings));
  else
    settings.whyNoToken = fmt::format("{} disables the implicit token. Unset it, or use --token-file", kWithholds);
  for (const char* name : {"HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"}) {
    if (settings.isOffline || !isTrue(reader.get(name))) continue;
    settings.isOffline = true;
    settings.offlineBy = name;
  }
  CLEAVE_TRY_VOID(reader.readQuietSeconds(settings));
  for (const char* name : {"REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE"}) {
    if (settings.certificates.empty()) settings.certificates = reader.get(name).value_or("");
  }
  return settings;
}

Result<HubSettings> hubSettings() {
  return hubSettings([](const char* name) -> std::optional<std::string> {
    if (isSecretVariable(name)) {
      const Secret secret = secretOfEnvironment(name);
      return secret.isEmpty() ? std::nullopt : std::optional(secret.reveal());
    }
    const char* const value = std::getenv(name);
    return value ? std::optional<std::string>(value) : std::nullopt;
  });
}

Result<void> readTokenFrom(const fs::path& file, HubSettings& settings) {
  CLEAVE_TRY(std::string text, readTextFile(file, kLongestToken));
  Secret token = tokenIn(std::move(text));
  if (token.isEmpty() || !isToken(token))
    return fail(ErrorCode::BadInput, "{} has no token. The file must contain only the token, on one line.",
                file.string());
  settings.token = std::move(token);
  settings.tokenFrom = file.string();
  return {};
}

}  // namespace cleave::hub
