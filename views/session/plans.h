#pragma once
/// The plans of the open model: at most two, A before a change and B after it. One of them is shown, and there is a
/// diff between them. GUI thread only.
///
/// Solving again after a change keeps the previous solve as branch A and shows the new one as branch B. All views show
/// the shown branch. Solving again with the spec of A leaves only A. Results are immutable and shared.
#include <QObject>

#include "pipeline/solve/what_fits.h"
#include "plan/build/diff.h"
#include "solve/explain/remedy.h"
#include "views/session/debugger.h"
#include "views/session/jobs.h"
#include "views/session/settings.h"

namespace cleave::views {

/// One solve of the open model, kept for comparison.
struct Branch {
  QString name;                                    ///< "A", "B"
  QString label;                                   ///< A: "learning, 2 ranks"; B: what changed, "lm_head=row"
  spec::PlanSpec spec;                             ///< what it was asked
  std::shared_ptr<const pipeline::Solved> solved;  ///< null: the search was stopped
  std::shared_ptr<const plan::Plan> plan;          ///< null: there is no solution
  std::shared_ptr<const solve::Trace> trace;
  QString said;  ///< a warning, or the reason why there is no plan; may be empty
  Severity severity = Severity::Info;
};

class Plans : public QObject {
  Q_OBJECT
 public:
  Plans(const OpenedModel& opened, Settings& settings, const Jobs& jobs, Debugger& debugger, Notices& notices,
        QObject* parent = nullptr);

  // The shown branch. Null before the first solve, and while a running search is shown.
  const std::shared_ptr<const pipeline::Solved>& solved() const { return m_solved; }
  const std::shared_ptr<const plan::Plan>& plan() const { return m_plan; }
  /// What its solve was asked. The settings if there is no solve.
  const spec::PlanSpec& spec() const;
  /// The settings have changed since the shown branch was solved.
  bool isOutdated() const;
  /// The reason why there is no plan. Empty: there is a plan.
  QString whyNone() const;
  /// A sample about conflicts opens on its first one.
  bool isAboutConflicts() const;
  /// Remedies make sense for the shown plan: it met a conflict, or a layer stayed replicated.
  bool isWorthRemedies() const;

  // Branches. Empty before the first solve has ended.
  const std::vector<Branch>& branches() const { return m_branches; }
  std::size_t shownBranch() const { return m_shownBranch; }
  void showBranch(std::size_t index);
  void dropBranch();  ///< discards B and shows A
  void keepBranch();  ///< B becomes the only one
  /// From A to B. Null with fewer than two plans, during the computation, and after a failure.
  const std::shared_ptr<const plan::PlanDiff>& diff() const { return m_diff; }
  const QString& diffFailure() const { return m_diffFailure; }

  // Changes to the shown plan. They apply to its own spec and discard later unsolved changes of the settings.
  void applyChange(const solve::Change& change);
  /// Solves again with a change that fits, after a new capture if the change needs one.
  void applyFit(const pipeline::Fit& fit);
  /// Sets the budget to the memory of the plan at this point of the front.
  void usePoint(const solve::ParetoPoint& point);

  /// A plan from a file, unchanged. Null: the open file is not a plan.
  const std::shared_ptr<const plan::Plan>& openedPlan() const { return m_openedPlan; }
  /// The problem with the folder of that plan's model. Empty: no problem.
  const QString& whyOpenedCannotRun() const { return m_whyOpenedCannotRun; }

 signals:
  void planChanged();
  void branchesChanged();  ///< also when the diff arrived
  void recaptureWanted(const spec::InputSpec& input, const spec::PlanSpec& settings);

 private:
  friend class Session;  // opens, solves and restores
  /// `whyNotRun`: the problem with the folder of its model. Empty: no problem.
  void applyOpened(const std::shared_ptr<const plan::Plan>& plan, const QString& whyNotRun);
  void take(Branch branch);
  /// Sets the next branch's label, which otherwise lists the changes: "Plan of theirs.json".
  void nameNext(const QString& name) { m_nextName = name; }
  /// Shows a running search instead of a branch.
  void showLive(std::shared_ptr<const solve::Trace> trace);
  /// Restores the state before a search that failed. `before`: its trace, if there was no branch.
  void showAgain(std::shared_ptr<const solve::Trace> before);
  /// Stores the sentence with the shown branch and reports it.
  void say(const QString& text, Severity severity);
  void forget();  ///< another model is open; `announce` informs the views
  void announce();
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
