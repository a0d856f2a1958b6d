#include "pipeline/run/cluster.h"

#include "launch/rank_program.h"
#include "pipeline/run/modes.h"
#include "pipeline/run/rank_launch.h"
#include "spec/rank/rank_settings.h"

#include <unistd.h>

#include <array>

namespace cleave::pipeline {
namespace {

/// The files that the ranks read in addition to the plan.
std::vector<std::pair<std::string, std::string>> filesOf(const RunRequest& request) {
  std::vector<std::pair<std::string, std::string>> files;
  const plan::ModelInfo& model = request.plan->model;
  if (request.readsWeights()) {
    files.emplace_back(model.source, "the model: each rank reads its own part of the weights");
    if (!model.input.weights.empty()) files.emplace_back(model.input.weights, "its weights");
  }
  if (const auto input = request.inputFile()) files.emplace_back(input->string(), "the inputs");
  return files;
}

std::vector<std::string> argumentsOf(RunRequest request, const Elsewhere& elsewhere) {
  request.recordsTimes = request.recordsTimes && elsewhere.report;  // otherwise no process collects the times
  spec::RankSpec spec = rankSpecOf(request);
  spec.connectTimeout = std::chrono::seconds(elsewhere.connectTimeoutS);
  return settings::argumentsOf(spec::rankSettings(), spec);
}

}  // namespace

Result<launch::Backend> remoteBackend(const RunRequest& request, int nodes, const Progress& progress) {
  if (request.backend != launch::Backend::Auto) return request.backend;  // the nodes may have other devices
  CLEAVE_TRY(
      const launch::BackendChoice choice,
      launch::chooseBackend(request.backend, std::max(1, request.mesh().ranks() / std::max(1, nodes)), 0, progress));
  return choice.backend;
}

Result<std::string> clusterText(const RunRequest& request, const Elsewhere& elsewhere, const Progress& progress) {
  if (request.training.isAsked()) CLEAVE_TRY_VOID(checkTraining(request));
  launch::ClusterRun run;
  run.launcher = elsewhere.launcher;
  run.ranks = request.mesh().ranks();
  run.nodes = elsewhere.nodes;
  run.host = elsewhere.host;
  run.port = elsewhere.port;
  CLEAVE_TRY(run.backend, remoteBackend(request, run.nodes, progress));
  run.planFile = elsewhere.planFile;
  run.rankProgram = elsewhere.rankProgram;
  if (run.rankProgram.empty()) {
    CLEAVE_TRY(const fs::path installed, launch::rankProgram());
    run.rankProgram = installed.lexically_normal().string();
  }
  run.rankArguments = argumentsOf(request, elsewhere);
  run.needed = filesOf(request);
  run.report = elsewhere.report;
  return launch::clusterCommands(run);
}

std::string ownHostName() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

}  // namespace cleave::pipeline
