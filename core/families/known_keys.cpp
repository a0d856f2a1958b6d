#include "families/known_keys.h"
#include "families/family_table.h"

#include <nlohmann/json.hpp>

#include <algorithm>

namespace cleave::families {
namespace {

/// Visits every part of a family and collects the names of its keys.
class KeyCollector {
 public:
  std::set<std::string_view> collect(const Family& family) {
    addAll(family.isBidirectional, family.vocab, family.hidden, family.layerCount, family.positions, family.isTied);
    visit(family.norm);
    const Embeddings& embeddings = family.embeddings;
    addAll(embeddings.multiplier, embeddings.width, embeddings.typeCount);
    visit(family.position);
    visit(family.attention);
    addAll(family.mlp.size, family.mlp.hasBias, family.mlp.activation);
    if (family.experts.rule != SparseRule::Never) (*this)(family.experts);
    visit(family.block);
    for (const HeadClass& head : family.heads) visit(head.head);
    for (const RefusedKey& key : family.refused) m_keys.insert(key.name);
    m_keys.insert(family.choosesBy.begin(), family.choosesBy.end());
    m_keys.erase("");
    return std::move(m_keys);
  }

  void operator()(const RmsNorm& part) { addAll(part.eps); }
  void operator()(const LayerNorm& part) { addAll(part.eps, part.isAffine); }
  void operator()(const CenteredNorm& part) { addAll(part.eps); }

  void operator()(const Rope& part) {
    addAll(part.theta, part.fraction, part.localTheta, part.plainEvery);
    m_keys.insert({"rope_parameters", "rope_scaling"});
    if (!part.plainEvery.name.empty()) m_keys.insert("no_rope_layers");
  }
  void operator()(const LearnedPositions&) {}
  void operator()(const Alibi&) {}
  void operator()(const NoPositions&) {}

  void operator()(const SelfAttention& part) {
    addAll(part.qkvBias, part.outputBias, part.heads, part.keyValueHeads, part.headDim, part.softCap);
    if (const auto* norm = std::get_if<HeadNorm>(&part.queryKeyNorm)) addAll(norm->isUsed);
    visit(part.scale);
    const Windows& windows = part.windows;
    if (windows.rule == WindowRule::Never) return;
    addAll(windows.isUsed, windows.size, windows.pattern);
    m_keys.insert("layer_types");
    const bool hasMost =
        windows.rule == WindowRule::AboveMaxWindowLayers || windows.rule == WindowRule::EvenBelowMaxWindowLayers;
    if (hasMost) addAll(windows.maxWindowLayers);
  }
  void operator()(const LatentAttention& part) {
    addAll(part.heads, part.queryRank, part.keyValueRank, part.plainDim, part.rotatedDim, part.valueDim, part.hasBias,
           part.isInterleaved);
  }
  void operator()(const HeadSizeScale& part) { addAll(part.isUsed, part.isByLayer); }
  void operator()(const InverseRootScale& part) { addAll(part.number); }
  void operator()(const MultiplierScale& part) { addAll(part.number); }
  void operator()(const QueryScale&) {}

  void operator()(const Experts& part) {
    addAll(part.step, part.routerBias, part.count, part.perToken, part.size, part.areSharesNormalised,
           part.sharesFactor, part.groups, part.groupsKept, part.alpha, part.limit, part.sharedSize, part.sharedCount);
    if (part.rule == SparseRule::EveryStep) m_keys.insert("mlp_only_layers");
  }

  void operator()(const PreNorm& part) { addAll(part.residualMultiplier, part.isResidualNormed); }
  void operator()(const PostNorm&) {}
  void operator()(const OutputNorm&) {}
  void operator()(const Sandwich&) {}
  void operator()(const ParallelResidual&) {}

  void operator()(const CausalHead& part) { addAll(part.hasBias, part.multiplier, part.divisor, part.softCap); }
  void operator()(const MaskedHead&) {}
  void operator()(const ClassifierHead& part) {
    addAll(part.labels);
    m_keys.insert({"id2label", "problem_type"});
  }

 private:
  template <class Part>
  void visit(const Part& part) {
    std::visit([this](const auto& alternative) { (*this)(alternative); }, part);
  }
  template <class... Keys>
  void addAll(const Keys&... keys) {
    (add(keys), ...);
  }
  template <class Key>
  void add(const Key& key) {
    m_keys.insert(key.name);
    if constexpr (requires { key.alias; }) m_keys.insert(key.alias);
  }

  std::set<std::string_view> m_keys;
};

}  // namespace

std::set<std::string_view> keysOf(const Family& family) { return KeyCollector().collect(family); }

std::vector<std::string> ignoredKeys(const Family& family, const nlohmann::json& config) {
  const Family* row = findFamily(family.modelType);
  const std::set<std::string_view> own = keysOf(row ? *row : family);
  std::set<std::string_view> all;
  for (const Family* other : families()) all.merge(keysOf(*other));
  std::vector<std::string> ignored;
  for (const auto& [key, value] : config.items()) {
    if (!value.is_null() && all.contains(key) && !own.contains(key)) ignored.push_back(key);
  }
  std::ranges::sort(ignored);
  return ignored;
}

}  // namespace cleave::families
