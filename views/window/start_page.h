#pragma once
/// The page before a model is open: open a folder, recent models, and the bundled samples with one sentence each.
#include <QAbstractButton>
#include <QWidget>

#include "pipeline/session/samples.h"

class QLayout;
class QVBoxLayout;

namespace cleave::views {

/// A button with a title and a wrapped sentence.
class CardButton : public QAbstractButton {
  Q_OBJECT
 public:
  CardButton(const QString& title, const QString& sentence, QWidget* parent = nullptr);
  QSize sizeHint() const override;
  bool hasHeightForWidth() const override { return true; }
  int heightForWidth(int width) const override;

 protected:
  void paintEvent(QPaintEvent* event) override;
  bool event(QEvent* event) override;

 private:
  QFont titleFont() const;
  QString m_sentence;
};

class StartPage : public QWidget {
  Q_OBJECT
 public:
  explicit StartPage(QWidget* parent = nullptr);
  void setRecent(const QStringList& paths);
  void setSamples(const Result<std::vector<pipeline::Sample>>& samples);

 signals:
  void openRequested();
  void hubRequested();
  void recentChosen(const QString& path);
  void sampleChosen(int index);

 private:
  QLayout* makeOpening();  ///< what the program does, and the ways to open a model
  QLayout* makeSamples();
  QVBoxLayout* m_recent;
  QVBoxLayout* m_samples;
};

}  // namespace cleave::views
