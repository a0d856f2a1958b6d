#pragma once
/// The breakpoints of the debugger: a check box and the condition in words.
#include <QAbstractTableModel>

#include "views/session/debugger.h"
#include "views/session/opened_model.h"

namespace cleave::views {

/// "conflict in model.layers.3", "linear_4", "a try that gives S(2)".
QString describe(const solve::Breakpoint& breakpoint, const graph::Graph* graph);
/// Reads the text of the "add" box: `conflict`, `backtrack>8`, `op:mm`, `in:layers.3`, `placement:S(1)`, a value's
/// name, several of them together, and `x5` for the hit count. A BadUsage error lists the accepted forms.
Result<solve::Breakpoint> parseBreakpoint(const QString& text, const graph::Graph& graph);

class BreakpointsModel : public QAbstractTableModel {
  Q_OBJECT
 public:
  BreakpointsModel(const OpenedModel& opened, Debugger& debugger, QObject* parent = nullptr);
  int rowCount(const QModelIndex& parent = {}) const override;
  int columnCount(const QModelIndex& parent = {}) const override;
  QVariant data(const QModelIndex& index, int role) const override;
  bool setData(const QModelIndex& index, const QVariant& value, int role) override;
  Qt::ItemFlags flags(const QModelIndex& index) const override;
  QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

 private:
  const OpenedModel& m_opened;
  Debugger& m_debugger;
  std::vector<solve::Breakpoint> m_shown;
};

}  // namespace cleave::views
