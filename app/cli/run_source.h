#pragma once
/// The plan that ranks run: read from a file, or made for a model and its inputs.
#include "cli/planning.h"
#include "cli/prompt.h"
#include "program/mesh.h"

namespace cleave::cli {

struct RunSource {
  PlanFlags flags;
  PlanSettings settings;  ///< read by `resolve`
  std::string meshText;
  std::optional<Prompt> prompt;  ///< of a generation, in place of the run's input
  bool isElsewhere = false;      ///< ranks on other machines read the plan file
  bool readsWeights = true;      ///< set by `resolve`
  program::Mesh mesh;            ///< set by `check`, from --mesh
  bool hasInputs = true;         ///< set by `check`: false: inputs are random

  void addTo(CLI::App& command);
  void addMeshTo(CLI::App& command);
  bool isPlan() const { return isPlanFile(settings.model); }
  /// Downloads MODEL if it is a Hub id: its config, and its weights if they are read.
  Result<void> resolve(bool readsWeights, const Progress& progress);
  /// Takes what of the run decides its plan, and reads the prompt of a generation. BadUsage for flags that exclude each
  /// other.
  Result<void> check(const spec::RunSpec& run);
  /// Rows per replica. BadUsage if `rows` does not divide.
  Result<std::int64_t> rowsOfReplica(std::int64_t rows) const;

  struct Made {
    std::shared_ptr<const plan::Plan> plan;
    std::shared_ptr<const pipeline::Model> model;  ///< null if the plan was read from a file
    std::vector<std::string> warnings;
  };
  Result<Made> make(const Progress& progress);

 private:
  Result<std::string> inputFile() const;
  Result<void> checkLossHasLabels(const std::string& inputs) const;
  Result<void> applyReplicas();
  Result<void> applyInputShape();
  Result<void> applyInputSizes(const fs::path& archive, const std::string& file);
  Result<plan::ModelInfo> modelFor(const plan::ModelInfo& model, const std::string& file) const;
  Result<std::shared_ptr<const plan::Plan>> planFor(const Progress& progress) const;
  Result<void> checkRanks(const plan::Plan& plan) const;
  spec::RunSpec m_run;
  std::string m_inputs;  ///< the file with inputs; empty: they are random
};

}  // namespace cleave::cli
