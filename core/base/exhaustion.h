#pragma once
/// What the system says when a process or the machine has no more of something, in words that a user can act on: which
/// limit, its value, what to do.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace cleave {

/// For an errno that says so (EMFILE, ENFILE, ENOMEM, EFBIG), a clause without a full stop; nullopt for any other.
std::optional<std::string> exhaustionInWords(int error);
/// The same for a message of a library, or of the loader, that only quotes the system's words.
std::optional<std::string> exhaustionQuotedIn(std::string_view message);
/// "there is no memory left: ..."
std::string noMemoryInWords();
/// When the system starts no further thread.
std::string noThreadInWords();

/// The above where it applies, else the system's own words.
std::string reasonInWords(int error);

/// How many descriptors this process may have open at once, after raising that as far as it may by itself; and how many
/// are.
struct Descriptors {
  std::int64_t allowed = 0, open = 0;
};
Descriptors raiseDescriptorLimit();

}  // namespace cleave
