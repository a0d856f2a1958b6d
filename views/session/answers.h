#pragma once
/// Answers about a model and its solution beyond the recorded search: why and why not, the cost of every other choice,
/// remedies, working world sizes, and the front of time against memory. Belongs to the Session.
///
/// Every answer is immutable, computed on a worker, and dropped when its subject is gone (a newer question of its kind,
/// or another solution). Short questions (analysis, why not, pre-flight) and surveys, which solve many times (remedies,
/// world sizes, front), have a worker each, so that a click is answered during a survey. A pending question reads as
/// null (or as a WhyNotReply without an answer); isPending returns true for it. GUI thread only.
#include "pipeline/solve/what_fits.h"
#include "plan/build/preflight.h"
#include "plan/build/world_sizes.h"
#include "solve/explain/explain.h"
#include "solve/explain/remedy.h"
#include "views/session/settings.h"
#include "views/session/step_state.h"
#include "views/worker/worker.h"

namespace cleave::views {

/// The analysis of the focused value under the shown solution.
struct Analysis {
  ValueId value;
  NodeId node;
  std::vector<solve::WhyLink> why;
  std::optional<std::vector<solve::Regret>> regrets;  ///< nullopt: the engine was not `optimal`
};

/// A why-not question with its answer, or with one sentence on why there is no answer.
struct WhyNotReply {
  ValueId value;  ///< subject; for a strategy the layer's result
  NodeId node;
  std::optional<rules::Placement> placement;  ///< exactly one of placement and strategy is set
  std::optional<rules::Strategy> strategy;
  QString question;  ///< "Why is linear_3 not S(2)?"
  std::optional<solve::WhyNot> answer;
  QString failure;
  bool isPending() const { return !answer && failure.isEmpty(); }
};

/// Changes that help, best first.
struct Remedies {
  std::vector<solve::Remedy> offers;
  NodeId conflict;                     ///< the node of the conflict to resolve; invalid: the whole search
  std::optional<pipeline::Fits> fits;  ///< changes that fit, if the memory budget leaves no plan
  QString failure;                     ///< one sentence, if the remedies could not be computed
};

/// The model's verdicts on other rank counts.
struct WorldSizes {
  std::vector<plan::WorldSize> rows;
  bool isComplete = true;  ///< false: stopped before the last
};

/// Plans that no other plan beats in both time and memory.
struct Front {
  solve::Optimum::Front front;
  QString failure;
};

/// By node, for colours: the cost in the shown solution, and the extra cost of the next choice.
struct Heat {
  std::vector<solve::StepCost> costs;                  ///< by NodeId
  std::vector<solve::SmallestRegret> smallestRegrets;  ///< by NodeId; `extra` is relative to the shown plan; empty
                                                       ///< without an optimum
};

enum class AnswerKind { Analysis, WhyNot, Remedies, Preflight, WorldSizes, Front, Heat };

class Answers : public QObject {
  Q_OBJECT
 public:
  explicit Answers(QObject* parent = nullptr);
  ~Answers() override;

  /// Sets the subject of later questions. Another model drops all answers; another solve drops those about a solution.
  void setModel(std::shared_ptr<const pipeline::Model> model, const spec::PlanSpec& spec);
  void setSolved(std::shared_ptr<const pipeline::Solved> solved);
  /// Settings of the next solve. The pre-flight follows them, and world sizes use them for all rank counts.
  void setSpec(const spec::PlanSpec& spec);

  const std::shared_ptr<const Analysis>& analysis() const { return m_analysis; }
  const std::shared_ptr<const WhyNotReply>& whyNot() const { return m_whyNot; }
  const std::shared_ptr<const Remedies>& remedies() const { return m_remedies; }
  const std::shared_ptr<const plan::Preflight>& preflight() const { return m_preflight; }
  const std::shared_ptr<const WorldSizes>& worldSizes() const { return m_worldSizes; }
  const std::shared_ptr<const Front>& front() const { return m_front; }
  const std::shared_ptr<const Heat>& heat() const { return m_heat; }
  bool isPending(AnswerKind kind) const;
  bool isIdle() const;

  void analyse(NodeId node, ValueId value);  ///< an invalid value: no analysis
  void askWhyNot(ValueId value, const rules::Placement& placement);
  void askWhyNot(NodeId layer, rules::Strategy strategy);
  /// Remedies for this conflict of the search or, if null, for the whole search.
  void seekRemedies(std::optional<solve::ConflictCard> card);
  void computeWorldSizes();
  void computeFront();
  void computeHeat();
  /// Asks the running survey to stop. World sizes keep their finished part.
  void cancel();
  void close();                                ///< like Worker::close
  void join(Worker::Clock::time_point until);  ///< like Worker::join

 signals:
  void analysisChanged();
  void whyNotChanged();
  void remediesChanged();
  void preflightChanged();  ///< also for world sizes
  void frontChanged();
  void heatChanged();
  /// A question with a status bar text began or ended.
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
  spec::PlanSpec m_spec;
  std::shared_ptr<const Analysis> m_analysis;
  std::shared_ptr<const WhyNotReply> m_whyNot;
  std::shared_ptr<const Remedies> m_remedies;
  std::optional<StepId> m_remediesAbout;             ///< step of the conflict to resolve; kNoStep: the whole search
  std::shared_ptr<const Remedies> m_searchRemedies;  ///< for the whole search; shown again after a conflict's
  std::shared_ptr<const plan::Preflight> m_preflight;
  std::shared_ptr<const WorldSizes> m_worldSizes;
  std::shared_ptr<const Front> m_front;
  std::shared_ptr<const Heat> m_heat;
  Worker m_quick, m_surveys;
};

}  // namespace cleave::views
