#include "plan/build/missing_weights.h"

#include "base/quantities.h"
#include "plan/text/block_names.h"

#include <algorithm>
#include <map>
#include <set>
#include <vector>

namespace cleave::plan {
namespace {

constexpr std::size_t kMostNames = 4;

bool isMissing(const program::ParameterShards& parameter, const graph::Graph& model) {
  if (model.packedBytes.contains(parameter.name)) return false;
  for (int rank = 0; rank < static_cast<int>(parameter.piecesByRank.size()); ++rank) {
    if (!parameter.isStoredFor(rank)) return true;
  }
  return false;
}

/// One repeated block, and how many of its parameters are missing.
struct Block {
  int parameters = 0, missing = 0;
  bool lacksAll() const { return missing == parameters; }
};
using Blocks = std::map<std::string, std::map<int, Block>>;  // by the name up to the number, then by the number

std::string blockOf(const std::string& pattern) { return pattern.substr(0, pattern.find('#') + 1); }

Blocks blocksOf(const program::ShardMap& parameters, const std::set<std::string>& missing) {
  Blocks blocks;
  for (const program::ParameterShards& parameter : parameters) {
    const auto [pattern, index] = foldIndex(parameter.name);
    if (index < 0) continue;
    Block& block = blocks[blockOf(pattern)][index];
    ++block.parameters;
    block.missing += missing.contains(parameter.name) ? 1 : 0;
  }
  return blocks;
}

/// Blocks that are missing as a whole, then other missing parameters.
std::vector<std::string> foldedNames(const std::set<std::string>& missing, const Blocks& blocks) {
  std::vector<std::string> names;
  for (const auto& [pattern, ofPattern] : blocks) {
    std::vector<int> gone;
    for (const auto& [index, block] : ofPattern) {
      if (block.lacksAll()) gone.push_back(index);
    }
    if (!gone.empty()) names.push_back("all of " + foldedName(pattern, gone));
  }
  std::map<std::string, std::set<int>> single;
  for (const std::string& name : missing) {
    const auto [pattern, index] = foldIndex(name);
    if (index < 0) {
      single[name];
    } else if (!blocks.at(blockOf(pattern)).at(index).lacksAll()) {
      single[pattern].insert(index);
    }
  }
  for (const auto& [pattern, indices] : single)
    names.push_back(indices.empty() ? pattern : foldedName(pattern, {indices.begin(), indices.end()}));
  return names;
}

}  // namespace

std::string missingWeights(const program::ShardMap& parameters, const graph::Graph& model) {
  std::set<std::string> missing;
  for (const program::ParameterShards& parameter : parameters) {
    if (isMissing(parameter, model)) missing.insert(parameter.name);
  }
  if (missing.empty()) return {};
  const auto names = foldedNames(missing, blocksOf(parameters, missing));
  std::string text =
      fmt::format("{} of the model's {}: ", missing.size(), counted(std::ssize(parameters), "parameter"));
  for (std::size_t i = 0; i < std::min(names.size(), kMostNames); ++i) text += (i == 0 ? "" : ", ") + names[i];
  return names.size() > kMostNames ? fmt::format("{} and {} more", text, names.size() - kMostNames) : text;
}

}  // namespace cleave::plan
