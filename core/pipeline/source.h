#pragma once
/// What a path names that Cleave opens: a model, a plan, a recorded search or a session. Told by what the file holds,
/// not by its name, for every way a path comes in: arguments, dialogs, drops, recent files, scripts.
///
///     CLEAVE_TRY(const Source source, recognise("plan.json"));   // {SourceKind::Plan, "plan.json"}
#include "base/overwriting.h"
#include "pipeline/solve.h"

namespace cleave::pipeline {

enum class SourceKind : std::uint8_t { Model, Plan, Trace, Session };

struct Source {
  SourceKind kind = SourceKind::Model;
  fs::path path;              ///< of a model its folder, of an exported program its archive
  bool isExported = false;    ///< of a model: an archive of torch.export
  bool mayBeForeign = false;  ///< of a plan: it does not say at once that it is Cleave's: see isForeignPlan
};

/// Looks at the first bytes only, of an archive at its directory. BadInput says what is there instead, and what could
/// be opened.
Result<Source> recognise(const std::string& path);

/// BadInput when `path`, which was recognised as `found`, holds another kind, with the commands that this kind is for.
Result<void> refuseOtherThan(SourceKind wanted, const Source& found, const std::string& path);
/// The same of what was not looked at yet. What cannot be recognised passes: its reader says what is wrong with it.
Result<void> refuseOtherThan(SourceKind wanted, const std::string& path);
/// False for everything else, also for what cannot be opened.
bool isPlanFile(const std::string& path);
/// Also reads a plan that was changed after Cleave wrote it: a run of it does not pass, and a bisection finds what
/// differs.
Result<std::shared_ptr<const plan::Plan>> readPlanFile(const fs::path& file);
/// The same for callers that use the figures or placements unchecked: BadInput if the file was changed.
Result<std::shared_ptr<const plan::Plan>> readUnalteredPlan(const fs::path& file);
/// A plan of another library, or a JSON file that is none of anybody's.
bool isForeignPlan(const std::string& path);

/// The files that opening `path` reads: none of them may be an output. Of a plan it is the plan alone, not its model's.
/// Empty when nothing can be opened there.
std::vector<NamedFile> filesBehind(const std::string& path);
/// The same of a plan's model, with the weights beside it.
std::vector<NamedFile> filesBehind(const plan::ModelInfo& model);
/// The files of weights that `--weights` names: a file, or those of a folder.
std::vector<NamedFile> weightFilesBehind(const std::string& weights);

/// A plan with what it was made from, as if it had just been solved. `solved` has no trace and no optimum.
struct ReopenedPlan {
  std::shared_ptr<const Model> model;
  std::shared_ptr<const Solved> solved;
  std::shared_ptr<const plan::Plan> plan;
  std::string note;  ///< why the plan stands alone, when its model folder is gone or is another model now; else empty
  std::string whyNotRun;  ///< of a plan that stands alone because of its model's folder: what a run would say
};
Result<ReopenedPlan> reopenPlan(const fs::path& file, const Progress& progress = {});

}  // namespace cleave::pipeline
