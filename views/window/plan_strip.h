#pragma once
/// What is told of the shown plan before all else, above the graph: its time and bytes, how much of the model it
/// splits, how many layers it leaves whole and for which causes, and what it is a plan of. The figures are the plan's
/// own, as the command line writes them.
#include <QLabel>

#include "views/session/document.h"

namespace cleave::views {

class PlanStrip : public QLabel {
  Q_OBJECT
 public:
  explicit PlanStrip(Document& document, QWidget* parent = nullptr);

 protected:
  void changeEvent(QEvent* event) override;

 private:
  void refresh();
  Document& m_document;
};

}  // namespace cleave::views
