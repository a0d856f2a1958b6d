#pragma once
/// How a run stands, in a word and a sentence, what can be done about it, and the strip that says so: above all else in
/// the run view, whatever its size.
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
  QString difference;  ///< where it first computed something else, in several lines; while it runs: what was seen of a
                       ///< rank that the others wait for; else empty
  Tone tone = Tone::Quiet;
};
/// `difference`: of the plan shown; null: it was not looked for.
Verdict verdictOf(const RunState* state, const FirstDifference* difference);
/// The finding as the command line says it; empty: it was not looked for.
QString differenceText(const FirstDifference* difference);
QString verdictWord(pipeline::RunVerdict verdict);  ///< "passed"
/// How far a training run is: "step 3 of 5, loss 4.24"; empty: no step is through.
QString stepText(const std::vector<protocol::TrainingStep>& steps);

/// Something that helps, as a button.
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
  QStringList m_names;  ///< of the buttons that are there
};

}  // namespace cleave::views
