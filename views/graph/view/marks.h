#pragma once
/// Marks over the picture that need no new layout: conflicts, breakpoints, search hits, changes between plans, the
/// search's position, and a short flash of the nodes that a step assigned or took back.
///
///     Marks marks;
///     connect(&marks, &Marks::changed, this, [this] { viewport()->update(); });
///     marks.flash(nodes, false);  // `changed` now, and again when the flash ends
#include <QObject>
#include <QTimer>
#include <vector>

#include "views/graph/model/module_tree.h"

namespace cleave::views {

class Marks : public QObject {
  Q_OBJECT
 public:
  explicit Marks(QObject* parent = nullptr);

  const std::vector<NodeId>& conflicts() const { return m_conflicts; }
  const std::vector<NodeId>& breakpoints() const { return m_breakpoints; }
  const std::vector<NodeId>& searchHits() const { return m_searchHits; }
  const std::vector<NodeId>& different() const { return m_different; }  ///< outlined: different in another plan
  NodeId current() const { return m_current; }                          ///< the search's position; invalid: none
  const std::vector<NodeId>& flashing() const { return m_flashing; }
  bool isFlashUndone() const { return m_isFlashUndone; }  ///< the step took the flashing nodes back

  void clear();
  /// Returns the nodes whose boxes must be repainted, because the picture below the marks shows conflicts too: those
  /// in conflict before and after. Empty: nothing changed.
  std::vector<NodeId> setConflicts(std::vector<NodeId> nodes);
  void setBreakpoints(std::vector<NodeId> nodes);
  void setSearchHits(std::vector<NodeId> nodes);
  void setDifferent(std::vector<NodeId> nodes);
  void setCurrent(NodeId node);
  void flash(std::vector<NodeId> nodes, bool isUndone);

 signals:
  void changed();  ///< the marks must be painted again; the picture below is up to date

 private:
  std::vector<NodeId> m_conflicts, m_breakpoints, m_searchHits, m_different, m_flashing;
  NodeId m_current;
  bool m_isFlashUndone = false;
  QTimer m_flashTimer;
};

}  // namespace cleave::views
