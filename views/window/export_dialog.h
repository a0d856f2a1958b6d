#pragma once
/// Previews a plan in the format of another program: the text of the file, and the facts that the format cannot
/// contain. The dialog stays open and follows the shown plan. The texts come from core (exchange/formats.h); the
/// command line writes the same. GUI thread only; a worker makes the texts.
#include <QDialog>
#include <functional>

#include "exchange/formats.h"
#include "views/session/files.h"
#include "views/session/plans.h"
#include "views/worker/worker.h"

class QLabel;
class QListWidget;
class QPlainTextEdit;
class QPushButton;

namespace cleave::views {

class ExportDialog : public QDialog {
  Q_OBJECT
 public:
  /// `title` gives the default file name: "tiny-llama" becomes "tiny-llama.plan.json".
  ExportDialog(const Plans& plans, Files& files, std::function<QString()> title, QWidget* parent = nullptr);
  bool isBusy() const { return m_worker.isBusy(); }

 protected:
  void showEvent(QShowEvent* event) override;

 private:
  struct Preview {
    QString whole, unsaid;
  };
  const exchange::Format& format() const;
  void refresh();
  void showPreview(const Preview& preview);
  void clear(const QString& said);
  void save();

  const Plans& m_plans;
  Files& m_files;
  std::function<QString()> m_title;
  QString m_whole;  ///< full text; the preview shows its beginning
  QListWidget* m_formats;
  QLabel* m_what;
  QPlainTextEdit* m_text;
  QLabel* m_unsaidTitle;
  QPlainTextEdit* m_unsaid;
  QPushButton* m_copy = nullptr;
  QPushButton* m_save = nullptr;
  Worker m_worker;
};

}  // namespace cleave::views
