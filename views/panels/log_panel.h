#pragma once
/// The dock of the log: Cleave's actions, with times.
#include <QPlainTextEdit>

#include "views/session/notices.h"

namespace cleave::views {

class LogPanel : public QPlainTextEdit {
  Q_OBJECT
 public:
  explicit LogPanel(const Notices& notices, QWidget* parent = nullptr);
};

}  // namespace cleave::views
