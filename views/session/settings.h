#pragma once
/// What the next solve is asked for. A changed setting does not solve by itself. A changed demand does, and can be
/// undone. GUI thread only.
///
/// Settings that come with a sample, plan or recording are borrowed. The next model gets the user's own settings back.
///
///     settings.change([](spec::PlanSpec& spec) { spec.ranks = 4; });  settings.solve();
///     CLEAVE_TRY_VOID(settings.addPin("lm_head=row"));   // solves; undoStack().undo() solves again without
#include <QUndoStack>
#include <functional>

#include "pipeline/settings/plan_settings.h"
#include "views/session/opened_model.h"

namespace cleave::views {

class Settings : public QObject {
  Q_OBJECT
 public:
  Settings(const OpenedModel& opened, QUndoStack& undo, QObject* parent = nullptr);

  const spec::PlanSpec& spec() const { return m_spec; }
  /// The spec with the open model, in the form of the table of settings (pipeline/settings/plan_settings.h).
  pipeline::PlanSettings request() const;
  void change(const std::function<void(spec::PlanSpec&)>& edit);
  /// Sets one by its row in that table. `texts`: one value, or those of a list; none: its default. BadUsage says what
  /// to write. A demand is checked, can be undone, and solves.
  Result<void> set(const settings::Setting<pipeline::PlanSettings>& row, const std::vector<std::string>& texts);
  /// The same by name: set("slack", "0"), set("memory-budget", "").
  Result<void> set(std::string_view name, std::string_view text);
  void setRanks(int ranks);
  void setEngine(solve::Engine engine);
  /// A bundled profile by name, or a file. BadInput lists the available names.
  Result<void> setDeviceProfile(const QString& nameOrFile);
  bool isBorrowed() const { return m_isBorrowed; }
  /// Requests a solve with these settings.
  void solve() { emit solveWanted(); }
  /// Shared by the solves of the open model.
  const std::shared_ptr<solve::SolveCache>& cache() const { return m_cache; }

  // Demands: each change is undoable and solves again.
  const std::vector<solve::Pin>& pins() const { return m_spec.pins; }
  Result<void> addPin(const QString& text);
  void removePin(const QString& text);
  void demand(const spec::PlanSpec& after, const QString& what);  ///< undoable as `what`
  void apply(const spec::PlanSpec& spec);                         ///< not undoable

  /// The file of the profile for the command line: its latest existing source. Empty if its name is enough.
  std::string deviceFile(const solve::DeviceProfile& profile) const;

 signals:
  void changed();
  void demandsChanged();  ///< pins, switched-off rules, redistributions
  void solveWanted();

 private:
  friend class Session;  // opens models, and restores their settings
  friend class Plans;    // shows the settings of a branch
  /// Drops the demands. They are about one model's layers and do not apply to the next model.
  spec::PlanSpec forNewModel() const;
  /// Sets the settings for a newly opened model. Views are notified by `announce`.
  void take(const spec::PlanSpec& spec, bool isBorrowed);
  /// Shows the settings of a plan.
  void show(const spec::PlanSpec& spec);
  void announce();
  void noteDeviceFile(const solve::DeviceProfile& profile, const QString& file);
  Result<void> check(const spec::PlanSpec& demands) const;

  const OpenedModel& m_opened;
  QUndoStack& m_undo;
  spec::PlanSpec m_spec;
  spec::PlanSpec m_own;  ///< the user's settings, while a sample, plan or recording has its own
  bool m_isBorrowed = false;
  std::shared_ptr<solve::SolveCache> m_cache;
  struct DeviceFile {
    solve::DeviceProfile profile;
    std::string file;
  };
  std::vector<DeviceFile> m_deviceFiles;  ///< profiles that came from their own file or from a plan
};

}  // namespace cleave::views
