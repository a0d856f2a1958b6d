#include "base/json.h"
#include "base/output_file.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "pipeline/calibrate/calibrate.h"
#include "pipeline/solve/devices.h"
#include "settings/option_types.h"
#include "solve/problem/device_profile.h"

#include <nlohmann/json.hpp>

#include <algorithm>

namespace cleave::cli {
namespace {

/// As a shell reads it back.
std::string shellWord(const std::string& text) {
  constexpr std::string_view kPlain = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_./-+=:,@%";
  if (!text.empty() && text.find_first_not_of(kPlain) == std::string::npos) return text;
  std::string word = "'";
  for (const char c : text) word += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return word + "'";
}

struct CalibrateCommand {
  int ranks = 2;
  std::string backend = "auto", output;

  static launch::Observer observer(const Progress& progress) {
    return [&progress](const launch::RankEvent& event) {
      if (!event.line.empty()) {
        endProgress();
        std::fprintf(stderr, "rank %d: %s\n", event.rank, event.line.c_str());
      } else if (event.message && event.rank == 0) {
        if (const auto* phase = std::get_if<protocol::PhaseChange>(&*event.message))
          progress.report(protocol::toText(phase->phase), phase->done, phase->total);
      }
    };
  }

  /// A profile that no command would take is not written.
  static Result<std::string> profileText(const pipeline::Calibration& made) {
    std::string text = jsonText(solve::toJson(pipeline::profileOf(made)), 2) + "\n";
    CLEAVE_TRY_VOID(withContext(solve::parseDeviceProfile(text), "The measurements make no valid profile"));
    return text;
  }

  /// Names of bundled profiles are looked up before files.
  std::string profileWord() const {
    const auto bundled = pipeline::deviceProfiles();
    const bool isBundled = bundled && std::any_of(bundled->begin(), bundled->end(),
                                                  [&](const auto& profile) { return profile.name == output; });
    return shellWord(isBundled ? "./" + output : output);
  }

  std::string whatNext() const {
    if (output.empty()) return "Not saved. --output FILE writes this device profile for --device-profile.\n";
    return fmt::format(
        "Written to {}. To plan with it:\n  cleave-cli plan MODEL --ranks {} --device-profile {}\nIt says what {} "
        "ranks "
        "do at once: for another number of them, measure again.\n",
        output, ranks, profileWord(), ranks);
  }

  Result<int> run() const {
    const Progress progress = consoleProgress();
    const auto parsed = launch::parseBackend(backend);
    if (!parsed) return fail(ErrorCode::BadUsage, "--backend is \"{}\": write auto, gloo or nccl.", backend);
    // Before the ranks run: a profile that cannot be written is known at once.
    std::optional<OutputFile> file;
    if (!output.empty() && output != "-") {
      CLEAVE_TRY(file, OutputFile::open(output, progress.stopToken()));
    }
    CLEAVE_TRY(const auto made, pipeline::calibrate({ranks, *parsed, {}}, observer(progress), progress));
    endProgress();
    CLEAVE_TRY(const std::string profile, profileText(made));
    if (output == "-") {
      CLEAVE_TRY_VOID(writeOutput("-", profile));
      return 0;
    }
    if (file) {
      CLEAVE_TRY_VOID(file->write(profile));
      CLEAVE_TRY_VOID(file->finish());
    }
    CLEAVE_TRY_VOID(writeOutput("-", toText(made) + "\n" + whatNext()));
    return 0;
  }
};

}  // namespace

void addCalibrateCommand(CLI::App& app, Chosen& chosen) {
  auto state = std::make_shared<CalibrateCommand>();
  CLI::App* command = app.add_subcommand("calibrate", "Measure this machine and write a device profile to plan with");
  command->add_option("--ranks", state->ranks, "Number of ranks that measure together, at least 2")
      ->capture_default_str();
  command->add_option("--backend", state->backend, "auto, nccl or gloo")
      ->type_name(option_types::oneOf({"auto", "nccl", "gloo"}))
      ->capture_default_str();
  command->add_option("--output", state->output, "Write the device profile to a file, or - for stdout")
      ->type_name(option_types::kFileOrDash);
  command->callback([state, &chosen] {
    const auto result = state->run();
    chosen.exitCode = result ? *result : report(result.error());
  });
}

}  // namespace cleave::cli
