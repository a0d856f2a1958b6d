#pragma once
/// The dock of modules: the tree with its bars and a filter. It follows the step and the focus shortly after the
/// canvas.
#include <QWidget>

#include "views/session/plans.h"
#include "views/session/selection.h"
#include "views/session/splits.h"

class QLineEdit;
class QTreeView;

namespace cleave::views {

class ChangeMarks;
class ModulesModel;
class WordFilterModel;

class ModulesPanel : public QWidget {
  Q_OBJECT
 public:
  ModulesPanel(const OpenedModel& opened, const Plans& plans, const Splits& splits, Selection& selection,
               QWidget* parent = nullptr);

 private:
  void makeLayout();
  void showModel();
  void showFocus();
  void follow(const QModelIndex& row);
  const Splits& m_splits;
  Selection& m_selection;
  ModulesModel* m_model;
  ChangeMarks* m_marks;
  WordFilterModel* m_proxy;
  QTreeView* m_tree;
  QLineEdit* m_filter;
  bool m_isShowing = false;  ///< the selection follows the focus; the user did not choose it
};

}  // namespace cleave::views
