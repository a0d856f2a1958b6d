#pragma once
/// A list whose items are made one by one while it is read, so that no copy of all items is in memory.
///
///     for (const Entry& entry : MadeItems(count, [&](std::size_t i) { return entryOf(i); })) ...
#include <cstddef>
#include <utility>

namespace cleave {

/// `make(i)` makes item i; it may return a reference. Must outlive its iterators.
template <class Make>
class MadeItems {
 public:
  MadeItems(std::size_t count, Make make) : m_count(count), m_make(std::move(make)) {}

  class Iterator {
   public:
    Iterator(const Make& make, std::size_t at) : m_make(&make), m_at(at) {}
    decltype(auto) operator*() const { return (*m_make)(m_at); }
    Iterator& operator++() {
      ++m_at;
      return *this;
    }
    bool operator!=(const Iterator& other) const { return m_at != other.m_at; }

   private:
    const Make* m_make;
    std::size_t m_at;
  };
  Iterator begin() const { return {m_make, 0}; }
  Iterator end() const { return {m_make, m_count}; }
  bool empty() const { return m_count == 0; }

 private:
  std::size_t m_count;
  Make m_make;
};

}  // namespace cleave
