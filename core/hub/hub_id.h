#pragma once
/// What names a model on the Hugging Face Hub: "org/name", or "name" of one that has no owner, with "@revision", a
/// branch, a tag or a commit.
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

  /// BadInput says which rule of the Hub's the name breaks (huggingface_hub, utils/_validators.py).
  static Result<HubId> parse(std::string_view text);
  /// In a cache.
  std::string folderName() const;
  /// Forty hexadecimal digits: what such a revision names never changes.
  bool isCommit() const;
  std::string text() const;  ///< as it is written; without "@main"
  bool operator==(const HubId&) const = default;
};

/// True of what a user who names no file means by it: it does not begin with "/", "." or "~", has at most one slash and
/// no ending of a file that Cleave opens.
bool looksLikeHubId(std::string_view text);
/// True of what ends as the files do that Cleave opens, or refuses.
bool namesFile(std::string_view text);

}  // namespace cleave::hub
