#pragma once
/// A table panel with a model of its own, whose rows have change marks (change_marks.h).
///
///     class LayersPanel : public MarkedTable<LayersModel> { ... model().setPlan(plan); ... };
#include "views/panels/change_marks.h"
#include "views/widgets/tables.h"

namespace cleave::views {

template <class Model>
class MarkedTable : public TablePanel {
 protected:
  MarkedTable(const OpenedModel& opened, const Plans& plans, const QString& filterHint, const QString& emptyText,
              QWidget* parent)
      : MarkedTable(new Model(nullptr), opened, plans, filterHint, emptyText, parent) {}
  Model& model() const { return *m_model; }

 private:
  MarkedTable(Model* model, const OpenedModel& opened, const Plans& plans, const QString& filterHint,
              const QString& emptyText, QWidget* parent)
      : TablePanel(new ChangeMarks(opened, plans, model, nullptr), filterHint, emptyText, parent), m_model(model) {
    proxy()->sourceModel()->setParent(this);
    model->setParent(this);
  }
  Model* m_model;
};

}  // namespace cleave::views
