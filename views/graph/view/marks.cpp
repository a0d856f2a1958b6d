#include "views/graph/view/marks.h"

#include <utility>

namespace cleave::views {
namespace {

constexpr int kFlashMs = 150;
constexpr std::size_t kMostFlashes = 64;

}  // namespace

Marks::Marks(QObject* parent) : QObject(parent) {
  m_flashTimer.setSingleShot(true);
  m_flashTimer.setInterval(kFlashMs);
  connect(&m_flashTimer, &QTimer::timeout, this, [this] {
    m_flashing.clear();
    emit changed();
  });
}

void Marks::clear() {
  for (auto* nodes : {&m_conflicts, &m_breakpoints, &m_searchHits, &m_different, &m_flashing}) nodes->clear();
  m_current = {};
  emit changed();
}

std::vector<NodeId> Marks::setConflicts(std::vector<NodeId> nodes) {
  if (nodes == m_conflicts) return {};
  std::vector<NodeId> touched = std::exchange(m_conflicts, std::move(nodes));
  touched.insert(touched.end(), m_conflicts.begin(), m_conflicts.end());
  return touched;
}

void Marks::setBreakpoints(std::vector<NodeId> nodes) {
  m_breakpoints = std::move(nodes);
  emit changed();
}

void Marks::setSearchHits(std::vector<NodeId> nodes) {
  m_searchHits = std::move(nodes);
  emit changed();
}

void Marks::setDifferent(std::vector<NodeId> nodes) {
  m_different = std::move(nodes);
  emit changed();
}

void Marks::setCurrent(NodeId node) {
  m_current = node;
  emit changed();
}

void Marks::flash(std::vector<NodeId> nodes, bool isUndone) {
  if (nodes.size() > kMostFlashes) nodes.clear();  // a jump instead of a step: too many boxes would flash
  m_flashing = std::move(nodes);
  m_isFlashUndone = isUndone;
  if (!m_flashing.empty()) m_flashTimer.start();
  emit changed();
}

}  // namespace cleave::views
