// The File menu: open, save and export.
#include <QDir>
#include <QFileDialog>
#include <QFileInfo>
#include <QLabel>
#include <QMenuBar>
#include <QSettings>

#include "pipeline/source/hub_model.h"
#include "views/base/text.h"
#include "views/window/export_dialog.h"
#include "views/window/graph_area.h"
#include "views/window/hub_dialog.h"
#include "views/window/main_window.h"
#include "views/window/message_bar.h"
#include "views/window/start_page.h"

namespace cleave::views {

namespace {
constexpr int kMaxRecent = 8;
const QString kRecentKey = QStringLiteral("recent"), kSessionEnding = QStringLiteral(".cleave");
}  // namespace

void MainWindow::makeFileMenu() {
  QMenu* file = menuBar()->addMenu(QStringLiteral("&File"));
  addAction(file, QStringLiteral("open"), QStringLiteral("&Open Model Folder…"), QKeySequence::Open,
            [this] { openDialog(); });
  addAction(file, QStringLiteral("open-file"), QStringLiteral("Open Program, Plan, &Trace or Session…"),
            QKeySequence(QStringLiteral("Ctrl+Shift+O")), [this] { openFileDialog(); });
  addAction(file, QStringLiteral("open-hub"), QStringLiteral("Open from the &Hub…"),
            QKeySequence(QStringLiteral("Ctrl+Alt+O")), [this] { openHubDialog(); });
  m_recentMenu = file->addMenu(QStringLiteral("Open &Recent"));
  QMenu* samples = file->addMenu(QStringLiteral("&Samples"));
  if (m_samples)
    for (const pipeline::Sample& sample : *m_samples) {
      QAction* entry = samples->addAction(toQ(sample.title));
      entry->setToolTip(toQ(sample.lookFor));
      connect(entry, &QAction::triggered, this, [this, &sample] { m_session.openSample(sample); });
    }
  samples->setToolTipsVisible(true);
  samples->setEnabled(m_samples.has_value());
  file->addSeparator();
  addAction(file, QStringLiteral("save-session"), QStringLiteral("&Save Session"), QKeySequence::Save,
            [this] { saveSession(); });
  addAction(file, QStringLiteral("save-session-as"), QStringLiteral("Save Session &As…"),
            QKeySequence(QStringLiteral("Ctrl+Shift+S")), [this] { saveSessionAs(); });
  addAction(file, QStringLiteral("save-trace"), QStringLiteral("Save T&race…"), {}, [this] {
    const QString path =
        QFileDialog::getSaveFileName(this, QStringLiteral("Save the recorded search"),
                                     m_session.title() + QStringLiteral(".trace"), QStringLiteral("Traces (*.trace)"));
    if (!path.isEmpty()) m_session.saveTrace(path);
  });
  addAction(file, QStringLiteral("export-plan"), QStringLiteral("Export &Plan…"),
            QKeySequence(QStringLiteral("Ctrl+E")), [this] { exportPlan(); });
  addAction(file, QStringLiteral("save-picture"), QStringLiteral("Export P&icture…"),
            QKeySequence(QStringLiteral("Ctrl+Shift+E")), [this] { savePicture(); });
  file->addSeparator();
  addAction(file, QStringLiteral("quit"), QStringLiteral("&Quit"), QKeySequence::Quit, [this] { close(); });
}

void MainWindow::openPath(const QString& path) { m_session.open(path); }

void MainWindow::openDialog() {
  const QFileInfo opened(m_session.opened().folder());  // for an exported program its archive
  const QString from = opened.filePath().isEmpty() ? QDir::homePath()
                       : opened.isFile()           ? opened.absolutePath()
                                                   : opened.filePath();
  const QString path =
      QFileDialog::getExistingDirectory(this, QStringLiteral("Open a model folder (config.json inside)"), from);
  if (!path.isEmpty()) openPath(path);
}

void MainWindow::openFileDialog() {
  const QString path = QFileDialog::getOpenFileName(
      this,
      QStringLiteral(
          "Open an exported program, a plan (also of transformers or PyTorch), a recorded search or a session"),
      m_session.opened().source(),
      QStringLiteral("Programs, plans, traces and sessions (*.pt2 *.json *.trace *.cleave);;All files (*)"));
  if (!path.isEmpty()) openPath(path);
}

void MainWindow::openHubDialog() {
  if (const auto id = askForHubModel(this)) openPath(*id);
}

void MainWindow::remember(const QString& path) {
  if (!m_remembers) return;
  QSettings settings;
  QStringList recent = settings.value(kRecentKey).toStringList();
  const QString absolute = QFileInfo(path).absoluteFilePath();
  recent.removeAll(absolute);
  recent.prepend(absolute);
  settings.setValue(kRecentKey, QStringList(recent.mid(0, kMaxRecent)));
  updateRecent();
}

void MainWindow::updateRecent() {
  const QStringList recent = m_remembers ? QSettings().value(kRecentKey).toStringList() : QStringList();
  m_start->setRecent(recent);
  m_recentMenu->clear();
  m_recentMenu->setEnabled(!recent.isEmpty());
  for (const QString& path : recent) {
    QString text = path;
    if (const QString name = toQ(pipeline::modelName(toStd(path))); name.contains(QLatin1Char('/')))
      text = name;                                         // a snapshot in the Hub's cache
    text.replace(QLatin1Char('&'), QStringLiteral("&&"));  // a single one marks a menu's mnemonic
    connect(m_recentMenu->addAction(text), &QAction::triggered, this, [this, path] { openPath(path); });
  }
}

/// Saves to the session's current file.
void MainWindow::saveSession() {
  if (m_sessionFile.isEmpty()) return saveSessionAs();
  m_session.save(m_sessionFile, m_graph->savedView());
}

void MainWindow::saveSessionAs() {
  const QString proposed = m_sessionFile.isEmpty() ? m_session.title() + kSessionEnding : m_sessionFile;
  QFileDialog dialog(this, QStringLiteral("Save the session"), proposed, QStringLiteral("Sessions (*.cleave)"));
  dialog.setAcceptMode(QFileDialog::AcceptSave);
  dialog.setDefaultSuffix(kSessionEnding.mid(1));  // the dialog asks before it overwrites
  dialog.selectFile(proposed);
  if (dialog.exec() != QDialog::Accepted || dialog.selectedFiles().isEmpty()) return;
  const QString file = dialog.selectedFiles().constFirst();
  m_sessionFile = file;
  saveSession();
  remember(file);
}

void MainWindow::applySession(const QString& file, const SavedView& view) {
  m_sessionFile = file;
  m_graph->restore(view);
  if (file.isEmpty()) return;
  remember(file);
  m_status->setText(QStringLiteral("Opened the session %1").arg(QFileInfo(file).fileName()));
}

void MainWindow::exportPlan() {
  if (!m_export)
    m_export = new ExportDialog(
        m_session.plans(), m_session.files(), [this] { return m_session.title(); }, this);
  m_export->show();
  m_export->raise();
}

void MainWindow::savePicture() {
  const QString path = QFileDialog::getSaveFileName(this, QStringLiteral("Export the graph as a picture"),
                                                    m_session.title() + QStringLiteral(".svg"),
                                                    QStringLiteral("SVG (*.svg);;PDF (*.pdf);;PNG (*.png)"));
  if (path.isEmpty()) return;
  const auto picture = m_graph->exportPicture(QFileInfo(path).suffix().toLower());
  if (!picture) return m_message->show(toQ(picture.error().message), Severity::Failure);
  m_session.files().save(
      path, [bytes = picture->bytes] { return bytes; }, picture->note);
}

}  // namespace cleave::views
