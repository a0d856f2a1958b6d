#include "views/panels/log_panel.h"

#include <QTime>

namespace cleave::views {

namespace {
constexpr int kMostLines = 5000;
}

LogPanel::LogPanel(const Notices& notices, QWidget* parent) : QPlainTextEdit(parent) {
  setReadOnly(true);
  setMaximumBlockCount(kMostLines);
  setPlaceholderText(QStringLiteral("Cleave's actions, with times."));
  setAccessibleName(QStringLiteral("Log"));
  connect(&notices, &Notices::logged, this, [this](const QString& line) {
    appendPlainText(QTime::currentTime().toString(QStringLiteral("HH:mm:ss  ")) + line);
  });
}

}  // namespace cleave::views
