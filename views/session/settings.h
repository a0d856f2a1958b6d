#pragma once
/// What the next solve is asked: its settings, and what the user demands of a plan. Changing a setting does not solve
/// by itself; changing a demand does, and can be undone. GUI thread only.
///
/// Settings that come with a sample, plan or recording are borrowed: the next model has the user's own again.
///
///     settings.setRanks(4);  settings.solve();
///     CLEAVE_TRY_VOID(settings.addPin("lm_head=row"));   // solves; undoStack().undo() solves again without
#include <QUndoStack>
#include <functional>

#include "views/session/opened_model.h"

namespace cleave::views {

/// What a user demands of a plan; applied as a whole, then solved.
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

/// The candidate set that a solve takes: its engine's own where none is chosen.
rules::CandidateSet candidateSetOf(const pipeline::SolveOptions& options);
/// The same question to the same engine: solving again would answer the same.
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
  /// A bundled profile by name, or a file; BadInput lists the names there are.
  Result<void> setDeviceProfile(const QString& nameOrFile);
  void setMemoryBudget(std::optional<std::int64_t> bytes);  ///< of one rank; nullopt: the device's memory
  void setSlack(double percent);                            ///< CostSettings::slackPercent
  bool isBorrowed() const { return m_isBorrowed; }
  /// Asks for a solve with these.
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
  /// Demands are about one model's layers: they do not go over to the next.
  pipeline::SolveOptions forNewModel() const;
  /// Another model is opened with these; nobody is told before `announce`.
  void take(const pipeline::SolveOptions& options, bool isBorrowed);
  /// A plan is shown that was solved with these.
  void show(const pipeline::SolveOptions& options);
  void announce();
  /// Where the command line finds the profile: the last file it came from that is still there; empty where its name is
  /// enough.
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
  pipeline::SolveOptions m_own;  ///< the user's, while a sample, plan or recording has its own
  bool m_isBorrowed = false;
  struct DeviceFile {
    solve::DeviceProfile profile;
    std::string file;
  };
  std::vector<DeviceFile> m_deviceFiles;  ///< profiles that came from a file of their own, or from a plan
};

}  // namespace cleave::views
