#pragma once
/// A plan in the words of other programs before it is written: what the file will hold, and what its format cannot say.
/// Stays open and follows the plan that is shown. The texts are core's (exchange/formats.h), the command line writes
/// the same. GUI thread only; texts are made behind it.
#include <QDialog>
#include <functional>

#include "exchange/formats.h"
#include "views/base/worker.h"
#include "views/session/files.h"
#include "views/session/plans.h"

class QLabel;
class QListWidget;
class QPlainTextEdit;
class QPushButton;

namespace cleave::views {

class ExportDialog : public QDialog {
  Q_OBJECT
 public:
  /// What `title` answers is what files are called when nobody says otherwise: "tiny-llama" becomes
  /// "tiny-llama.plan.json".
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
  QString m_whole;  ///< what the preview is the beginning of
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
