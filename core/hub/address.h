#pragma once
/// Web addresses, parsed by libcurl, which also requests them (RFC 3986). All functions are pure.
#include "base/result.h"

#include <string>
#include <string_view>

namespace cleave::hub {

/// The scope of a token, which is never sent to another origin.
struct Origin {
  std::string scheme, host;
  std::string port;  ///< filled in from the scheme if the address has no port
  bool operator==(const Origin&) const = default;
};

/// BadInput: it is not an http or https address, or it contains a user name or password.
Result<Origin> originOf(const std::string& address);
/// The address to which `reference` (a redirect's Location) leads from `base`; errors as for originOf.
Result<std::string> addressFrom(const std::string& base, const std::string& reference);
/// The text with user and password removed from each address in it: "http://…@proxy:3128".
std::string withoutUser(std::string_view text);
/// Escapes one part of a path, slashes too.
std::string escaped(std::string_view part);
/// The same for a whole path; slashes stay.
std::string escapedPath(std::string_view path);

}  // namespace cleave::hub
