#include "views/graph/scene/scene_links.h"

#include <algorithm>

namespace cleave::views {

SceneLinks::SceneLinks(const Scene& scene) : m_scene(scene), m_out(scene.items().size()), m_in(scene.items().size()) {
  for (std::uint32_t i = 0; i < scene.edges().size(); ++i) {
    const SceneEdge& edge = scene.edges()[i];
    if (edge.from != SceneItem::kNone)
      m_out[edge.from].push_back(i);
    else
      for (const ValueId v : scene.values(edge)) m_fromPort[key(edge.frame, v)].push_back(i);
    if (edge.to != SceneItem::kNone)
      m_in[edge.to].push_back(i);
    else
      for (const ValueId v : scene.values(edge)) m_toPort[key(edge.frame, v)].push_back(i);
  }
}

Neighbourhood SceneLinks::walk(std::uint32_t item, bool forwards) const {
  Neighbourhood found;
  struct Step {
    std::uint32_t edge;
    ValueId value;
  };
  std::vector<Step> pending;
  const auto push = [&](const std::vector<std::uint32_t>& edges, ValueId only) {
    for (const std::uint32_t e : edges)
      for (const ValueId v : m_scene.values(m_scene.edges()[e]))
        if (!only.isValid() || v == only) pending.push_back({e, v});
  };
  push(forwards ? m_out[item] : m_in[item], ValueId());
  while (!pending.empty()) {
    const Step step = pending.back();
    pending.pop_back();
    const SceneEdge& edge = m_scene.edges()[step.edge];
    const bool isKnown = std::find(found.edges.begin(), found.edges.end(), step.edge) != found.edges.end();
    if (!isKnown) found.edges.push_back(step.edge);
    const std::uint32_t end = forwards ? edge.to : edge.from;
    if (end == SceneItem::kNone) {  // through the border of its frame, outwards
      const SceneItem& frame = m_scene.items()[edge.frame];
      const auto& edges = forwards ? m_out[edge.frame] : m_in[edge.frame];
      if (frame.kind == ItemKind::Frame) push(edges, step.value);
    } else if (m_scene.items()[end].kind == ItemKind::Frame) {  // inwards
      const auto& ports = forwards ? m_fromPort : m_toPort;
      if (const auto inside = ports.find(key(end, step.value)); inside != ports.end()) push(inside->second, step.value);
    } else if (std::find(found.items.begin(), found.items.end(), end) == found.items.end()) {
      found.items.push_back(end);
    }
  }
  std::sort(found.items.begin(), found.items.end());
  return found;
}

}  // namespace cleave::views
