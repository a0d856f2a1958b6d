// Exports the bounds of the last sweep as a certificate. Equal tables of states, and of bounds relative to a base, are
// stored once.
#include "solve/optimal/eliminated.h"

#include <algorithm>
#include <map>
#include <numeric>

namespace cleave::solve::optimal {
namespace {

class Exporter {
 public:
  Exporter(const Elimination& elimination, const std::vector<Wide>& toGo) : m_elimination(elimination), m_toGo(toGo) {}

  Certificate run(Weights weights) {
    m_certificate.timeWeight = weights.time;
    m_certificate.byteWeight = weights.bytes;
    m_certificate.order = m_elimination.layout.order;
    const std::size_t places = m_elimination.places();
    for (std::size_t place = 0; place <= places; ++place) addBoundary(place);
    return std::move(m_certificate);
  }

 private:
  const StateSet& statesBefore(std::size_t place) const {
    return place == 0 ? *m_elimination.level(0).entry : *m_elimination.level(place - 1).exit;
  }

  /// The slots before a place in the order of the certificate: first the bucket, then values by id.
  std::vector<std::uint32_t> slotsBefore(std::size_t place) const {
    if (place == 0) return {};
    const auto begin = m_elimination.slotValues.begin() + m_elimination.slotsBegin[place - 1],
               end = m_elimination.slotValues.begin() + m_elimination.slotsBegin[place];
    std::vector<std::uint32_t> slots(static_cast<std::size_t>(end - begin));
    std::iota(slots.begin(), slots.end(), 0u);
    const auto rank = [&](std::uint32_t slot) { return begin[slot].isValid() ? begin[slot].index() + 1 : 0; };
    std::sort(slots.begin(), slots.end(), [&](std::uint32_t a, std::uint32_t b) { return rank(a) < rank(b); });
    return slots;
  }

  void addBoundary(std::size_t place) {
    const StateSet& states = statesBefore(place);
    const Wide* toGo = m_toGo.data() + m_elimination.offsets[place];
    Wide least = kUnreachable;
    for (std::uint32_t state = 0; state < states.count; ++state) least = std::min(least, toGo[state]);
    if (least >= kUnreachable) least = 0;
    std::vector<std::optional<Wide>> claims;
    std::string key;
    for (std::uint32_t state = 0; state < states.count; ++state) {
      claims.push_back(toGo[state] >= kUnreachable ? std::nullopt : std::optional(toGo[state] - least));
      const Wide relative = claims.back().value_or(-1);
      key.append(reinterpret_cast<const char*>(&relative), sizeof(relative));
    }
    const auto next = static_cast<std::uint32_t>(m_certificate.claims.size());
    const auto [known, isNew] = m_claims.try_emplace(std::move(key), next);
    if (isNew) m_certificate.claims.push_back(std::move(claims));
    m_certificate.boundaries.push_back({statesOf(states, slotsBefore(place)), known->second, least});
  }

  std::uint32_t statesOf(const StateSet& states, const std::vector<std::uint32_t>& slots) {
    const auto next = static_cast<std::uint32_t>(m_certificate.states.size());
    std::vector<std::uint32_t> key = slots;
    key.push_back(states.id);
    const auto [known, isNew] = m_states.try_emplace(std::move(key), next);
    if (!isNew) return known->second;
    CertifiedStates& table = m_certificate.states.emplace_back();
    table.count = states.count;
    table.width = slots.size();
    for (std::uint32_t state = 0; state < states.count; ++state) {
      for (const std::uint32_t slot : slots) {
        const std::uint32_t token = states.at(state)[slot];
        table.tokens.push_back({placementOf(Token::placement(token)), Token::charged(token)});
      }
    }
    return next;
  }

  std::uint32_t placementOf(std::uint32_t id) {
    const auto next = static_cast<std::uint32_t>(m_certificate.placements.size());
    const auto [known, isNew] = m_placements.try_emplace(id, next);
    if (isNew) m_certificate.placements.push_back(m_elimination.placements[id]);
    return known->second;
  }

  const Elimination& m_elimination;
  const std::vector<Wide>& m_toGo;
  Certificate m_certificate;
  std::unordered_map<std::string, std::uint32_t> m_claims;        ///< by their contents
  std::map<std::vector<std::uint32_t>, std::uint32_t> m_states;   ///< by slots and state set
  std::unordered_map<std::uint32_t, std::uint32_t> m_placements;  ///< by the elimination's id
};

}  // namespace

std::optional<Certificate> Eliminated::certificate(const Progress& progress) const {
  if (m_elimination.droppedFs || m_elimination.places() == 0) return std::nullopt;
  Weights weights = kTime;
  auto toGo = backward(m_elimination, weights, {}, progress);
  if (toGo.empty()) return std::nullopt;
  if (toGo.front() + m_elimination.fixedFs < m_fastest.cost.femtoseconds().count()) {
    const Wide limit = Wide(m_context->problem.cost.budgetBytes()) - m_elimination.fixedBytes;
    weights = multiplierFor(m_elimination, limit, {}, progress);
    if (weights.bytes > 0) toGo = backward(m_elimination, weights, {}, progress);
    if (toGo.empty()) return std::nullopt;
  }
  return Exporter(m_elimination, toGo).run(weights);
}

}  // namespace cleave::solve::optimal
