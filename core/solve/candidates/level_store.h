#pragma once
/// Levels by what they are made of, and the sets of states that they lead between.
///
/// A level depends on the kind of its step and on the states before it alone. So where a step of the same kind is
/// entered with the same set of states, its level is found and not made again: in a model of equal blocks all blocks
/// but the first few share theirs. `Level::memoryBytes()` says what one takes. One thread; what is handed out is
/// immutable.
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
  bool isShared = true;  ///< false finds none: what folding saves, and the proof that it changes nothing

  std::shared_ptr<const StateSet> intern(std::size_t width, std::uint32_t count, Words tokens) {
    auto& bucket = m_states[WordsHash()(tokens) ^ (std::size_t(count) << 8 | width)];
    for (const auto& known : bucket) {
      if (known->width == width && known->count == count && known->tokens == tokens) return known;
    }
    m_memoryBytes += sizeof(StateSet) + tokens.size() * sizeof(std::uint32_t);
    bucket.push_back(std::make_shared<const StateSet>(
        StateSet{m_stateSets++, static_cast<std::uint32_t>(width), count, std::move(tokens)}));
    return bucket.back();
  }

  using Key = std::uint64_t;
  /// Of a step whose `kind` says all that a level depends on but the states before it, which `intern` gave.
  Key keyOf(const Words& kind, const StateSet& entry) {
    const auto [known, isNew] = m_kinds.try_emplace(kind, static_cast<std::uint32_t>(m_kinds.size()));
    return Key{known->second} << 32 | entry.id;
  }
  /// Null: not made yet.
  std::shared_ptr<const Level> find(Key key) const {
    const auto known = isShared ? m_levels.find(key) : m_levels.end();
    return known == m_levels.end() ? nullptr : known->second;
  }
  void add(Key key, std::shared_ptr<const Level> level) {
    m_memoryBytes += level->memoryBytes();
    m_levels[key] = std::move(level);
  }

  /// Forgets all; who holds a level or a set keeps it.
  void clear() {
    m_kinds.clear();
    m_states.clear();
    m_levels.clear();
    m_memoryBytes = 0;
  }
  std::uint64_t memoryBytes() const { return m_memoryBytes; }

 private:
  WordsMap<std::uint32_t> m_kinds;
  std::unordered_map<std::size_t, std::vector<std::shared_ptr<const StateSet>>> m_states;  ///< by hash
  std::unordered_map<Key, std::shared_ptr<const Level>> m_levels;
  std::uint32_t m_stateSets = 0;  ///< ever: what was forgotten has no other's id
  std::uint64_t m_memoryBytes = 0;
};

}  // namespace cleave::solve
