#pragma once
/// Addresses on the web, taken apart as libcurl does that asks them (RFC 3986). All functions are pure.
#include "base/result.h"

#include <string>
#include <string_view>

namespace cleave::hub {

/// What a token is given to: it never goes to another.
struct Origin {
  std::string scheme, host;
  std::string port;  ///< also where the address leaves it to the scheme
  bool operator==(const Origin&) const = default;
};

/// BadInput: it is no address of http or https, or holds a user's name or password.
Result<Origin> originOf(const std::string& address);
/// Where `reference` (a redirect's Location) leads from `base`; as originOf.
Result<std::string> addressFrom(const std::string& base, const std::string& reference);
/// A text in which addresses may stand, with what is before their @ left out: "http://…@proxy:3128".
std::string withoutUser(std::string_view text);
/// A part of a path: all that has a meaning in an address is escaped, slashes too.
std::string escaped(std::string_view part);
/// The same of a path: its slashes stay.
std::string escapedPath(std::string_view path);

}  // namespace cleave::hub
