#pragma once
/// The box that an arrow key goes to.
#include <QtCore/qnamespace.h>

#include "views/graph/scene/scene.h"
#include "views/graph/scene/scene_links.h"

namespace cleave::views {

/// Down and up follow edges, also through open modules. Left and right go to the neighbour in the same row. kNone:
/// there is no such box. `from` kNone: the first box.
std::uint32_t nextBox(const Scene& scene, const SceneLinks& links, std::uint32_t from, Qt::Key arrow);

}  // namespace cleave::views
