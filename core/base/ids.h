#pragma once
/// Typed ids: dense indices into a vector that cannot be mixed up (`NodeId`, `ValueId`, `ScopeId`, ...).
///
///     struct NodeTag;  using NodeId = Id<NodeTag>;
///     for (NodeId n : idRange<NodeId>(graph.nodes.size())) use(graph.nodes[n.index()]);
#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>

namespace cleave {

template <class Tag>
class Id {
 public:
  constexpr Id() = default;  ///< the invalid id, see isValid
  constexpr explicit Id(std::size_t index) : m_index(static_cast<std::uint32_t>(index)) {}

  constexpr std::size_t index() const { return m_index; }
  constexpr std::uint32_t raw() const { return m_index; }
  constexpr bool isValid() const { return m_index != kInvalid; }
  constexpr auto operator<=>(const Id&) const = default;

 private:
  static constexpr std::uint32_t kInvalid = std::numeric_limits<std::uint32_t>::max();
  std::uint32_t m_index = kInvalid;
};

/// Iterates over ids 0..count-1.
template <class IdType>
class IdRange {
 public:
  explicit IdRange(std::size_t count) : m_count(count) {}
  struct Iterator {
    std::size_t i;
    IdType operator*() const { return IdType(i); }
    Iterator& operator++() {
      ++i;
      return *this;
    }
    bool operator!=(const Iterator& other) const { return i != other.i; }
  };
  Iterator begin() const { return {0}; }
  Iterator end() const { return {m_count}; }

 private:
  std::size_t m_count;
};

template <class IdType>
IdRange<IdType> idRange(std::size_t count) {
  return IdRange<IdType>(count);
}

}  // namespace cleave

template <class Tag>
struct std::hash<cleave::Id<Tag>> {
  std::size_t operator()(cleave::Id<Tag> id) const noexcept { return std::hash<std::uint32_t>{}(id.raw()); }
};
