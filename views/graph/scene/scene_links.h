#pragma once
/// The connections in a scene, across the borders of open modules.
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "views/graph/scene/scene.h"

namespace cleave::views {

/// Lines and boxes that are connected to one box, followed through ports.
struct Neighbourhood {
  std::vector<std::uint32_t> edges;
  std::vector<std::uint32_t> items;
};

class SceneLinks {
 public:
  explicit SceneLinks(const Scene& scene);
  Neighbourhood readersOf(std::uint32_t item) const { return walk(item, true); }
  Neighbourhood sourcesOf(std::uint32_t item) const { return walk(item, false); }

 private:
  Neighbourhood walk(std::uint32_t item, bool forwards) const;
  static std::uint64_t key(std::uint32_t frame, ValueId value) { return (std::uint64_t(frame) << 32) | value.raw(); }

  const Scene& m_scene;
  std::vector<std::vector<std::uint32_t>> m_out, m_in;  ///< edges by item
  std::unordered_map<std::uint64_t, std::vector<std::uint32_t>> m_fromPort, m_toPort;
};

}  // namespace cleave::views
