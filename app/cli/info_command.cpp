#include "cli/commands.h"
#include "cli/console.h"
#include "cli/planning.h"
#include "settings/option_types.h"

#include "families/near_names.h"
#include "pipeline/source/describe_model.h"
#include "pipeline/source/open.h"
#include "pipeline/source/source.h"
#include "pipeline/source/source_files.h"

namespace cleave::cli {
namespace {

struct InfoCommand {
  std::string source, json;
  bool listsFamilies = false;

  Result<void> run() {
    if (listsFamilies) return writeOutput("-", families::listOfFamilies());
    if (source.empty()) return fail(ErrorCode::BadUsage, "info needs a MODEL, or --families.");
    const Progress progress = consoleProgress();
    CLEAVE_TRY_VOID(resolveModel(source, hub::Wanted::Config, progress));
    CLEAVE_TRY_VOID(refuseOverwriting({{"--json", json}}, pipeline::sourceFilesOf(source)));
    CLEAVE_TRY(const pipeline::Source recognised, pipeline::recognise(source));
    // An exported program has the sizes of its example.
    const auto options = recognised.isExported ? spec::InputSpec() : pipeline::kDescribedAs;
    auto opened = pipeline::openModel(source, options, progress);
    endProgress();
    CLEAVE_TRY(const auto model, std::move(opened));
    CLEAVE_TRY(const pipeline::ModelDescription description, pipeline::describeModel(*model));
    if (!json.empty()) {
      CLEAVE_TRY_VOID(writeOutput(json, pipeline::toJson(description) + "\n"));
    }
    if (json != "-") {
      CLEAVE_TRY_VOID(writeOutput("-", pipeline::toText(description)));
    }
    return {};
  }
};

}  // namespace

void addInfoCommand(CLI::App& app, Chosen& chosen) {
  auto state = std::make_shared<InfoCommand>();
  CLI::App* command = app.add_subcommand("info", "Describe a model, without a search");
  command->add_option("MODEL", state->source, "Model folder, config.json, exported program (.pt2) or Hub id (org/name)")
      ->type_name(option_types::kModel);
  command->add_option("--json", state->json, "Write the answer as JSON to a file, or - for stdout")
      ->type_name(option_types::kFileOrDash);
  CLI::Option* families = command->add_flag("--families", state->listsFamilies,
                                            "List the architectures and model_types that Cleave opens from folders");
  for (const char* other : {"MODEL", "--json"}) families->excludes(command->get_option(other));
  command->callback([state, &chosen] {
    const auto result = state->run();
    chosen.exitCode = result ? 0 : report(result.error());
  });
}

}  // namespace cleave::cli
