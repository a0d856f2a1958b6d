/// Lists the plan and the next best plans, one per signature.
#include "solve/optimal/budget.h"
#include "solve/optimal/eliminated.h"
#include "solve/optimal/paths_in_order.h"
#include "solve/optimal/signatures_in_order.h"

#include <algorithm>
#include <map>
#include <set>

namespace cleave::solve::optimal {
namespace {

constexpr int kMostDivisions = 24;
constexpr int kMostAboveBound = 200;  ///< limit of signatures whose fastest plan is slower than the bound
constexpr std::size_t kMostAlike = 8, kMostAlikeChecked = 64;

}  // namespace

/// Signatures come in the order of their lower bounds. The fastest plan of a signature within the budget is listed as
/// soon as no later signature can have a faster one. The bounds ignore the transient peak, as in `fastestOnChain`. If a
/// plan is slower than its bound, plans with smaller and with larger peaks are bounded separately.
class Eliminated::Lister {
 public:
  Lister(const Eliminated& optimum, const Progress& progress)
      : m_optimum(optimum),
        m_progress(progress),
        m_signatures(optimum.m_elimination, optimum.m_context->problem.context.worldSize) {
    m_known.insert(m_signatures.of(optimum.m_found.path));
    const Elimination& elimination = optimum.m_elimination;
    m_leastPeak = leastPeak(elimination);
    const auto bytes = backward(elimination, kBytes, {}, progress);
    if (!bytes.empty()) m_leastBytes = static_cast<std::int64_t>(bytes.front()) + elimination.fixedBytes;
  }

  Result<Listing> run(std::size_t k, const OnListed& onListed) {
    Listing listing;
    const auto list = [&](const Path& path) -> Result<void> {
      m_progress.report("list plans", static_cast<std::int64_t>(++listing.plans), static_cast<std::int64_t>(k));
      return onListed(listed(path));
    };
    if (k > 0) CLEAVE_TRY_VOID(list(m_optimum.m_found.path));
    if (k > 1) open({}, fastest());
    while (listing.plans < k) {
      if (m_progress.cancelled()) return m_progress.cancelledError("listing plans");
      const auto stream = std::min_element(m_streams.begin(), m_streams.end(), [](const auto& a, const auto& b) {
        return a.signatures->lowerBoundFs() < b.signatures->lowerBoundFs();
      });
      const bool isOver = stream == m_streams.end();
      if (!m_priced.empty() && (isOver || m_priced.begin()->first.first <= stream->signatures->lowerBoundFs())) {
        CLEAVE_TRY_VOID(list(m_priced.begin()->second));
        m_priced.erase(m_priced.begin());
      } else if (isOver) {
        m_isProved = m_isProved && m_optimum.knowsAllPlans();
        break;
      } else {
        advance(*stream);
      }
    }
    listing.isProved = m_isProved;
    return listing;
  }

 private:
  /// The plans whose peak is in [least, below).
  struct Range {
    std::int64_t least = 0, below = Chain::kAnyPeak;
  };
  struct Stream {
    Range range;
    Wide cutFs = 0;
    std::unique_ptr<SignaturesInOrder> signatures;
  };

  /// Starts with the plans that take at most `cutFs`.
  void open(Range range, Wide cutFs) {
    range = {std::max(range.least, m_leastPeak), std::min(range.below - 1, m_optimum.budget() - m_leastBytes) + 1};
    if (range.least >= range.below) return;
    const PathCost limits{cutFs, Wide(m_optimum.budget()) - range.least};
    m_streams.push_back(
        {range, cutFs,
         std::make_unique<SignaturesInOrder>(m_optimum.m_elimination, m_signatures,
                                             SignaturesInOrder::Limits{limits, range.below}, m_progress)});
  }

  void close(const Stream& stream) { m_streams.erase(m_streams.begin() + (&stream - m_streams.data())); }

  /// Processes the next signature of a stream.
  void advance(const Stream& stream) {
    const Wide bound = stream.signatures->lowerBoundFs();
    const auto state = stream.signatures->next();
    if (state == SignaturesInOrder::State::Stopped) return;
    if (state == SignaturesInOrder::State::Exhausted) return widenWindow(stream);
    if (state == SignaturesInOrder::State::OutOfRoom) return giveUp();
    const Signature signature = stream.signatures->signature();
    if (!m_known.insert(signature).second) return;
    price(signature, stream.range, bound);
  }

  void giveUp() {
    m_isProved = false;
    m_streams.clear();
  }

  /// If the budget matters, each time window is several times as wide as the previous one.
  void widenWindow(const Stream& stream) {
    const Range range = stream.range;
    const Wide window = std::max(4 * (stream.cutFs - fastest()), fastest() >> 12);
    const Wide cutFs = std::max(fastest() + window, stream.signatures->lowerBoundFs());
    const bool hasAllPaths = stream.signatures->hasAllPaths();
    close(stream);
    if (!hasAllPaths) open(range, cutFs);
  }

  Wide fastest() const { return m_optimum.m_fastest.cost.femtoseconds().count(); }

  void price(const Signature& signature, Range range, Wide bound) {
    const Restriction restriction = m_signatures.only(signature);
    const Found found = m_optimum.fastestOfMany(restriction, m_optimum.limits(), m_progress);
    if (found.ending == Found::Ending::Stopped) return;
    m_isProved = m_isProved && found.isProved;
    const bool isPlan = found.ending == Found::Ending::Plan;
    const bool reachesBound = isPlan && found.cost.femtoseconds().count() <= bound;
    if (isPlan) m_priced.emplace(std::pair(found.cost.femtoseconds().count(), m_known.size()), found.path);
    if (!reachesBound && !divide(range, restriction) && ++m_aboveBound == kMostAboveBound) giveUp();
  }

  /// Divides the range at the peak of the plan that has the bound, or in the middle if that peak is outside the range.
  bool divide(Range range, const Restriction& restriction) {
    if (m_divisions == kMostDivisions) return false;
    const auto chain = m_optimum.chainOf(restriction, range.below, m_progress);
    if (!chain) return false;
    const Bounded bounded =
        optimal::fastestWithin(m_optimum.m_elimination, *chain, Wide(m_optimum.budget()) - range.least, m_progress);
    if (bounded.ending != Bounded::Ending::Found) return false;
    const PlanCost cost = m_optimum.priceOf(bounded.path);
    if (m_optimum.limits().allow(cost)) return true;
    const bool isInside = range.least < cost.transientPeak && cost.transientPeak < range.below;
    const std::int64_t at = isInside ? cost.transientPeak : range.least + (range.below - range.least) / 2;
    if (at == range.least) return false;
    ++m_divisions;
    const auto same = std::find_if(m_streams.begin(), m_streams.end(),
                                   [&](const Stream& stream) { return stream.range.least == range.least; });
    const Wide cutFs = same->cutFs;
    close(*same);
    open({range.least, at}, cutFs);
    open({at, range.below}, cutFs);
    return true;
  }

  Listed listed(const Path& path) const {
    Listed listed{.solution = m_optimum.solutionOf(path), .differing = {}};
    const PlanCost cost = listed.cost = m_optimum.priceOf(path, listed.solution);
    PathsInOrder paths(m_optimum.m_elimination, Limits::kAny, cost.femtoseconds().count() + 1,
                       m_signatures.only(m_signatures.of(path)), m_progress);
    for (std::size_t i = 0; i < kMostAlikeChecked && listed.alike < kMostAlike; ++i) {
      if (paths.next() != PathsInOrder::State::Found) break;
      if (paths.path() == path) continue;
      const Solution other = m_optimum.solutionOf(paths.path());
      const PlanCost price = m_optimum.priceOf(paths.path(), other);
      if (price.femtoseconds() != cost.femtoseconds() || price.bytes() != cost.bytes()) continue;
      if (listed.alike++ == 0) listed.differing = firstDifference(listed.solution, other);
    }
    return listed;
  }

  ValueId firstDifference(const Solution& a, const Solution& b) const {
    for (const ValueId value : idRange<ValueId>(a.placements.size())) {
      if (a.of(value) != b.of(value)) return value;
    }
    return {};
  }

  const Eliminated& m_optimum;
  const Progress& m_progress;
  const Signatures m_signatures;
  std::set<Signature> m_known;  ///< signatures that are listed, priced, or without a plan within the budget
  std::map<std::pair<Wide, std::size_t>, Path> m_priced;  ///< by time, then in the order of arrival
  std::vector<Stream> m_streams;
  int m_divisions = 0, m_aboveBound = 0;
  std::int64_t m_leastPeak = 0, m_leastBytes = 0;  ///< lower bounds of the peak and the additive bytes of every plan
  bool m_isProved = true;
};

Result<Optimum::Listing> Eliminated::best(std::size_t k, const OnListed& onListed, const Progress& progress) const {
  return Lister(*this, progress).run(k, onListed);
}

}  // namespace cleave::solve::optimal
