#pragma once
/// A strategy for one layer, with the placements of its tensors.
#include "rules/placement.h"
#include "rules/strategy.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace cleave::rules {

/// One strategy that a layer may use: the sizes divide, and the candidate set contains it.
struct LayerStrategy {
  Strategy strategy = Strategy::Replicated;
  Placement input, weight, bias, result;
  std::optional<CollectiveKind> before, after;
  std::string reason;             ///< "4096 output features split over 8 ranks, 512 each"
  std::optional<Placement> down;  ///< placement of LayerShape::down; nullopt if the layer does not have it
};

/// True if each rank has only a part of the weight. Parts with as many replicas as ranks do not count.
bool isSplit(const LayerStrategy& option, int worldSize);

/// The strategy of a layer, or no strategy. All copies share one object, so a plan of thousands of equal layers stores
/// each strategy once. Works like std::optional<LayerStrategy>, but is immutable; any thread may read it.
class ChosenStrategy {
 public:
  ChosenStrategy() = default;
  ChosenStrategy(std::nullopt_t) {}
  ChosenStrategy(LayerStrategy option) : m_option(std::make_shared<const LayerStrategy>(std::move(option))) {}
  ChosenStrategy(std::optional<LayerStrategy> option) {
    if (option) m_option = std::make_shared<const LayerStrategy>(*std::move(option));
  }
  operator std::optional<LayerStrategy>() const { return m_option ? std::optional(*m_option) : std::nullopt; }

  bool has_value() const { return m_option != nullptr; }
  explicit operator bool() const { return has_value(); }
  const LayerStrategy& operator*() const { return *m_option; }
  const LayerStrategy* operator->() const { return m_option.get(); }
  void reset() { m_option.reset(); }

 private:
  std::shared_ptr<const LayerStrategy> m_option;
};

/// One strategy of the candidate set that the sizes rule out, with the numbers.
struct Refusal {
  Strategy strategy = Strategy::Replicated;
  std::string reason;  ///< "257 vocabulary rows do not divide by 2 ranks"
};

/// All strategies of a layer for all placements of its input, in candidate order (the reference's order for
/// CandidateSet::Optimum). A search keeps those whose `input` matches. Strategy `replicated` is offered if no other
/// strategy is.
struct LayerStrategies {
  std::vector<LayerStrategy> offered;
  std::vector<Refusal> refused;
};

}  // namespace cleave::rules
