#include "hub/address.h"

#include "base/characters.h"
#include "base/json.h"

#include <curl/curl.h>

#include <memory>

namespace cleave::hub {
namespace {

using Url = std::unique_ptr<CURLU, decltype(&curl_url_cleanup)>;

Result<Url> parsed(const std::string& address) {
  Url url(curl_url(), &curl_url_cleanup);
  const CURLUcode wrong = curl_url_set(url.get(), CURLUPART_URL, address.c_str(), CURLU_DISALLOW_USER);
  if (wrong != CURLUE_OK)
    return fail(ErrorCode::BadInput, "{} is not a valid address: {}", quotedText(withoutUser(address)),
                curl_url_strerror(wrong));
  return url;
}

std::string part(const Url& url, CURLUPart which, unsigned flags = 0) {
  char* text = nullptr;
  if (curl_url_get(url.get(), which, &text, flags) != CURLUE_OK) return {};
  const std::unique_ptr<char, decltype(&curl_free)> owned(text, &curl_free);
  return text;
}

}  // namespace

Result<Origin> originOf(const std::string& address) {
  CLEAVE_TRY(const Url url, parsed(address));
  Origin origin{part(url, CURLUPART_SCHEME), part(url, CURLUPART_HOST), part(url, CURLUPART_PORT, CURLU_DEFAULT_PORT)};
  if (origin.scheme == "http" || origin.scheme == "https") return origin;
  return fail(ErrorCode::BadInput, "{} is not an http or https address", quotedText(address));
}

Result<std::string> addressFrom(const std::string& base, const std::string& reference) {
  CLEAVE_TRY(const Url url, parsed(base));
  if (curl_url_set(url.get(), CURLUPART_URL, reference.c_str(), CURLU_DISALLOW_USER) != CURLUE_OK)
    return fail(ErrorCode::BadInput, "{} is not a valid address", quotedText(withoutUser(reference)));
  std::string address = part(url, CURLUPART_URL);
  CLEAVE_TRY_VOID(originOf(address).map([](const Origin&) {}));
  return address;
}

std::string withoutUser(std::string_view text) {
  constexpr std::string_view kBefore = "://", kEnds = "/?# \t\"'";
  std::string result;
  while (true) {
    const std::size_t before = text.find(kBefore);
    if (before == std::string_view::npos) return result.append(text);
    const std::size_t begin = before + kBefore.size();
    const std::size_t end = std::min(text.find_first_of(kEnds, begin), text.size());
    const std::size_t at = text.substr(0, end).rfind('@');
    result.append(text.substr(0, begin));
    if (at != std::string_view::npos && at >= begin) {
      result.append("…");
      text.remove_prefix(at);
    } else {
      text.remove_prefix(begin);
    }
  }
}

std::string escaped(std::string_view text) {
  constexpr std::string_view kPlain = "-._~";
  std::string result;
  for (const char c : text) {
    const bool isPlain = isAsciiLetterOrDigit(c) || kPlain.find(c) != std::string_view::npos;
    result += isPlain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return result;
}

std::string escapedPath(std::string_view path) {
  std::string result;
  std::size_t begin = 0;
  while (true) {
    const std::size_t end = std::min(path.find('/', begin), path.size());
    result += escaped(path.substr(begin, end - begin));
    if (end == path.size()) return result;
    result += '/';
    begin = end + 1;
  }
}

}  // namespace cleave::hub
