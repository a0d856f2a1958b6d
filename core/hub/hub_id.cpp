#include "hub/hub_id.h"

#include "base/characters.h"
#include "base/json.h"

#include <algorithm>
#include <array>

namespace cleave::hub {
namespace {

constexpr std::size_t kLongestRepo = 96, kLongestRevision = 255, kCommitDigits = 40;

/// The end of a sentence; empty: the name is valid.
std::string_view whyNoName(std::string_view part) {
  if (part.empty()) return "one part is empty";
  if (!hasOnlyLettersDigitsAnd("-_.", part)) return "only letters, digits, '-', '_' and '.' are allowed";
  if (part.front() == '-' || part.front() == '.' || part.back() == '-' || part.back() == '.')
    return "no part may begin or end with '-' or '.'";
  if (part.find("--") != std::string_view::npos || part.find("..") != std::string_view::npos)
    return "\"--\" and \"..\" are not allowed";
  return "";
}

std::string_view whyNoRepo(std::string_view repo) {
  if (repo.size() > kLongestRepo) return "it is longer than 96 characters";
  if (std::ranges::count(repo, '/') > 1) return "it has more than one slash";
  if (repo.ends_with(".git")) return "it ends in .git";
  const std::size_t slash = repo.find('/');
  if (slash == std::string_view::npos) return whyNoName(repo);
  const std::string_view owner = whyNoName(repo.substr(0, slash));
  return owner.empty() ? whyNoName(repo.substr(slash + 1)) : owner;
}

/// A revision becomes a file name below refs/ and a part of an address.
std::string_view whyNoRevision(std::string_view revision) {
  if (revision.empty()) return "the revision after @ is empty";
  if (revision.size() > kLongestRevision) return "it is longer than 255 characters";
  const auto isForbidden = [](char c) {
    return static_cast<unsigned char>(c) <= ' ' || c == 0x7F ||
           std::string_view("~^:?*[\\").find(c) != std::string_view::npos;
  };
  if (std::ranges::any_of(revision, isForbidden)) return "git does not allow one of its characters";
  std::size_t begin = 0;
  while (begin <= revision.size()) {
    const std::size_t end = std::min(revision.find('/', begin), revision.size());
    const std::string_view part = revision.substr(begin, end - begin);
    if (part.empty() || part.front() == '.' || part.ends_with(".lock") || part.find("..") != std::string_view::npos)
      return "git does not allow this name";
    begin = end + 1;
  }
  return "";
}

}  // namespace

Result<HubId> HubId::parse(std::string_view text) {
  HubId id;
  const std::size_t at = text.find('@');
  id.repo = text.substr(0, at);
  if (const std::string_view why = whyNoRepo(id.repo); !why.empty())
    return fail(ErrorCode::BadInput, "{} is not a model name on the Hub: {}. Write org/name.", quotedText(id.repo),
                why);
  if (at == std::string_view::npos) return id;
  id.revision = text.substr(at + 1);
  if (const std::string_view why = whyNoRevision(id.revision); !why.empty())
    return fail(ErrorCode::BadInput, "{} is not a revision of {}: {}. Write a branch, tag or commit.",
                quotedText(id.revision), id.repo, why);
  return id;
}

std::string HubId::folderName() const {
  std::string name = "models--" + repo;
  if (const std::size_t slash = name.find('/'); slash != std::string::npos) name.replace(slash, 1, "--");
  return name;
}

bool HubId::isCommit() const { return revision.size() == kCommitDigits && std::ranges::all_of(revision, isHexDigit); }

std::string HubId::text() const { return revision == "main" ? repo : repo + "@" + revision; }

bool namesFile(std::string_view text) {
  constexpr std::array<std::string_view, 7> kFiles{".json", ".pt2", ".safetensors", ".trace", ".cleave", ".pt", ".bin"};
  return std::ranges::any_of(kFiles, [&](std::string_view ending) { return text.ends_with(ending); });
}

bool looksLikeHubId(std::string_view text) {
  if (text.empty() || text.front() == '/' || text.front() == '.' || text.front() == '~') return false;
  if (namesFile(text)) return false;
  return HubId::parse(text).has_value();
}

}  // namespace cleave::hub
