#pragma once
/// A table of settings: one row for each setting of a request. Whatever reads, writes, documents, shows or compares a
/// setting uses its row: the flags of the command line and docs/cli.md, the arguments in session files and in commands
/// that the window prints, the window's scripts, its settings page and its preferences. A new setting is a field of a
/// spec, a row here, and the code that uses the field.
///
///     rows.push_back(setting<PlanSettings>("--slack", [](auto& s) -> auto& { return s.plan.cost.slackPercent; },
///     slack())
///                        .withHelp("Percentage by which ..."));
///
/// Immutable after construction; any thread.
#include "base/result.h"
#include "settings/value_form.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace cleave::settings {

/// What a row says of its setting, whatever the request.
struct SettingFacts {
  std::string flag;            ///< "--candidates"
  std::string alias = {};      ///< a second flag, "--menu"; empty: none
  std::string shortName = {};  ///< a shorter name in scripts, "budget"; empty: none
  ValueForm form = {};
  bool isList = false;  ///< may be given several times
  std::string help = {};
  bool isAlwaysWritten = false;  ///< also where it is the default
  bool isRequired = false;
  bool isHidden = false;         ///< of an earlier version: it works, and no list has it
  std::string replacement = {};  ///< of a hidden flag: the command to use instead, "train MODEL --steps N"
  // In the window.
  std::string label = {};                   ///< on the settings page, with its key: "S&lack"; empty: not on the page
  std::string caption = {};                 ///< a check box's text, or an empty line's hint
  std::string tip = {};                     ///< tooltip
  std::vector<std::string> wordTexts = {};  ///< a choice's words as the page shows them; empty: the words
  bool isOfTraining = false;                ///< without effect unless the plan is for training
  bool isOfFolders = false;                 ///< without effect on an exported program
  bool isPreference = false;                ///< kept for the next start
  bool solvesAtOnce = false;                ///< a demand: it is checked and solves when it changes
  std::string_view name() const { return std::string_view(flag).substr(2); }
  bool isNamed(std::string_view other) const {
    if (other.empty()) return false;
    return other == name() || other == shortName || (!alias.empty() && other == alias.substr(2));
  }
};

/// The row of a setting of `Request`.
template <class Request>
struct Setting : SettingFacts {
  /// The values as text: one, or those of a list; empty: left out.
  std::function<std::vector<std::string>(const Request&)> texts;
  /// Sets the value; adds it to a list. BadUsage names the flag, the text and what to write.
  std::function<Result<void>(Request&, std::string_view)> read;
  std::function<void(Request& to, const Request& from)> copy;
  std::function<bool(const Request&, const Request&)> isSame;
};

/// `access` returns a reference to the field: a value, an optional, or a container of values.
template <class Request, class Access, class T>
Setting<Request> setting(SettingFacts facts, Access access, const TextForm<T>& form) {
  using Field = std::remove_cvref_t<decltype(access(std::declval<Request&>()))>;
  constexpr bool isPlain = std::is_same_v<Field, T>, isOptional = std::is_same_v<Field, std::optional<T>>;
  facts.form = form;
  facts.isList = !isPlain && !isOptional;
  Setting<Request> row{std::move(facts)};
  row.texts = [=](const Request& request) {
    const Field& field = access(request);
    std::vector<std::string> texts;
    if constexpr (isPlain) {
      texts.push_back(form.text(field));
    } else if constexpr (isOptional) {
      if (field) texts.push_back(form.text(*field));
    } else {
      for (const auto& value : field) texts.push_back(form.text(value));
    }
    return texts;
  };
  row.read = [=, flag = row.flag](Request& request, std::string_view text) -> Result<void> {
    CLEAVE_TRY(T value, form.parse(flag, text));
    if constexpr (isPlain || isOptional) {
      access(request) = std::move(value);
    } else if constexpr (requires { typename Field::mapped_type; }) {
      const std::string key = value.first;
      if (!access(request).insert(std::move(value)).second)
        return fail(ErrorCode::BadUsage, "{} sets {} twice. Write it once.", flag, key);
    } else {
      Field& field = access(request);
      field.insert(field.end(), std::move(value));
    }
    return {};
  };
  row.copy = [=](Request& to, const Request& from) { access(to) = access(from); };
  row.isSame = [=](const Request& a, const Request& b) { return access(a) == access(b); };
  return row;
}

template <class Request>
using SettingRows = std::vector<Setting<Request>>;

template <class Request, class Access, class T>
void addRow(SettingRows<Request>& rows, SettingFacts facts, Access access, const TextForm<T>& form) {
  rows.push_back(setting<Request>(std::move(facts), access, form));
}

/// The row with this flag or alias, written with or without its dashes; null: none.
template <class Request>
const Setting<Request>* findSetting(const SettingRows<Request>& rows, std::string_view name) {
  if (name.starts_with("--")) name.remove_prefix(2);
  const auto found = std::ranges::find_if(rows, [&](const auto& row) { return row.isNamed(name); });
  return found == rows.end() ? nullptr : &*found;
}

/// The arguments that `readArguments` reads as this request, without those of the default request.
template <class Request>
std::vector<std::string> argumentsOf(const SettingRows<Request>& rows, const Request& request) {
  const Request byDefault{};
  std::vector<std::string> words;
  for (const Setting<Request>& row : rows) {
    if (!row.isAlwaysWritten && row.isSame(request, byDefault)) continue;
    for (std::string& text : row.texts(request)) {
      if (row.form.kind == ValueKind::Switch) {
        if (text == kOn) words.push_back(row.flag);
      } else {
        words.insert(words.end(), {row.flag, std::move(text)});
      }
    }
  }
  return words;
}

/// Reads arguments of the forms "--flag value", "--flag=value" and, of a switch, "--flag". BadUsage names the argument.
template <class Request>
Result<void> readArguments(const SettingRows<Request>& rows, const std::vector<std::string>& words, Request& request) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::size_t equals = words[i].starts_with("--") ? words[i].find('=') : std::string::npos;
    const std::string flag = words[i].substr(0, equals);
    const Setting<Request>* row = flag.starts_with("--") ? findSetting(rows, flag) : nullptr;
    if (!row) return fail(ErrorCode::BadUsage, "\"{}\" is not a flag here.", words[i]);
    if (row->form.kind == ValueKind::Switch && equals == std::string::npos) {
      CLEAVE_TRY_VOID(row->read(request, kOn));
    } else if (equals != std::string::npos) {
      CLEAVE_TRY_VOID(row->read(request, std::string_view(words[i]).substr(equals + 1)));
    } else if (++i < words.size()) {
      CLEAVE_TRY_VOID(row->read(request, words[i]));
    } else {
      return fail(ErrorCode::BadUsage, "{} has no value.", flag);
    }
  }
  return {};
}

/// Applies to `now` the differences between `from` and `to`, and keeps its other changes.
template <class Request>
void applyChanges(const SettingRows<Request>& rows, Request& now, const Request& from, const Request& to) {
  for (const Setting<Request>& row : rows) {
    if (!row.isSame(from, to)) row.copy(now, to);
  }
}

}  // namespace cleave::settings
