#pragma once
/// The interned tables of a trace, which store equal entries once. Entries never move, so references stay valid while
/// others are added. One thread adds, any thread reads.
#include "base/result.h"
#include "solve/problem/choice.h"

#include <deque>
#include <mutex>
#include <unordered_map>
#include <vector>

namespace cleave::solve {

std::size_t hashOf(const Choice& choice);
std::size_t hashOf(const ConflictRecord& conflict);

template <class Entry, class EntryId>
class InternTable {
 public:
  EntryId add(Entry entry) {
    const std::lock_guard lock(m_mutex);
    auto& bucket = m_byHash[hashOf(entry)];
    for (EntryId id : bucket) {
      if (m_entries[id.index()] == entry) return id;
    }
    const EntryId id(m_entries.size());
    m_entries.push_back(std::move(entry));
    bucket.push_back(id);
    return id;
  }
  const Entry& at(EntryId id) const {
    const std::lock_guard lock(m_mutex);
    CLEAVE_CHECK(id.index() < m_entries.size(), "the id is in this table");
    return m_entries[id.index()];
  }
  std::size_t size() const {
    const std::lock_guard lock(m_mutex);
    return m_entries.size();
  }

 private:
  mutable std::mutex m_mutex;
  std::deque<Entry> m_entries;
  std::unordered_map<std::size_t, std::vector<EntryId>> m_byHash;
};

using ChoiceTable = InternTable<Choice, ChoiceId>;
using ConflictTable = InternTable<ConflictRecord, ConflictId>;

}  // namespace cleave::solve
