#pragma once
/// A cache of levels and of the sets of states between them.
///
/// A level depends only on the kind of its step and on the states before it. A step of the same kind with the same
/// entry states reuses the level. In a model of equal blocks, all blocks except the first few share their levels.
/// `Level::memoryBytes()` is the size of a level. Use the store from one thread; levels and sets are immutable.
///
///     const auto key = store.keyOf(kind, *entry);
///     auto level = store.find(key);
///     if (!level) store.add(key, level = made(step, *entry));
#include "solve/candidates/sweep.h"

#include <memory>

namespace cleave::solve {

template <class Level>
class LevelStore {
 public:
  bool isShared = true;  ///< false disables reuse, for measurements and for tests that it changes no result

  std::shared_ptr<const StateSet> intern(std::size_t width, std::uint32_t count, IdTuple tokens) {
    auto& bucket = m_states[IdTupleHash()(tokens) ^ (std::size_t(count) << 8 | width)];
    for (const auto& known : bucket) {
      if (known->width == width && known->count == count && known->tokens == tokens) return known;
    }
    m_memoryBytes += sizeof(StateSet) + tokens.size() * sizeof(std::uint32_t);
    bucket.push_back(std::make_shared<const StateSet>(
        StateSet{m_stateSets++, static_cast<std::uint32_t>(width), count, std::move(tokens)}));
    return bucket.back();
  }

  using Key = std::uint64_t;
  /// The key of a level. `kind` describes the step, and `entry` is a result of `intern`.
  Key keyOf(const IdTuple& kind, const StateSet& entry) {
    const auto [known, isNew] = m_kinds.try_emplace(kind, static_cast<std::uint32_t>(m_kinds.size()));
    return Key{known->second} << 32 | entry.id;
  }
  /// Null if the level is not cached.
  std::shared_ptr<const Level> find(Key key) const {
    const auto known = isShared ? m_levels.find(key) : m_levels.end();
    return known == m_levels.end() ? nullptr : known->second;
  }
  void add(Key key, std::shared_ptr<const Level> level) {
    m_memoryBytes += level->memoryBytes();
    m_levels[key] = std::move(level);
  }

  /// Drops all levels and sets. Shared pointers of callers stay valid.
  void clear() {
    m_kinds.clear();
    m_states.clear();
    m_levels.clear();
    m_memoryBytes = 0;
  }
  std::uint64_t memoryBytes() const { return m_memoryBytes; }

 private:
  IdTupleMap<std::uint32_t> m_kinds;
  std::unordered_map<std::size_t, std::vector<std::shared_ptr<const StateSet>>> m_states;  ///< by hash
  std::unordered_map<Key, std::shared_ptr<const Level>> m_levels;
  std::uint32_t m_stateSets = 0;  ///< number of sets ever added, so that ids are never reused
  std::uint64_t m_memoryBytes = 0;
};

}  // namespace cleave::solve
