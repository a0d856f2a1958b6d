#pragma once
/// The next solve: its settings, and the user's demands on a plan. A changed setting does not solve by itself. A
/// changed demand does, and can be undone. GUI thread only.
///
/// Settings that come with a sample, plan or recording are borrowed. The next model gets the user's own settings back.
///
///     settings.setRanks(4);  settings.solve();
///     CLEAVE_TRY_VOID(settings.addPin("lm_head=row"));   // solves; undoStack().undo() solves again without
#include <QUndoStack>
#include <functional>

#include "views/session/opened_model.h"

namespace cleave::views {

/// The user's demands on a plan. They are applied as a whole, then solved.
struct Demands {
  std::vector<solve::Pin> pins;
  std::vector<std::string> rulesOff, redistributable;
  solve::Engine engine = solve::Engine::Reference;
  std::optional<rules::CandidateSet> candidateSet;
  rules::SequenceParallel sequenceParallel = rules::SequenceParallel::Off;
  int ranks = 2;
  solve::CostSettings cost;
  bool trainsWithDropout = false;
  static Demands of(const pipeline::SolveOptions& options);
};

/// The candidate set of a solve: its engine's own set unless one is chosen.
rules::CandidateSet candidateSetOf(const pipeline::SolveOptions& options);
/// True if both options give the same answer, so that solving again is useless.
bool isSameProblem(const pipeline::SolveOptions& a, const pipeline::SolveOptions& b);

class Settings : public QObject {
  Q_OBJECT
 public:
  Settings(const OpenedModel& opened, QUndoStack& undo, QObject* parent = nullptr);

  const pipeline::SolveOptions& options() const { return m_options; }
  void setRanks(int ranks);
  void setEngine(solve::Engine engine);
  void setSequenceParallel(rules::SequenceParallel mode);
  void setCandidateSet(std::optional<rules::CandidateSet> candidateSet);  ///< nullopt: the engine's default
  void setTraining(bool isTraining);
  void setOptimizer(solve::Optimizer optimizer);
  void setCheckpointsActivations(bool checkpoints);
  void setTrainsWithDropout(bool trainsWithDropout);
  /// A bundled profile by name, or a file. BadInput lists the available names.
  Result<void> setDeviceProfile(const QString& nameOrFile);
  void setMemoryBudget(std::optional<std::int64_t> bytes);  ///< per rank; nullopt: the device's memory
  void setSlack(double percent);                            ///< CostSettings::slackPercent
  bool isBorrowed() const { return m_isBorrowed; }
  /// Requests a solve with these settings.
  void solve() { emit solveWanted(); }

  // Demands: each change is undoable and solves again.
  const std::vector<solve::Pin>& pins() const { return m_options.pins; }
  Result<void> addPin(const QString& text);
  void removePin(const QString& text);
  Result<void> setRulesOff(std::vector<std::string> patterns);
  Result<void> setRedistributable(std::vector<std::string> patterns);
  Demands demands() const { return Demands::of(m_options); }
  void demand(const Demands& after, const QString& what);  ///< undoable as `what`
  void apply(const Demands& demands);                      ///< not undoable

  // For the session.
  /// Drops the demands. They are about one model's layers and do not apply to the next model.
  pipeline::SolveOptions forNewModel() const;
  /// Sets the settings for a newly opened model. Views are notified by `announce`.
  void take(const pipeline::SolveOptions& options, bool isBorrowed);
  /// Shows the settings of a plan.
  void show(const pipeline::SolveOptions& options);
  void announce();
  /// The file of the profile for the command line: its latest existing source. Empty if its name is enough.
  std::string deviceFile(const solve::DeviceProfile& profile) const;
  void noteDeviceFile(const solve::DeviceProfile& profile, const QString& file);

 signals:
  void changed();
  void demandsChanged();  ///< pins, switched-off rules, redistributions
  void solveWanted();

 private:
  Result<void> check(const std::function<void(solve::Problem&)>& demand) const;
  const OpenedModel& m_opened;
  QUndoStack& m_undo;
  pipeline::SolveOptions m_options;
  pipeline::SolveOptions m_own;  ///< the user's settings, while a sample, plan or recording has its own
  bool m_isBorrowed = false;
  struct DeviceFile {
    solve::DeviceProfile profile;
    std::string file;
  };
  std::vector<DeviceFile> m_deviceFiles;  ///< profiles that came from their own file or from a plan
};

}  // namespace cleave::views
