#pragma once
/// A plan in the words of other programs before it is written: what the file will hold, and what its format cannot say.
/// Stays open and follows the plan that is shown. The texts are core's (exchange/formats.h), the command line writes
/// the same. GUI thread only; texts are made behind it.
#include <QDialog>

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
  ExportDialog(const Plans& plans, Files& files, QWidget* parent = nullptr);
  /// What files are called when nobody says otherwise: "tiny-llama" becomes "tiny-llama.plan.json".
  void setTitle(const QString& title) { m_title = title; }
  bool isBusy() const { return m_worker.isBusy(); }

 private:
  const exchange::Format& format() const;
  void refresh();
  void showText(const Result<exchange::Exported>& exported);
  void clear(const QString& said);
  void save();

  const Plans& m_plans;
  Files& m_files;
  QString m_title;
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
