#pragma once
/// What can be asked about a model and its solution beyond what the search recorded: why and why not, what every other
/// choice costs, what would help, which world sizes work, the trade of time against memory. Belongs to the Session.
///
/// Every answer is immutable, computed on a worker, and dropped when its subject is gone (a newer question of its kind,
/// or another solution). Short questions (analysis, why not, pre-flight) and surveys, which solve many times (remedies,
/// world sizes, front), have a worker each, so that a click is answered while a survey goes on. A pending question
/// reads as null (or as a WhyNotReply without an answer); isPending says so. GUI thread only.
#include "pipeline/what_fits.h"
#include "plan/preflight.h"
#include "plan/world_sizes.h"
#include "solve/explain/explain.h"
#include "solve/explain/remedy.h"
#include "views/base/worker.h"
#include "views/session/settings.h"
#include "views/session/step_state.h"

namespace cleave::views {

/// About the focused value under the shown solution.
struct Analysis {
  ValueId value;
  NodeId node;
  std::vector<solve::WhyLink> why;
  std::optional<std::vector<solve::Regret>> regrets;  ///< nullopt: the engine was not `optimal`
};

/// A why-not question and, once it is known, its answer or one sentence on why there is none.
struct WhyNotReply {
  ValueId value;  ///< of the question; a layer's result where it was about a strategy
  NodeId node;
  std::optional<rules::Placement> placement;  ///< one of these two
  std::optional<rules::Strategy> strategy;
  QString question;  ///< "Why is linear_3 not S(2)?"
  std::optional<solve::WhyNot> answer;
  QString failure;
  bool isPending() const { return !answer && failure.isEmpty(); }
};

/// Changes that help, best first.
struct Remedies {
  std::vector<solve::Remedy> offers;
  NodeId conflict;                     ///< the node of the conflict they were sought for; invalid: the whole search
  std::optional<pipeline::Fits> fits;  ///< where the memory budget leaves no plan: what would
  QString failure;                     ///< one sentence, when they could not be computed
};

/// How the model does on other numbers of ranks.
struct WorldSizes {
  std::vector<plan::WorldSize> rows;
  bool isComplete = true;  ///< false: stopped before the last
};

/// Plans that no other beats in both time and memory.
struct Front {
  solve::Optimum::Front front;
  QString failure;
};

/// Per node, for colours: what the shown solution costs there and how much the next choice would cost more.
struct Heat {
  std::vector<solve::StepCost> costs;                  ///< by NodeId
  std::vector<solve::SmallestRegret> smallestRegrets;  ///< by NodeId, `extra` against the plan shown; empty without an
                                                       ///< optimum
};

enum class AnswerKind { Analysis, WhyNot, Remedies, Preflight, WorldSizes, Front, Heat };

class Answers : public QObject {
  Q_OBJECT
 public:
  explicit Answers(QObject* parent = nullptr);
  ~Answers() override;

  /// What the next questions are about. Another model drops all answers, another solve those about a solution.
  void setModel(std::shared_ptr<const pipeline::Model> model, const pipeline::SolveOptions& options);
  void setSolved(std::shared_ptr<const pipeline::Solved> solved);
  /// Settings of the next solve: the pre-flight follows them, and world sizes are of these, whatever their ranks.
  void setOptions(const pipeline::SolveOptions& options);

  const std::shared_ptr<const Analysis>& analysis() const { return m_analysis; }
  const std::shared_ptr<const WhyNotReply>& whyNot() const { return m_whyNot; }
  const std::shared_ptr<const Remedies>& remedies() const { return m_remedies; }
  const std::shared_ptr<const plan::Preflight>& preflight() const { return m_preflight; }
  const std::shared_ptr<const WorldSizes>& worldSizes() const { return m_worldSizes; }
  const std::shared_ptr<const Front>& front() const { return m_front; }
  const std::shared_ptr<const Heat>& heat() const { return m_heat; }
  bool isPending(AnswerKind kind) const;
  bool isIdle() const;

  void analyse(NodeId node, ValueId value);  ///< an invalid value: about nothing
  void askWhyNot(ValueId value, const rules::Placement& placement);
  void askWhyNot(NodeId layer, rules::Strategy strategy);
  /// For this conflict of the search, or (null) for the search as a whole.
  void seekRemedies(std::optional<solve::ConflictCard> card);
  void computeWorldSizes();
  void computeFront();
  void computeHeat();
  /// Asks the survey under way to stop; world sizes keep what they have.
  void cancel();
  void close();                                ///< as Worker's
  void join(Worker::Clock::time_point until);  ///< as Worker's

 signals:
  void analysisChanged();
  void whyNotChanged();
  void remediesChanged();
  void preflightChanged();  ///< also of world sizes
  void frontChanged();
  void heatChanged();
  /// A question worth a word in the status bar began or ended.
  void surveyStarted(const QString& title);
  void surveyEnded();
  void progressed(const QString& stage, qint64 done, qint64 total);

 private:
  struct Subject;
  Subject subject() const;
  void postPreflight();
  void postWhyNot(WhyNotReply question);
  void forgetSolution();

  std::shared_ptr<const pipeline::Model> m_model;
  std::shared_ptr<const pipeline::Solved> m_solved;
  pipeline::SolveOptions m_options;
  std::shared_ptr<const Analysis> m_analysis;
  std::shared_ptr<const WhyNotReply> m_whyNot;
  std::shared_ptr<const Remedies> m_remedies;
  std::optional<StepId> m_remediesAbout;  ///< step of the conflict they are sought for; kNoStep: the whole search
  std::shared_ptr<const Remedies> m_searchRemedies;  ///< of the whole search: shown again after a conflict's
  std::shared_ptr<const plan::Preflight> m_preflight;
  std::shared_ptr<const WorldSizes> m_worldSizes;
  std::shared_ptr<const Front> m_front;
  std::shared_ptr<const Heat> m_heat;
  Worker m_quick, m_surveys;
};

}  // namespace cleave::views
