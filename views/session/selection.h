#pragma once
/// The shared focus of all views, its history, and the hits of the search box. Follows the debugger: a step moves the
/// focus to its node. GUI thread only.
///
///     selection.focusNode(node);            // every view follows focusChanged
///     selection.goBack();                   // the place before, with its step
///     selection.find("op:mm in:layers.3");  selection.walkHits(true);
#include "views/base/target.h"
#include "views/session/debugger.h"
#include "views/session/opened_model.h"
#include "views/session/search_query.h"

namespace cleave::views {

/// Invalid ids: not in focus.
struct Focus {
  NodeId node;
  ValueId value;
  ScopeId scope;
  StepId step = 0;
  bool operator==(const Focus&) const = default;
};

class Selection : public QObject {
  Q_OBJECT
 public:
  Selection(const OpenedModel& opened, Debugger& debugger, QObject* parent = nullptr);

  const Focus& focus() const { return m_focus; }
  // These return false if the open graph has no such element.
  bool focusNode(NodeId node);
  bool focusValue(ValueId value);
  bool focusScope(ScopeId scope);
  void clearFocus();
  /// False for a target that is not in the open graph, and for a question.
  bool follow(const Target& target);

  bool canGoBack() const { return m_historyAt > 0; }
  bool canGoForward() const { return m_historyAt + 1 < m_history.size(); }
  void goBack();
  void goForward();

  /// Returns the number of hits. BadUsage as in SearchQuery::parse. Hits that depend on the step are searched again at
  /// each step.
  Result<std::size_t> find(const QString& text);
  const std::vector<NodeId>& hits() const { return m_hits; }
  void walkHits(bool forward);

 signals:
  void focusChanged();
  void revealRequested();  ///< the focus was moved on purpose: scroll to it
  void followRequested();  ///< a step moved the focus: keep it in view with minimal motion
  void historyChanged();
  void hitsChanged();

 private:
  friend class Session;  // opens models
  void forget();         ///< another model is open; `announce` informs the views
  void announce();
  void arrive(NodeId node, bool isJump);
  void setFocus(const Focus& focus, bool remember);
  void keepPlace(const Focus& focus, bool isJump);
  void revisit(const Focus& focus);
  void findHits();
  void findHitsOfStep();

  const OpenedModel& m_opened;
  Debugger& m_debugger;
  Focus m_focus;
  std::vector<Focus> m_history;
  std::size_t m_historyAt = 0;
  bool m_placeIsStep = false;  ///< the current place was reached by single steps
  SearchQuery m_query;
  std::vector<NodeId> m_hits;
  std::size_t m_hitAt = 0;
};

}  // namespace cleave::views
