#pragma once
/// Checks that need no search: operators without a rule, sizes that do not divide, replicated weights, and the rank
/// counts that work. A click on a rank count uses it for the next solve.
#include <QWidget>

#include "views/base/rich_text.h"
#include "views/session/answers.h"
#include "views/session/selection.h"

class QBoxLayout;
class QLabel;
class QPushButton;
class QScrollArea;

namespace cleave::views {

class EmptyState;
class LinkText;
class WorldSizeStrip;

/// The pre-flight as rich text with links.
QString preflightText(const plan::Preflight& preflight, const graph::Graph& graph, int ranks, const TextColors& colors);

class PreflightPanel : public QWidget {
  Q_OBJECT
 public:
  PreflightPanel(const OpenedModel& opened, Settings& settings, Answers& answers, Selection& selection,
                 QWidget* parent = nullptr);

 protected:
  void resizeEvent(QResizeEvent* event) override;

 private:
  void refresh();
  void refreshSizes();
  const OpenedModel& m_opened;
  Settings& m_settings;
  Answers& m_answers;
  QBoxLayout* m_layout;
  LinkText* m_text;
  EmptyState* m_empty;
  QWidget* m_sizes;
  QScrollArea* m_scroll;  ///< around m_sizes, for large fonts and small docks
  WorldSizeStrip* m_strip;
  QLabel* m_detail;
  QPushButton* m_again;
};

}  // namespace cleave::views
