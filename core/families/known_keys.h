#pragma once
/// Which keys of config.json a family's parts read. Pure; safe from any thread.
#include "families/family.h"

#include <nlohmann/json_fwd.hpp>

#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace cleave::families {

/// All that a row's parts take, by their names and aliases, and what it reads to choose its parts.
std::set<std::string_view> keysOf(const Family& family);

/// Keys of a config that change nothing in a model of this family, but do in another's: transformers ignores them too.
/// Null ones are not among them.
std::vector<std::string> ignoredKeys(const Family& family, const nlohmann::json& config);

}  // namespace cleave::families
