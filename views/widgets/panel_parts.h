#pragma once
/// Parts that several panels share: the empty page of a panel, and answers with buttons.
#include <QLabel>
#include <QPushButton>
#include <QScrollArea>
#include <QTimer>
#include <QWidget>
#include <functional>
#include <initializer_list>
#include <vector>

#include "views/base/target.h"

class QProgressBar;
class QVBoxLayout;

namespace cleave::views {

/// A panel's future content and the one action that fills it. While the action runs: its progress and a stop button.
class EmptyState : public QWidget {
  Q_OBJECT
 public:
  explicit EmptyState(QWidget* parent = nullptr);
  /// `action` empty: no button.
  void say(const QString& text, const QString& action = {});
  void work(const QString& text);
  void setProgress(qint64 done, qint64 total);  ///< total 0: unknown

 signals:
  void acted();
  void cancelled();

 private:
  QLabel* m_text;
  QPushButton* m_action;
  QProgressBar* m_progress;
  QPushButton* m_cancel;
};

/// A button whose text is shortened in the middle if necessary: the verb and the end of a long name stay.
class ElidedButton : public QPushButton {
  Q_OBJECT
 public:
  using QPushButton::QPushButton;
  QSize minimumSizeHint() const override;

 protected:
  void paintEvent(QPaintEvent* event) override;
};

/// One line of text, shortened with "…" if necessary. The tooltip then has the full text.
class ElidedLabel : public QLabel {
  Q_OBJECT
 public:
  using QLabel::QLabel;
  QSize minimumSizeHint() const override;

 protected:
  void paintEvent(QPaintEvent* event) override;
  bool event(QEvent* event) override;

 private:
  QString shownText() const;
};

/// An action for the user about a panel's content: a short text, optional figures, a button.
struct Offer {
  QString html;    ///< with links; may be empty
  QString button;  ///< empty: no action, only text
  QString tip;
  std::function<void()> act;
};

/// A scrollable list of offers, hidden while it is empty. `followed` reports clicked links.
class OfferList : public QScrollArea {
  Q_OBJECT
 public:
  explicit OfferList(QWidget* parent = nullptr);
  /// `headHtml` is above the offers. Unchanged widgets are kept, so that a refresh does not lose the keyboard focus.
  void setOffers(const QString& headHtml, std::vector<Offer> offers);
  void clear();
  /// At most this share of the panel's height. The rest scrolls.
  void limitTo(QWidget& panel, int percent);
  QString plainText() const;  ///< all of it, for copying
  QSize sizeHint() const override;
  QSize minimumSizeHint() const override;

 signals:
  void followed(const cleave::views::Target& target);

 protected:
  void resizeEvent(QResizeEvent* event) override;
  void changeEvent(QEvent* event) override;
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  QLabel* addText(const QString& html);
  QWidget* m_page;
  QVBoxLayout* m_layout;
  QString m_head;
  std::vector<Offer> m_offers;
  QWidget* m_panel = nullptr;  ///< whose height limits this list; null: no limit
  int m_percent = 100;         ///< of the panel's height
};

/// Calls `refresh` once for a burst of starts, soon after the first one. A long burst does not delay it further.
class RefreshTimer : public QTimer {
  Q_OBJECT
 public:
  static constexpr int kSoonMs = 20, kTablesMs = 60;  ///< tables may update later than the canvas while scrubbing
  RefreshTimer(QWidget* panel, std::function<void()> refresh, int delayMs = kSoonMs);
  /// Starts the timer at each of these signals. The senders outlive the panel.
  template <class Part>
  RefreshTimer& follow(const Part& part, std::initializer_list<void (Part::*)()> all) {
    for (const auto signal : all) connect(&part, signal, this, &RefreshTimer::startOnce);
    return *this;
  }
  /// Starts the timer when the panel's colours change, because rich text keeps those of its creation.
  RefreshTimer& followPalette();
  void startOnce();

 protected:
  bool eventFilter(QObject* panel, QEvent* event) override;
};
/// Lays the widgets out below each other, without margins and gaps. `stretched` gets the remaining height.
QVBoxLayout* makeColumn(QWidget* page, std::initializer_list<QWidget*> widgets, QWidget* stretched = nullptr);
/// A thin line between parts of a panel.
QWidget* makeRule();
/// Calls `follow` with the target of a link that is clicked.
void onLink(QLabel& label, std::function<void(const Target&)> follow);

}  // namespace cleave::views
