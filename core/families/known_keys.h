#pragma once
/// The keys of config.json that a family's parts read. Pure; safe from any thread.
#include "families/family.h"

#include <nlohmann/json_fwd.hpp>

#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace cleave::families {

/// All keys that a row reads, by name and alias: those of its parts, and those that choose its parts.
std::set<std::string_view> keysOf(const Family& family);

/// Keys of a config that other families read but this one ignores, as transformers does. Keys with the value null are
/// not included.
std::vector<std::string> ignoredKeys(const Family& family, const nlohmann::json& config);

}  // namespace cleave::families
