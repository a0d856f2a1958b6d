#pragma once
/// Flags of the command line from a table of settings. Parsing only stores the texts; `readInto` reads them, so that
/// its errors are sentences like all others.
///
///     SettingFlags<PlanSettings> flags(pipeline::planSettings());
///     flags.addTo(command);                      // before parsing
///     CLEAVE_TRY_VOID(flags.readInto(settings)); // after it
#include "options/old_flags.h"
#include "settings/setting.h"

#include <CLI/CLI.hpp>

#include <deque>
#include <string>
#include <vector>

namespace cleave::options {

template <class Request>
class SettingFlags {
 public:
  /// `rows` must outlive this object.
  explicit SettingFlags(const settings::SettingRows<Request>& rows) : m_rows(rows) {}
  // CLI11 keeps the addresses of the texts.
  SettingFlags(const SettingFlags&) = delete;
  SettingFlags& operator=(const SettingFlags&) = delete;

  void addTo(CLI::App& command) {
    for (const auto& row : m_rows) addTo(command, row);
  }
  /// Prints the command to use instead of each replaced flag that was given to the command `name`.
  void hint(const std::string& name) const { m_old.hint(name); }

  /// BadUsage names the flag, its text and what to write. Settings without a flag keep their values.
  Result<void> readInto(Request& request) const {
    for (const Flag& flag : m_flags) {
      if (flag.option->count() == 0) continue;
      if (flag.row->form.kind == settings::ValueKind::Switch) {
        CLEAVE_TRY_VOID(flag.row->read(request, flag.isOn ? settings::kOn : settings::kOff));
      }
      for (const std::string& text : flag.texts) CLEAVE_TRY_VOID(flag.row->read(request, text));
    }
    return {};
  }

  bool isGiven(std::string_view name) const {
    return firstGiven([&](const Flag& flag) { return flag.row->isNamed(name); });
  }
  /// The first given flag whose row satisfies `matches`; null: none.
  template <class Matches>
  const CLI::Option* firstGivenOf(Matches matches) const {
    return firstGiven([&](const Flag& flag) { return matches(static_cast<const settings::SettingFacts&>(*flag.row)); });
  }
  /// The first flag that was given; null: none.
  const CLI::Option* firstGiven() const {
    return firstGiven([](const Flag&) { return true; });
  }

 private:
  struct Flag {
    const settings::Setting<Request>* row;
    CLI::Option* option = nullptr;
    std::vector<std::string> texts = {};
    bool isOn = false;
  };

  void addTo(CLI::App& command, const settings::Setting<Request>& row) {
    Flag& flag = m_flags.emplace_back(Flag{&row});
    const std::string names = row.alias.empty() ? row.flag : row.flag + "," + row.alias;
    if (row.form.kind == settings::ValueKind::Switch) {
      flag.option = command.add_flag(names, flag.isOn, row.help);
      return settle(*flag.option, row);
    }
    flag.option = command.add_option(names, flag.texts, row.help)->type_name(row.form.type);
    row.isList ? flag.option->take_all() : flag.option->expected(1);
    const std::vector<std::string> byDefault = row.texts(Request{});
    if (!row.isList && !row.isRequired && !byDefault.empty() && !byDefault.front().empty())
      flag.option->default_str(byDefault.front());
    settle(*flag.option, row);
  }

  void settle(CLI::Option& option, const settings::SettingFacts& row) {
    option.required(row.isRequired);
    if (row.isHidden) option.group(kHiddenGroup);
    if (row.isHidden && !row.replacement.empty()) m_old.add(&option, row.replacement);
  }

  template <class Predicate>
  const CLI::Option* firstGiven(Predicate matches) const {
    for (const Flag& flag : m_flags) {
      if (flag.option->count() > 0 && matches(flag)) return flag.option;
    }
    return nullptr;
  }

  const settings::SettingRows<Request>& m_rows;
  std::deque<Flag> m_flags;
  OldFlags m_old;
};

}  // namespace cleave::options
