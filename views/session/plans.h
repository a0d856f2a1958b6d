#pragma once
/// The plans that were made of the open model: at most two, A before a change and B after it, the one of them that is
/// shown, and the diff between them. GUI thread only.
///
/// Solving again with something changed keeps the solve before as branch A and shows the new one as branch B; every
/// view shows the shown branch. Solving again with the very options of A leaves A alone. Results are immutable and
/// shared.
#include <QObject>

#include "pipeline/what_fits.h"
#include "plan/diff.h"
#include "solve/explain/remedy.h"
#include "views/session/debugger.h"
#include "views/session/jobs.h"
#include "views/session/settings.h"

namespace cleave::views {

/// One solve of the open model, kept so that it can be compared with another.
struct Branch {
  QString name;                                    ///< "A", "B"
  QString label;                                   ///< A: "learning, 2 ranks"; B: what changed, "lm_head=row"
  pipeline::SolveOptions options;                  ///< what it was solved with
  std::shared_ptr<const pipeline::Solved> solved;  ///< null: the search was stopped
  std::shared_ptr<const plan::Plan> plan;          ///< null: there is no solution
  std::shared_ptr<const solve::Trace> trace;
  QString said;  ///< what there is to know about it: a warning, or why there is no plan; empty: nothing
  Severity severity = Severity::Info;
};

class Plans : public QObject {
  Q_OBJECT
 public:
  Plans(const OpenedModel& opened, Settings& settings, const Jobs& jobs, Debugger& debugger, Notices& notices,
        QObject* parent = nullptr);

  // Of the branch that is shown; null before the first solve, and while a search is looked at.
  const std::shared_ptr<const pipeline::Solved>& solved() const { return m_solved; }
  const std::shared_ptr<const plan::Plan>& plan() const { return m_plan; }
  /// What it was solved with; the settings where nothing was solved.
  const pipeline::SolveOptions& options() const;
  /// Solving now would answer for other settings than those of the shown branch.
  bool isOutdated() const;
  /// What there is instead of a plan; empty: there is one.
  QString whyNone() const;
  /// A sample that meets conflicts is there to show them: it opens on the first one.
  bool isAboutConflicts() const;
  /// The plan shown is worth asking what would make it better: a conflict on the way, or a layer that stayed whole.
  bool isWorthRemedies() const;

  // Branches. Empty before the first solve has ended.
  const std::vector<Branch>& branches() const { return m_branches; }
  std::size_t shownBranch() const { return m_shownBranch; }
  void showBranch(std::size_t index);
  void dropBranch();  ///< B goes, A is shown
  void keepBranch();  ///< B becomes the only one
  /// From A to B; null with fewer than two plans, while it is computed, and when it failed.
  const std::shared_ptr<const plan::PlanDiff>& diff() const { return m_diff; }
  const QString& diffFailure() const { return m_diffFailure; }

  // Changes to what is shown, which they were tried on: settings that were touched since, and not solved with, go.
  void applyChange(const solve::Change& change);
  /// Solves again with what was found to fit, captured again where it asks for that.
  void applyFit(const pipeline::Fit& fit);
  /// Sets the budget to what the plan at this point of the front needs.
  void usePoint(const solve::ParetoPoint& point);

  // For the session.
  /// From a file, as it stands there; null: what is open is none.
  const std::shared_ptr<const plan::Plan>& openedPlan() const { return m_openedPlan; }
  /// `whyNotRun`: what is wrong with the folder of its model; empty: nothing.
  void takeOpened(const std::shared_ptr<const plan::Plan>& plan, const QString& whyNotRun);
  const QString& whyOpenedCannotRun() const { return m_whyOpenedCannotRun; }
  void take(Branch branch);
  /// What the next branch is called, instead of what changed: "Plan of theirs.json".
  void nameNext(const QString& name) { m_nextName = name; }
  /// Shows a search under way instead of a branch.
  void showLive(std::shared_ptr<const solve::Trace> trace);
  /// What was there before a search that came to nothing; `before`: its trace, where there was no branch.
  void showAgain(std::shared_ptr<const solve::Trace> before);
  /// Keeps it with the shown branch, and says it.
  void say(const QString& text, Severity severity);
  void forget();  ///< another model is open; everyone is told by `announce`
  void announce();

 signals:
  void planChanged();
  void branchesChanged();  ///< also when the diff arrived
  void recaptureWanted(const torch_capture::CaptureOptions& capture, const pipeline::SolveOptions& settings);

 private:
  void present();
  void postDiff();
  QString recordedText(const solve::Trace& trace) const;

  const OpenedModel& m_opened;
  Settings& m_settings;
  const Jobs& m_jobs;
  Debugger& m_debugger;
  Notices& m_notices;
  std::shared_ptr<const pipeline::Solved> m_solved;
  std::shared_ptr<const plan::Plan> m_plan;
  std::shared_ptr<const plan::Plan> m_openedPlan;
  QString m_whyOpenedCannotRun;
  std::vector<Branch> m_branches;
  std::size_t m_shownBranch = 0;
  std::shared_ptr<const plan::PlanDiff> m_diff;
  QString m_diffFailure;
  QString m_nextName;
};

}  // namespace cleave::views
