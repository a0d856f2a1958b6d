#pragma once
/// What `run` runs: a plan that a file holds, or one that is made of a model, for the inputs that it gets and for each
/// replica's rows of them.
#include "cli/generation_flags.h"
#include "cli/planning.h"
#include "program/mesh.h"

namespace cleave::cli {

struct RunSource {
  PlanFlags flags;
  std::vector<const CLI::Option*> planFlags;  ///< what `flags` is read from
  std::string input, expect, meshText;
  GenerationFlags generation;  ///< their prompt takes the place of an input
  bool isTraining = false;     ///< by --train-steps
  bool isElsewhere = false;    ///< other machines read the plan's file
  bool readsWeights = true;    ///< by `bring`
  program::Mesh mesh;          ///< by --mesh; its ranks are those of `flags` otherwise

  void addTo(CLI::App& command);
  bool isPlan() const { return isPlanFile(flags.model); }
  /// MODEL may be a Hub id: of it comes what is read, weights too unless they are made up.
  Result<void> bring(bool readsWeights, const Progress& progress);
  /// Reads --mesh. BadUsage for flags that do not go together.
  Result<void> check();
  /// Of this file inputs are read; empty: they are made up.
  Result<std::string> inputFile() const;
  /// What one replica computes of so many rows. BadUsage where they do not divide.
  Result<std::int64_t> rowsOfReplica(std::int64_t rows) const;

  struct Made {
    std::shared_ptr<const plan::Plan> plan;
    std::shared_ptr<const pipeline::Model> model;  ///< null: a plan's
    std::vector<std::string> warnings;
  };
  Result<Made> make(const Progress& progress);

 private:
  Result<void> checkLossIsNotExpected(const std::string& inputs) const;
  Result<void> takeRowsOfReplica();
  Result<void> takeShapeFromInput();
  Result<void> takeSizesFromInput(const fs::path& archive, const std::string& file);
  Result<plan::ModelInfo> modelFor(const plan::ModelInfo& model, const std::string& file) const;
  Result<std::shared_ptr<const plan::Plan>> planFor(const Progress& progress) const;
  Result<void> checkRanks(const plan::Plan& plan) const;
};

}  // namespace cleave::cli
