#pragma once
/// The plan that ranks run: read from a file, or made for a model and its inputs.
#include "cli/generation_flags.h"
#include "cli/planning.h"
#include "program/mesh.h"

namespace cleave::cli {

struct RunSource {
  PlanFlags flags;
  std::vector<const CLI::Option*> planFlags;  ///< the options that set `flags`
  std::string input, expect, meshText;
  GenerationFlags generation;  ///< with a prompt in place of `input`
  bool isTraining = false;     ///< the run trains
  bool isElsewhere = false;    ///< ranks on other machines read the plan file
  bool readsWeights = true;    ///< set by `resolve`
  program::Mesh mesh;          ///< set by `check`, from --mesh or `flags.ranks`

  void addTo(CLI::App& command);
  void addMeshTo(CLI::App& command);
  bool isPlan() const { return isPlanFile(flags.model); }
  /// Downloads MODEL if it is a Hub id: its config, and its weights if they are read.
  Result<void> resolve(bool readsWeights, const Progress& progress);
  /// BadUsage for flags that exclude each other.
  Result<void> check();
  /// File with inputs; empty: inputs are random.
  Result<std::string> inputFile() const;
  /// Rows per replica. BadUsage if `rows` does not divide.
  Result<std::int64_t> rowsOfReplica(std::int64_t rows) const;

  struct Made {
    std::shared_ptr<const plan::Plan> plan;
    std::shared_ptr<const pipeline::Model> model;  ///< null if the plan was read from a file
    std::vector<std::string> warnings;
  };
  Result<Made> make(const Progress& progress);

 private:
  Result<void> checkLossHasLabels(const std::string& inputs) const;
  Result<void> applyReplicas();
  Result<void> applyInputShape();
  Result<void> applyInputSizes(const fs::path& archive, const std::string& file);
  Result<plan::ModelInfo> modelFor(const plan::ModelInfo& model, const std::string& file) const;
  Result<std::shared_ptr<const plan::Plan>> planFor(const Progress& progress) const;
  Result<void> checkRanks(const plan::Plan& plan) const;
};

}  // namespace cleave::cli
