#include "solve/optimal/chain.h"

#include <algorithm>
#include <map>

namespace cleave::solve::optimal {
namespace {

/// Blocks with more labels inside are not folded.
constexpr std::size_t kMostBlockLabels = 1 << 20;
/// The search for repeats looks this many occurrences of a level ahead.
constexpr int kOccurrences = 16;

/// `places` from `first` on, repeated `copies` times.
struct Stretch {
  std::size_t first = 0, places = 0, copies = 0;
};

class StretchFinder {
 public:
  explicit StretchFinder(const Elimination& elimination) : m_elimination(elimination), m_next(elimination.places()) {
    std::vector<std::size_t> last(elimination.levels.size(), elimination.places());
    for (std::size_t place = elimination.places(); place-- > 0;) {
      m_next[place] = std::exchange(last[elimination.levelAt[place]], place);
    }
  }

  /// The longest repetition that begins at `place`, rotated so that there are few states between its copies.
  std::optional<Stretch> at(std::size_t place) {
    const auto& levels = m_elimination.levelAt;
    std::size_t period = 0, covered = 0, next = m_next[place];
    for (int i = 0; i < kOccurrences && next < levels.size(); ++i, next = m_next[next]) {
      const std::size_t distance = next - place;
      const std::size_t equal = equalFrom(place, distance);
      if (equal >= distance && equal + distance > covered) {
        period = distance;
        covered = equal + distance;
      }
    }
    if (period == 0) return std::nullopt;
    std::size_t first = place;
    for (std::size_t p = place; p < place + period; ++p) {
      if (m_elimination.statesBefore(p) < m_elimination.statesBefore(first)) first = p;
    }
    Stretch stretch{first, period, (covered - (first - place)) / period};
    if (stretch.copies < 2) stretch = {place, period, covered / period};
    return stretch;
  }

 private:
  /// Number of places from `place` on whose level repeats `distance` later. It is cached, so that a long run is walked
  /// once.
  std::size_t equalFrom(std::size_t place, std::size_t distance) {
    const auto& levels = m_elimination.levelAt;
    std::size_t& end = m_runEnds[distance];
    if (end <= place) {
      end = place;
      while (end + distance < levels.size() && levels[end] == levels[end + distance]) ++end;
    }
    return end - place;
  }

  const Elimination& m_elimination;
  std::vector<std::size_t> m_next;                         ///< by place: next place with the same level
  std::unordered_map<std::size_t, std::size_t> m_runEnds;  ///< by distance
};

std::shared_ptr<const Relation> relationOf(const Level& level, std::int64_t peakLimit,
                                           const Restriction::Mask* mask = nullptr) {
  auto relation = std::make_shared<Relation>();
  relation->entries = level.entry->count;
  relation->exits = level.exit->count;
  for (std::uint32_t state = 0; state < level.entry->count; ++state) {
    relation->begins.push_back(static_cast<std::uint32_t>(relation->arcs.size()));
    for (std::uint32_t t = level.begins[state]; t < level.begins[state + 1]; ++t) {
      const Transition& transition = level.transitions[t];
      if (!isLeft(mask, t)) continue;
      if (transition.transientBytes >= peakLimit) continue;
      relation->arcs.push_back({transition.femtoseconds, transition.bytes, transition.to, t});
    }
  }
  relation->begins.push_back(static_cast<std::uint32_t>(relation->arcs.size()));
  return relation;
}

/// Null if the block has too many ways, or the work is cancelled.
std::shared_ptr<const Repetition> blockOf(std::vector<std::shared_ptr<const Relation>> inner,
                                          const Progress& progress) {
  auto block = std::make_shared<Repetition>();
  block->places = inner.size();
  Relation& relation = block->relation;
  relation.entries = inner.front()->entries;
  relation.exits = inner.back()->exits;
  std::size_t labels = 0;
  for (std::uint32_t state = 0; state < relation.entries; ++state) {
    auto& sets = block->labels.emplace_back();
    sets.push_back(startingAt(state, relation.entries));
    for (const auto& place : inner) {
      if (progress.cancelled()) return nullptr;
      sets.push_back(extended(sets.back(), *place, {}));
      labels += sets.back().labels.size();
      if (labels > kMostBlockLabels) return nullptr;
    }
    relation.begins.push_back(static_cast<std::uint32_t>(relation.arcs.size()));
    const LabelSet& last = sets.back();
    for (std::uint32_t exit = 0; exit < relation.exits; ++exit) {
      for (std::uint32_t i = last.begins[exit]; i < last.begins[exit + 1]; ++i) {
        relation.arcs.push_back({last.labels[i].femtoseconds, last.labels[i].bytes, exit, i});
      }
    }
  }
  relation.begins.push_back(static_cast<std::uint32_t>(relation.arcs.size()));
  block->inner = std::move(inner);
  return block;
}

/// Merges labels shifted by `arc` into a list, both by rising time, and keeps only the Pareto front. The earlier of two
/// equal labels stays.
class ListMerger {
 public:
  void merge(std::vector<Label>& list, const Label* first, const Label* last, std::uint32_t firstIndex, const Arc& arc,
             std::uint32_t arcIndex, const Keeps& keeps) {
    m_merged.clear();
    auto known = list.begin();
    Wide fewest = kUnreachable;
    const auto append = [&](const Label& label) {
      if (label.bytes >= fewest) return;
      fewest = label.bytes;
      m_merged.push_back(label);
    };
    for (const Label* label = first; label != last; ++label) {
      const Label moved{label->femtoseconds + arc.femtoseconds, label->bytes + arc.bytes,
                        firstIndex + static_cast<std::uint32_t>(label - first), arcIndex};
      while (known != list.end() && !isBefore(moved, *known)) append(*known++);
      if (moved.bytes >= fewest || (keeps && !keeps(arc.to, moved.femtoseconds, moved.bytes))) continue;
      append(moved);
    }
    while (known != list.end()) append(*known++);
    list.swap(m_merged);
  }

 private:
  static bool isBefore(const Label& a, const Label& b) {
    return a.femtoseconds != b.femtoseconds ? a.femtoseconds < b.femtoseconds : a.bytes < b.bytes;
  }
  std::vector<Label> m_merged;
};

}  // namespace

LabelSet startingAt(std::uint32_t state, std::uint32_t states) {
  LabelSet set;
  set.begins.assign(states + 1, 1);
  std::fill_n(set.begins.begin(), state + 1, 0u);
  set.labels.emplace_back();
  return set;
}

LabelSet extended(const LabelSet& labels, const Relation& relation, const Keeps& keeps) {
  std::vector<std::vector<Label>> lists(relation.exits);
  ListMerger merger;
  for (std::uint32_t state = 0; state < relation.entries; ++state) {
    const std::uint32_t begin = labels.begins[state], end = labels.begins[state + 1];
    if (begin == end) continue;
    for (std::uint32_t a = relation.begins[state]; a < relation.begins[state + 1]; ++a) {
      const Arc& arc = relation.arcs[a];
      merger.merge(lists[arc.to], labels.labels.data() + begin, labels.labels.data() + end, begin, arc, a, keeps);
    }
  }
  LabelSet set;
  for (const auto& list : lists) {
    set.begins.push_back(static_cast<std::uint32_t>(set.labels.size()));
    set.labels.insert(set.labels.end(), list.begin(), list.end());
  }
  set.begins.push_back(static_cast<std::uint32_t>(set.labels.size()));
  return set;
}

std::optional<Chain> Chain::of(const Elimination& elimination, std::int64_t peakLimit, const Progress& progress) {
  Chain chain;
  chain.m_peakLimit = peakLimit;
  StretchFinder finder(elimination);
  std::vector<std::shared_ptr<const Relation>> relations(elimination.levels.size());
  const auto relationAt = [&](std::size_t place) {
    auto& relation = relations[elimination.levelAt[place]];
    if (!relation) relation = relationOf(elimination.level(place), peakLimit);
    return relation;
  };
  std::map<std::vector<std::uint32_t>, std::shared_ptr<const Repetition>> blocks;
  for (std::size_t place = 0; place < elimination.places();) {
    if (progress.cancelled()) return std::nullopt;
    const auto stretch = finder.at(place);
    const std::size_t until = stretch ? stretch->first : place + 1;
    for (; place < until; ++place) chain.m_links.push_back({relationAt(place), nullptr, place});
    if (!stretch) continue;
    const auto begin = elimination.levelAt.begin() + static_cast<std::ptrdiff_t>(stretch->first);
    auto& block = blocks[{begin, begin + static_cast<std::ptrdiff_t>(stretch->places)}];
    if (!block) {
      std::vector<std::shared_ptr<const Relation>> inner;
      for (std::size_t i = 0; i < stretch->places; ++i) inner.push_back(relationAt(place + i));
      block = blockOf(std::move(inner), progress);
    }
    for (std::size_t copy = 0; copy < stretch->copies; ++copy) {
      if (block) chain.m_links.push_back({{block, &block->relation}, block, place});
      for (std::size_t i = 0; i < stretch->places; ++i, ++place) {
        if (!block) chain.m_links.push_back({relationAt(place), nullptr, place});
      }
    }
  }
  return chain;
}

Chain Chain::unfolded(const Elimination& elimination, std::int64_t peakLimit, const Restriction& restriction) {
  Chain chain;
  chain.m_peakLimit = peakLimit;
  for (std::size_t place = 0; place < elimination.places(); ++place) {
    chain.m_links.push_back({relationOf(elimination.level(place), peakLimit, restriction.at(place)), nullptr, place});
  }
  return chain;
}

Chain Chain::restricted(const Elimination& elimination, const Restriction& restriction) const {
  Chain chain;
  chain.m_peakLimit = m_peakLimit;
  for (const Link& link : m_links) {
    const std::size_t places = link.block ? link.block->places : 1;
    if (!restriction.isWithin(link.place, link.place + places)) {
      chain.m_links.push_back(link);
      continue;
    }
    for (std::size_t place = link.place; place < link.place + places; ++place) {
      chain.m_links.push_back(
          {relationOf(elimination.level(place), m_peakLimit, restriction.at(place)), nullptr, place});
    }
  }
  return chain;
}

Chain Chain::withCostsSwapped() const {
  Chain chain;
  chain.m_peakLimit = m_peakLimit;
  std::unordered_map<const Relation*, std::shared_ptr<const Relation>> swappedOf;
  for (const Link& link : m_links) {
    auto& relation = swappedOf[link.relation.get()];
    if (!relation) {
      auto exchanged = std::make_shared<Relation>(*link.relation);
      for (Arc& arc : exchanged->arcs) std::swap(arc.femtoseconds, arc.bytes);
      relation = std::move(exchanged);
    }
    chain.m_links.push_back({relation, link.block, link.place});
  }
  return chain;
}

Path Chain::expanded(const std::vector<std::uint32_t>& arcs) const {
  Path path;
  std::uint32_t state = 0;
  for (std::size_t i = 0; i < m_links.size(); ++i) {
    const Link& link = m_links[i];
    const Arc& arc = link.relation->arcs[arcs[i]];
    if (!link.block) {
      path.push_back(arc.pricing);
    } else {
      const auto& sets = link.block->labels[state];
      const std::size_t first = path.size();
      std::uint32_t label = arc.pricing;
      for (std::size_t place = link.block->places; place-- > 0;) {
        const Label& here = sets[place + 1].labels[label];
        path.push_back(link.block->inner[place]->arcs[here.arc].pricing);
        label = here.parent;
      }
      std::reverse(path.begin() + static_cast<std::ptrdiff_t>(first), path.end());
    }
    state = arc.to;
  }
  return path;
}

std::vector<std::vector<Wide>> backward(const Chain& chain, Weights weights) {
  const auto& links = chain.links();
  std::vector<std::vector<Wide>> toGo(links.size() + 1);
  toGo.back().assign(links.empty() ? 1 : links.back().relation->exits, Wide(0));
  for (std::size_t i = links.size(); i-- > 0;) {
    const Relation& relation = *links[i].relation;
    toGo[i].assign(relation.entries, kUnreachable);
    for (std::uint32_t state = 0; state < relation.entries; ++state) {
      for (std::uint32_t a = relation.begins[state]; a < relation.begins[state + 1]; ++a) {
        const Arc& arc = relation.arcs[a];
        toGo[i][state] = std::min(toGo[i][state], weights.of(arc.femtoseconds, arc.bytes) + toGo[i + 1][arc.to]);
      }
    }
  }
  return toGo;
}

PathCost mostOf(const Chain& chain) {
  PathCost most;
  for (const Chain::Link& link : chain.links()) {
    PathCost here;
    for (const Arc& arc : link.relation->arcs) {
      here.femtoseconds = std::max(here.femtoseconds, arc.femtoseconds);
      here.bytes = std::max(here.bytes, arc.bytes);
    }
    most.femtoseconds += here.femtoseconds;
    most.bytes += here.bytes;
  }
  return most;
}

}  // namespace cleave::solve::optimal
