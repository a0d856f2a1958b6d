#pragma once
/// The id of a model on the Hugging Face Hub: "org/name", or "name" without an owner, with "@revision" for a branch,
/// tag or commit.
///
///     CLEAVE_TRY(const HubId id, HubId::parse("Qwen/Qwen3-0.6B@main"));
///     id.folderName();   // "models--Qwen--Qwen3-0.6B"
#include "base/result.h"

#include <string>
#include <string_view>

namespace cleave::hub {

struct HubId {
  std::string repo;  ///< "Qwen/Qwen3-0.6B"
  std::string revision = "main";

  /// BadInput names the Hub's rule that the name breaks (huggingface_hub, utils/_validators.py).
  static Result<HubId> parse(std::string_view text);
  /// Folder name in a cache.
  std::string folderName() const;
  /// True for forty hexadecimal digits: the content of such a revision never changes.
  bool isCommit() const;
  std::string text() const;  ///< as written, without "@main"
  bool operator==(const HubId&) const = default;
};

/// True if a user's text means a model name: it does not begin with "/", "." or "~", has at most one slash, and does
/// not end like a file that Cleave opens.
bool looksLikeHubId(std::string_view text);
/// True if the text ends like a file that Cleave opens or rejects.
bool namesFile(std::string_view text);

}  // namespace cleave::hub
