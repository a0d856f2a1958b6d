#pragma once
/// Texts for exhausted resources of a process or machine: the limit, its value and the remedy.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace cleave {

/// A clause without a full stop for EMFILE, ENFILE, ENOMEM and EFBIG; nullopt for any other errno.
std::optional<std::string> exhaustionInWords(int error);
/// The same for an error message of a library or the loader that quotes the system's text.
std::optional<std::string> exhaustionQuotedIn(std::string_view message);
/// "there is no memory left: ..."
std::string noMemoryInWords();
/// Text for a thread that could not be started.
std::string noThreadInWords();

/// The clause above if there is one, else the system's own text.
std::string reasonInWords(int error);

/// The number of descriptors this process may have open, after raising its soft limit to the hard one, and the number
/// that are open.
struct Descriptors {
  std::int64_t allowed = 0, open = 0;
};
Descriptors raiseDescriptorLimit();

}  // namespace cleave
