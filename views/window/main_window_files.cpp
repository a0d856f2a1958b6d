// The File menu: what is opened, saved and exported.
#include <QDir>
#include <QFileDialog>
#include <QFileInfo>
#include <QLabel>
#include <QMenuBar>
#include <QSettings>

#include "pipeline/hub_model.h"
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
  QMenu* file = menuBar()->addMenu(tr("&File"));
  addAction(file, QStringLiteral("open"), tr("&Open Model Folder…"), QKeySequence::Open, [this] { openDialog(); });
  addAction(file, QStringLiteral("open-file"), tr("Open Program, Plan, &Trace or Session…"),
            QKeySequence(QStringLiteral("Ctrl+Shift+O")), [this] { openFileDialog(); });
  addAction(file, QStringLiteral("open-hub"), tr("Open from the &Hub…"), QKeySequence(QStringLiteral("Ctrl+Alt+O")),
            [this] { openHubDialog(); });
  m_recentMenu = file->addMenu(tr("Open &Recent"));
  QMenu* samples = file->addMenu(tr("&Samples"));
  if (m_samples)
    for (const pipeline::Sample& sample : *m_samples) {
      QAction* entry = samples->addAction(toQ(sample.title));
      entry->setToolTip(toQ(sample.lookFor));
      connect(entry, &QAction::triggered, this, [this, &sample] { m_session.openSample(sample); });
    }
  samples->setToolTipsVisible(true);
  samples->setEnabled(m_samples.has_value());
  file->addSeparator();
  addAction(file, QStringLiteral("save-session"), tr("&Save Session"), QKeySequence::Save, [this] { saveSession(); });
  addAction(file, QStringLiteral("save-session-as"), tr("Save Session &As…"),
            QKeySequence(QStringLiteral("Ctrl+Shift+S")), [this] { saveSessionAs(); });
  addAction(file, QStringLiteral("save-trace"), tr("Save T&race…"), {}, [this] {
    const QString path = QFileDialog::getSaveFileName(
        this, tr("Save the recorded search"), m_session.title() + QStringLiteral(".trace"), tr("Traces (*.trace)"));
    if (!path.isEmpty()) m_session.saveTrace(path);
  });
  addAction(file, QStringLiteral("export-plan"), tr("Export &Plan…"), QKeySequence(QStringLiteral("Ctrl+E")),
            [this] { exportPlan(); });
  addAction(file, QStringLiteral("save-picture"), tr("Export P&icture…"), QKeySequence(QStringLiteral("Ctrl+Shift+E")),
            [this] { savePicture(); });
  file->addSeparator();
  addAction(file, QStringLiteral("quit"), tr("&Quit"), QKeySequence::Quit, [this] { close(); });
}

void MainWindow::openPath(const QString& path) { m_session.open(path); }

void MainWindow::openDialog() {
  const QFileInfo opened(m_session.opened().folder());  // of an exported program its archive
  const QString from = opened.filePath().isEmpty() ? QDir::homePath()
                       : opened.isFile()           ? opened.absolutePath()
                                                   : opened.filePath();
  const QString path = QFileDialog::getExistingDirectory(this, tr("Open a model folder (config.json inside)"), from);
  if (!path.isEmpty()) openPath(path);
}

void MainWindow::openFileDialog() {
  const QString path = QFileDialog::getOpenFileName(
      this, tr("Open an exported program, a plan (also of transformers or PyTorch), a recorded search or a session"),
      m_session.opened().source(),
      tr("Programs, plans, traces and sessions (*.pt2 *.json *.trace *.cleave);;All files (*)"));
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
      text = name;                                         // of a snapshot in the Hub's cache
    text.replace(QLatin1Char('&'), QStringLiteral("&&"));  // one alone marks the key of a menu
    connect(m_recentMenu->addAction(text), &QAction::triggered, this, [this, path] { openPath(path); });
  }
}

/// To the file that it came from, or was saved to before.
void MainWindow::saveSession() {
  if (m_sessionFile.isEmpty()) return saveSessionAs();
  m_session.save(m_sessionFile, m_graph->savedView());
}

void MainWindow::saveSessionAs() {
  const QString proposed = m_sessionFile.isEmpty() ? m_session.title() + kSessionEnding : m_sessionFile;
  QFileDialog dialog(this, tr("Save the session"), proposed, tr("Sessions (*.cleave)"));
  dialog.setAcceptMode(QFileDialog::AcceptSave);
  dialog.setDefaultSuffix(kSessionEnding.mid(1));  // asks before it overwrites what is called so
  dialog.selectFile(proposed);
  if (dialog.exec() != QDialog::Accepted || dialog.selectedFiles().isEmpty()) return;
  const QString file = dialog.selectedFiles().constFirst();
  m_sessionFile = file;
  saveSession();
  remember(file);
}

void MainWindow::takeSession(const QString& file, const SavedView& view) {
  m_sessionFile = file;
  m_graph->restore(view);
  if (file.isEmpty()) return;
  remember(file);
  m_status->setText(tr("Opened the session %1").arg(QFileInfo(file).fileName()));
}

void MainWindow::exportPlan() {
  if (!m_export)
    m_export = new ExportDialog(
        m_session.plans(), m_session.files(), [this] { return m_session.title(); }, this);
  m_export->show();
  m_export->raise();
}

void MainWindow::savePicture() {
  const QString path = QFileDialog::getSaveFileName(this, tr("Export the graph as a picture"),
                                                    m_session.title() + QStringLiteral(".svg"),
                                                    tr("SVG (*.svg);;PDF (*.pdf);;PNG (*.png)"));
  if (path.isEmpty()) return;
  const auto picture = m_graph->exportPicture(QFileInfo(path).suffix().toLower());
  if (!picture) return m_message->show(toQ(picture.error().message), Severity::Failure);
  m_session.files().save(
      path, [bytes = picture->bytes] { return bytes; }, picture->note);
}

}  // namespace cleave::views
