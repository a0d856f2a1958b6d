#include "options/old_flags.h"

#include <cstdio>

namespace cleave::options {

std::string HelpFormatter::make_group(std::string group, bool isPositional,
                                      std::vector<const CLI::Option*> options) const {
  if (group == kHiddenGroup) return {};
  return CLI::Formatter::make_group(std::move(group), isPositional, std::move(options));
}

CLI::Option* OldFlags::add(CLI::Option* option, std::string instead) {
  option->group(kHiddenGroup);
  m_flags.emplace_back(option, std::move(instead));
  return option;
}

void OldFlags::hint(const std::string& name) const {
  for (const auto& [option, instead] : m_flags) {
    if (option->count() == 0) continue;
    std::fprintf(stderr, "cleave-cli: %s %s is deprecated. Use: cleave-cli %s\n", name.c_str(),
                 option->get_name().c_str(), instead.c_str());
  }
}

}  // namespace cleave::options
