// The script's pictures: of the window, of its dialogs, and of the graph alone.
#include <QApplication>
#include <QBuffer>
#include <QDialog>
#include <QElapsedTimer>
#include <QFileInfo>
#include <QListWidget>
#include <QPainter>
#include <QTimer>

#include "views/base/save_file.h"
#include "views/base/text.h"
#include "views/window/graph_area.h"
#include "views/window/script_actions.h"

namespace cleave::views {

namespace {
constexpr int kQuietMs = 120;   // panels merge bursts of signals for up to 60 ms
constexpr int kDialogMs = 400;  // time for a dialog to fill itself
constexpr int kLookMs = 10;
constexpr int kTitleHeight = 30;

/// The dialog above the window. Null: no dialog.
QWidget* shownDialog(const QWidget& window) {
  for (QWidget* const each : QApplication::topLevelWidgets())
    if (each != &window && each->isVisible() && qobject_cast<QDialog*>(each)) return each;
  return nullptr;
}

bool chooseRow(const QWidget& dialog, const QString& text) {
  for (auto* const list : dialog.findChildren<QListWidget*>()) {
    for (QListWidgetItem* const row : list->findItems(text, Qt::MatchExactly)) {
      list->setCurrentItem(row);
      return true;
    }
  }
  return false;
}

/// The dialog over the middle of the window, with its title as a window manager draws it.
QPixmap withDialog(QPixmap window, QWidget& dialog) {
  const QPixmap content = dialog.grab();
  QPainter painter(&window);
  const QSize size(dialog.width(), dialog.height() + kTitleHeight);
  QRect frame(QPoint(), size);
  frame.moveCenter(QRect(QPoint(), window.deviceIndependentSize().toSize()).center());
  painter.fillRect(QRect(QPoint(), window.size()), QColor(0, 0, 0, 70));
  painter.fillRect(frame, dialog.palette().color(QPalette::Mid));
  painter.setPen(dialog.palette().color(QPalette::WindowText));
  painter.setFont(dialog.font());
  painter.drawText(QRect(frame.topLeft(), QSize(size.width(), kTitleHeight)), Qt::AlignCenter, dialog.windowTitle());
  painter.drawPixmap(frame.topLeft() + QPoint(0, kTitleHeight), content);
  painter.drawRect(frame.adjusted(-1, -1, 0, 0));
  return window;
}
}  // namespace

Result<void> ScriptActions::shoot(const QStringList& values) {
  // Running work continues, but pending paints of the window are finished.
  CLEAVE_TRY_VOID(m_jobs.pause(kQuietMs));
  const QString& shot = values[0];
  const QString& action = values[1];
  CLEAVE_TRY(const QString file,
             outputFile(shot.endsWith(QLatin1String(".png")) ? shot : shot + QStringLiteral(".png")));
  QPixmap drawn = m_window.grab();
  if (!action.isEmpty()) {
    CLEAVE_TRY(drawn, pictureOf(action, values[2]));
  }
  QBuffer picture;
  picture.open(QIODevice::WriteOnly);
  if (!drawn.save(&picture, "PNG")) return fail(ErrorCode::Environment, "the window cannot be drawn");
  return saveFile(file, picture.data());
}

Result<QPixmap> ScriptActions::pictureOf(const QString& action, const QString& row) {
  auto* const entry = m_window.findChild<QAction*>(action);
  if (!entry) return fail(ErrorCode::Negative, "unknown action \"{}\"", toStd(action));
  if (!entry->isEnabled()) return fail(ErrorCode::Negative, "the action \"{}\" is disabled", toStd(action));
  // A modal dialog blocks `trigger` until it is closed, so a timer takes the picture.
  std::optional<QPixmap> drawn;
  bool hasRow = row.isEmpty();
  QElapsedTimer shown;
  QTimer look;
  QObject::connect(&look, &QTimer::timeout, &look, [&] {
    QWidget* const dialog = shownDialog(m_window);
    if (!dialog || drawn) return;
    if (!shown.isValid()) {
      hasRow = hasRow || chooseRow(*dialog, row);
      shown.start();
    }
    if (shown.elapsed() < kDialogMs) return;
    drawn = withDialog(m_window.grab(), *dialog);
    dialog->close();
  });
  look.start(kLookMs);
  entry->trigger();
  if (!drawn && !shownDialog(m_window))
    return fail(ErrorCode::Negative, "the action \"{}\" opens no dialog", toStd(action));
  CLEAVE_TRY_VOID(m_jobs.waitUntil([&] { return drawn.has_value(); }, "the dialog"));
  if (!hasRow) return fail(ErrorCode::Negative, "the dialog of \"{}\" has no row \"{}\"", toStd(action), toStd(row));
  return *drawn;
}

/// Only the canvas, in full, as Export would write it.
Result<void> ScriptActions::savePicture(const QStringList& values) {
  CLEAVE_TRY(const QString file, outputFile(values[0]));
  CLEAVE_TRY(const auto picture, m_window.graphArea().exportPicture(QFileInfo(file).suffix().toLower()));
  if (!picture.note.isEmpty()) fmt::print(stderr, "cleave: {}\n", toStd(picture.note));
  return saveFile(file, picture.bytes);
}

}  // namespace cleave::views
