#include "families/checkpoint_names.h"

#include <algorithm>
#include <unordered_set>

namespace cleave::families {
namespace {

std::string replaced(const Family& family, std::string name) {
  for (const OtherName& other : family.otherNames) {
    if (const auto at = name.find(other.stored); at != std::string::npos)
      name.replace(at, other.stored.size(), other.inModel);
  }
  return name;
}

/// "transformer." for "transformer", "model." for "model.decoder": transformers' prefix of the base model.
std::string prefixOf(const Family& family) { return std::string(family.model.substr(0, family.model.find('.'))) + '.'; }

}  // namespace

std::vector<std::string> modelNames(const Family& family, const std::vector<std::string>& stored) {
  const std::string prefix = prefixOf(family);
  const bool isBare = std::ranges::none_of(stored, [&](const std::string& name) { return name.starts_with(prefix); });
  // In a bare checkpoint, names inside the model lack the prefix, but names of heads do not change.
  const auto isOfHead = [&](const std::string& name) {
    return std::ranges::any_of(family.heads, [&](const HeadClass& head) {
      const auto* causal = std::get_if<CausalHead>(&head.head);
      return causal && name.starts_with(std::string(causal->name) + '.');
    });
  };
  std::unordered_set<std::string> taken(stored.begin(), stored.end());
  std::vector<std::string> names;
  for (const std::string& name : stored) {
    std::string other = replaced(family, name);
    if (isBare && !isOfHead(other)) other = prefix + other;
    const bool isNew = other != name && taken.insert(other).second;
    names.push_back(isNew ? other : name);
  }
  return names;
}

}  // namespace cleave::families
