#include "about/redaction.h"

#include "base/characters.h"
#include "base/secret.h"

#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <climits>
#include <cstdlib>
#include <filesystem>

extern char** environ;

namespace cleave::about {
namespace {

constexpr std::string_view kRemoved = "[removed]";
/// Shorter texts occur in words by chance.
constexpr std::size_t kShortestSecret = 6, kShortestName = 3;
constexpr std::array<std::string_view, 9> kSecretWords{"TOKEN", "SECRET", "PASSWORD", "PASSWD",    "PASSPHRASE",
                                                       "KEY",   "AUTH",   "COOKIE",   "CREDENTIAL"};
/// Prefixes of the tokens of common services.
constexpr std::array<std::string_view, 9> kTokenPrefixes{"hf_",         "api_org_", "ghp_",    "gho_",  "ghs_",
                                                         "github_pat_", "glpat-",   "Bearer ", "Basic "};

bool isWordCharacter(char c) { return isAsciiLetterOrDigit(c) || c == '_'; }
bool isTokenCharacter(char c) { return isWordCharacter(c) || std::string_view("-.+/=~").find(c) != std::string::npos; }

void replaceAll(std::string& text, std::string_view what, std::string_view by) {
  for (auto at = text.find(what); at != std::string::npos; at = text.find(what, at + by.size()))
    text.replace(at, what.size(), by);
}

void replaceWord(std::string& text, std::string_view word, std::string_view by) {
  for (auto at = text.find(word); at != std::string::npos; at = text.find(word, at)) {
    const auto end = at + word.size();
    const bool isWhole =
        (at == 0 || !isWordCharacter(text[at - 1])) && (end == text.size() || !isWordCharacter(text[end]));
    if (isWhole) text.replace(at, word.size(), by);
    at += isWhole ? by.size() : 1;
  }
}

void removeTokens(std::string& text) {
  for (const std::string_view prefix : kTokenPrefixes) {
    for (auto at = text.find(prefix); at != std::string::npos; at = text.find(prefix, at)) {
      auto end = at + prefix.size();
      while (end < text.size() && isTokenCharacter(text[end])) ++end;
      const bool isToken = end - at >= prefix.size() + kShortestSecret && (at == 0 || !isWordCharacter(text[at - 1]));
      if (isToken) text.replace(at, end - at, kRemoved);
      at += isToken ? kRemoved.size() : prefix.size();
    }
  }
}

/// "https://ada:pass@host/x?key=y": the parts before the @ and after the question mark.
void removeFromUrls(std::string& text) {
  for (auto at = text.find("://"); at != std::string::npos; at = text.find("://", at)) {
    at += 3;
    const auto end = std::min(text.find_first_of(" \t\n\"'<>`", at), text.size());
    const std::string url = text.substr(at, end - at);
    const auto query = url.find('?'), user = url.substr(0, url.find('/')).rfind('@');
    std::string kept = url.substr(0, query);
    if (query != std::string::npos) kept.append("?").append(kRemoved);
    if (user != std::string::npos) kept.replace(0, user, kRemoved);
    text.replace(at, url.size(), kept);
  }
}

/// End of the path that begins at `begin`: the closing quote if it is quoted, else a blank. A later word of the line
/// extends the path if it goes on with it ("/home/ada/my models/llama").
std::size_t endOfPath(std::string_view text, std::size_t begin) {
  const auto endOfLine = std::min(text.find('\n', begin), text.size());
  const char before = begin > 0 ? text[begin - 1] : ' ';
  if (before == '"' || before == '\'' || before == '`') return std::min(text.find(before, begin), endOfLine);
  constexpr std::string_view kEnds = " \t\"'`<>|;,()";
  auto end = std::min(text.find_first_of(kEnds, begin), endOfLine);
  for (auto next = end; next < endOfLine && text[next] == ' ';) {
    const auto word = next + 1, wordEnd = std::min(text.find_first_of(kEnds, word), endOfLine);
    const auto slash = text.substr(word, wordEnd - word).find('/');
    if (slash == 0) break;
    if (slash != std::string_view::npos) end = wordEnd;
    next = wordEnd;
  }
  while (end > begin && (text[end - 1] == ':' || text[end - 1] == '.')) --end;  // end of the sentence
  return end;
}

void hidePathsBelow(std::string& text, const std::string& home) {
  constexpr std::string_view kHidden = "~/…";
  for (auto at = text.find(home); at != std::string::npos; at = text.find(home, at)) {
    const auto end = at + home.size();
    if (end < text.size() && isWordCharacter(text[end])) {  // "/home/adam" is not below "/home/ada"
      at = end;
      continue;
    }
    text.replace(at, endOfPath(text, at) - at, kHidden);
    at += kHidden.size();
  }
}

void add(std::vector<std::string>& all, std::string text) {
  if (!text.empty() && std::find(all.begin(), all.end(), text) == all.end()) all.push_back(std::move(text));
}

/// The path as written, and the path with links resolved.
void addHome(std::vector<std::string>& homes, std::string home) {
  while (home.size() > 1 && home.back() == '/') home.pop_back();
  if (home.size() < 2) return;  // a user whose home is "/"
  std::error_code error;
  add(homes, std::filesystem::canonical(home, error).string());
  add(homes, std::move(home));
}

void addName(std::vector<std::string>& names, const char* name) {
  if (name && std::string_view(name).size() >= kShortestName) add(names, name);
}

}  // namespace

std::vector<std::string> hiddenVariables() {
  std::vector<std::string> set;
  for (const char* name : {"HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"}) {
    if (!secretOfEnvironment(name).isEmpty()) set.emplace_back(name);
  }
  return set;
}

bool namesSecret(std::string_view variable) {
  std::string upper(variable);
  std::transform(upper.begin(), upper.end(), upper.begin(), [](unsigned char c) { return std::toupper(c); });
  return std::any_of(kSecretWords.begin(), kSecretWords.end(),
                     [&](std::string_view word) { return upper.find(word) != std::string::npos; });
}

Redaction::Redaction(Known known) : m_known(std::move(known)) {
  // The longer of two texts with the same beginning is replaced first.
  const auto longerFirst = [](const std::string& a, const std::string& b) { return a.size() > b.size(); };
  for (auto* all : {&m_known.secrets, &m_known.homes, &m_known.users, &m_known.hosts})
    std::stable_sort(all->begin(), all->end(), longerFirst);
}

Redaction Redaction::ofThisProcess() {
  Known known;
  for (char** entry = environ; entry && *entry; ++entry) {
    const std::string_view variable = *entry;
    const auto equals = variable.find('=');
    if (equals == std::string_view::npos || !namesSecret(variable.substr(0, equals))) continue;
    const std::string value(variable.substr(equals + 1));
    std::error_code error;
    const bool isPath = value.starts_with('/') && std::filesystem::exists(value, error);  // name of a file that holds a
                                                                                          // secret
    if (value.size() >= kShortestSecret && !isPath) add(known.secrets, value);
  }
  for (const std::string& name : hiddenVariables()) add(known.secrets, secretOfEnvironment(name.c_str()).reveal());
  if (const char* home = std::getenv("HOME")) addHome(known.homes, home);
  if (const passwd* user = ::getpwuid(::getuid())) {
    addHome(known.homes, user->pw_dir);
    addName(known.users, user->pw_name);
  }
  for (const char* variable : {"USER", "LOGNAME", "SUDO_USER"}) addName(known.users, std::getenv(variable));
  std::erase(known.users, "root");
  std::array<char, HOST_NAME_MAX + 1> host{};
  if (::gethostname(host.data(), host.size() - 1) == 0) {
    const std::string name = host.data();
    addName(known.hosts, name.c_str());
    addName(known.hosts, name.substr(0, name.find('.')).c_str());
  }
  addName(known.hosts, std::getenv("HOSTNAME"));
  std::erase(known.hosts, "localhost");
  return Redaction(std::move(known));
}

std::string Redaction::operator()(std::string_view text) const {
  std::string result(text);
  for (const std::string& secret : m_known.secrets) replaceAll(result, secret, kRemoved);
  removeTokens(result);
  removeFromUrls(result);
  for (const std::string& home : m_known.homes) hidePathsBelow(result, home);
  for (const std::string& user : m_known.users) replaceWord(result, user, "USER");
  for (const std::string& host : m_known.hosts) replaceWord(result, host, "HOST");
  return result;
}

}  // namespace cleave::about
