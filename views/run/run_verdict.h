#pragma once
/// A run's verdict as a word and a sentence, with remedies, and the strip that shows them at the top of the run view.
#include <QLabel>
#include <QWidget>
#include <functional>
#include <vector>

#include "views/session/runs.h"

class QPushButton;

namespace cleave::views {

class ElidedLabel;
class FlowLayout;

enum class Tone : std::uint8_t { Quiet, Working, Good, Bad };

struct Verdict {
  QString word;        ///< "passed", "failed", "running"
  QString sentence;    ///< the rest of it
  QString difference;  ///< where the run first differs, in several lines; while it runs, the notice about a rank that
                       ///< the others wait for; else empty
  Tone tone = Tone::Quiet;
};
/// `difference`: for the shown plan. Null: not searched for.
Verdict verdictOf(const RunState* state, const FirstDifference* difference);
/// The finding in the command line's words. Empty: not searched for.
QString differenceText(const FirstDifference* difference);
QString verdictWord(pipeline::RunVerdict verdict);  ///< "passed"
/// The progress of a training run: "step 3 of 5, loss 4.24". Empty: no step has finished.
QString stepText(const std::vector<protocol::TrainingStep>& steps);

/// A remedy, as a button.
struct RunRemedy {
  QString name;  ///< "Find the First Difference"
  QString tip;
  std::function<void()> act;
};

class VerdictStrip : public QWidget {
  Q_OBJECT
 public:
  explicit VerdictStrip(QWidget* parent = nullptr);
  void setVerdict(const Verdict& verdict, std::vector<RunRemedy> remedies);
  const Verdict& verdict() const { return m_verdict; }

 protected:
  void changeEvent(QEvent* event) override;

 private:
  void paintWord();
  Verdict m_verdict;
  QLabel* m_word;
  ElidedLabel* m_sentence;
  ElidedLabel* m_difference;
  QWidget* m_buttons;
  FlowLayout* m_row;
  QStringList m_names;  ///< names of the visible buttons
};

}  // namespace cleave::views
