#include "cli/command_facts.h"

#include "options/old_flags.h"
#include "options/rank_options.h"
#include "options/standard_flags.h"
#include "options/window_options.h"

#include <algorithm>

namespace cleave::cli {
namespace {

/// CLI11 writes the type and then what it is checked for: "TEXT:{json,dot}", "INT:INT in [1 - 64]", "TEXT:FILE".
std::string takenBy(const CLI::Option& option) {
  if (option.get_items_expected_max() == 0 || option.get_type_size_max() == 0) return {};
  const std::string type = option.get_type_name();
  const auto colon = type.find(':');
  if (colon == std::string::npos) return type.empty() ? "TEXT" : type;
  std::string checked = type.substr(colon + 1);
  if (checked.starts_with('{') || checked == "FILE") return checked;
  const auto range = checked.find(" in [");
  if (range == std::string::npos) return type.substr(0, colon);
  return checked.substr(0, range) + checked.substr(range + 3);  // "INT [1 - 64]"
}

OptionFacts factsOf(const CLI::Option& option) {
  OptionFacts facts;
  facts.isPositional = option.get_positional();
  if (facts.isPositional) {
    facts.name = option.get_name(true);
    std::transform(facts.name.begin(), facts.name.end(), facts.name.begin(),
                   [](unsigned char c) { return std::toupper(c); });
  } else if (!option.get_lnames().empty()) {
    facts.name = "--" + option.get_lnames().front();
  }
  if (!option.get_snames().empty()) facts.shortName = "-" + option.get_snames().front();
  facts.description = option.get_description();
  facts.takes = takenBy(option);
  if (!facts.isFlag()) facts.unlessGiven = option.get_default_str();
  facts.variable = option.get_envname();
  facts.isRequired = option.get_required();
  return facts;
}

}  // namespace

std::vector<std::string> OptionFacts::values() const {
  std::vector<std::string> all;
  if (!takes.starts_with('{') || !takes.ends_with('}')) return all;
  for (std::size_t at = 1; at < takes.size();) {
    const auto end = takes.find_first_of(",}", at);
    all.push_back(takes.substr(at, end - at));
    at = end + 1;
  }
  return all;
}

const OptionFacts* CommandFacts::positional() const {
  const auto found =
      std::find_if(options.begin(), options.end(), [](const auto& option) { return option.isPositional; });
  return found == options.end() ? nullptr : &*found;
}

CommandFacts factsOf(const CLI::App& app) {
  CommandFacts facts{app.get_name(), app.get_description(), {}, {}};
  const auto isShown = [](const auto* declared) {
    return !declared->get_group().empty() && declared->get_group() != options::kHiddenGroup;
  };
  for (const CLI::Option* option : app.get_options()) {
    if (isShown(option)) facts.options.push_back(factsOf(*option));
  }
  for (const CLI::App* command : app.get_subcommands(isShown)) facts.commands.push_back(factsOf(*command));
  return facts;
}

std::vector<CommandFacts> programFacts(const CLI::App& cleaveCli) {
  CLI::App window, rank;
  options::WindowOptions windowOptions;
  options::declareWindow(window, windowOptions);
  options::addVersionFlag(window);
  window.add_flag(options::kReportFlag, options::kReportHelp);
  options::RankOptions rankOptions;
  rankOptions.declare(rank);
  options::addVersionFlag(rank);
  return {factsOf(window), factsOf(cleaveCli), factsOf(rank)};
}

}  // namespace cleave::cli
