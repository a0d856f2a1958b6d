#include "base/overwriting.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/planning.h"
#include "hub/snapshot.h"
#include "pipeline/source/hub_model.h"
#include "settings/option_types.h"

#include <nlohmann/json.hpp>

namespace cleave::cli {
namespace {

struct DownloadCommand {
  std::string repo, revision, cache, tokenFile, json;
  bool isLocalOnly = false, wantsConfigAlone = false;

  Result<void> run() const {
    const Progress progress = consoleProgress();
    CLEAVE_TRY(const hub::SnapshotRequest request, asked());
    const hub::Watcher watcher = consoleWatcher();
    auto fetched = hub::fetchSnapshot(request, watcher, progress);
    endProgress();
    CLEAVE_TRY(const hub::Snapshot snapshot, std::move(fetched));
    if (!json.empty()) {
      const nlohmann::ordered_json document{{"schema", "cleave.download/1"},
                                            {"model", request.id.repo},
                                            {"revision", request.id.revision},
                                            {"commit", snapshot.commit},
                                            {"folder", snapshot.folder.string()}};
      CLEAVE_TRY_VOID(writeOutput(json, jsonText(document, 1) + "\n"));
    }
    return json == "-" ? Result<void>() : writeOutput("-", snapshot.folder.string() + "\n");
  }

 private:
  Result<hub::SnapshotRequest> asked() const {
    hub::SnapshotRequest request;
    CLEAVE_TRY_VOID(pipeline::refuseAddress(repo));
    CLEAVE_TRY(request.id, hub::HubId::parse(repo));
    if (!revision.empty()) {
      if (repo.find('@') != std::string::npos)
        return fail(ErrorCode::BadUsage, "{} names a revision: leave --revision out.", repo);
      CLEAVE_TRY(request.id, hub::HubId::parse(repo + "@" + revision));
    }
    CLEAVE_TRY(request.settings, hub::hubSettings());
    if (!cache.empty()) request.settings.cache = cache;
    if (!tokenFile.empty()) CLEAVE_TRY_VOID(hub::readTokenFrom(tokenFile, request.settings));
    request.wanted = wantsConfigAlone ? hub::Wanted::Config : hub::Wanted::Weights;
    request.isLocalOnly = isLocalOnly;
    return request;
  }
};

}  // namespace

void addDownloadCommand(CLI::App& app, Chosen& chosen) {
  auto state = std::make_shared<DownloadCommand>();
  CLI::App* command = app.add_subcommand(
      "download", "Download a model from the Hub into huggingface_hub's cache, and print the folder");
  command->add_option("REPO", state->repo, "Hub id: org/name, or org/name@revision")->required();
  command->add_option("--revision", state->revision, "Branch, tag or commit (default main)");
  command->add_option("--cache-dir", state->cache, "Cache folder, instead of HF_HUB_CACHE's")
      ->type_name(option_types::kFolder);
  command->add_flag("--local-only", state->isLocalOnly, "Do not use the network: print the folder if it is complete");
  command->add_flag("--config-only", state->wantsConfigAlone, "Leave out the weights: enough to plan");
  command->add_option("--token-file", state->tokenFile, "File with the access token (default: HF_TOKEN)")
      ->type_name(option_types::kFile);
  command->add_option("--json", state->json, "Write the answer as JSON to a file, or - for stdout")
      ->type_name(option_types::kFileOrDash);
  command->callback([state, &chosen] {
    const auto result = state->run();
    chosen.exitCode = result ? 0 : report(result.error());
  });
}

}  // namespace cleave::cli
