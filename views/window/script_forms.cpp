#include "views/window/script_forms.h"

#include <algorithm>
#include <charconv>

#include "rules/placement.h"
#include "rules/strategy.h"
#include "settings/value_form.h"
#include "solve/problem/pins.h"

namespace cleave::views {

namespace {
constexpr int kLeastWindow = 10, kMostWindow = 9999;

/// The form of text for which `isGood` holds.
ScriptForm checkedForm(std::string write, std::function<bool(const std::string&)> isGood) {
  ScriptForm form{.write = write};
  form.check = [write = std::move(write), isGood = std::move(isGood)](std::string_view argument,
                                                                      const std::string& text) -> Result<void> {
    if (isGood(text)) return {};
    return settings::wrongValue(argument, text, write);
  };
  return form;
}

/// Digits only: no sign, no spaces.
bool isNumberWithin(std::string_view text, std::int64_t least, std::int64_t most) {
  std::int64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  return error == std::errc() && stop == end && !text.starts_with('-') && value >= least && value <= most;
}
}  // namespace

ScriptForm wordForm(std::string write) { return {.write = std::move(write)}; }

ScriptForm textForm(std::string write) { return {.write = std::move(write), .hasSpaces = true}; }

ScriptForm choiceForm(std::vector<std::string> words) {
  ScriptForm form = checkedForm(settings::orText(words), [words](const std::string& text) {
    return std::find(words.begin(), words.end(), text) != words.end();
  });
  form.words = std::move(words);
  return form;
}

ScriptForm numberForm(int least, int most) {
  return checkedForm(fmt::format("a whole number from {} to {}", least, most),
                     [=](const std::string& text) { return isNumberWithin(text, least, most); });
}

ScriptForm stepForm() {
  return checkedForm("the number of a step, or a difference such as +1 or -1", [](std::string_view text) {
    if (text.starts_with('+') || text.starts_with('-')) text.remove_prefix(1);
    return isNumberWithin(text, 0, std::numeric_limits<std::int64_t>::max());
  });
}

ScriptForm windowSizeForm() {
  return checkedForm(
      fmt::format("a width and a height from {} to {} pixels, such as 1440x900", kLeastWindow, kMostWindow),
      [](std::string_view text) {
        const std::size_t cross = std::min(text.find('x'), text.size());
        return isNumberWithin(text.substr(0, cross), kLeastWindow, kMostWindow) &&
               isNumberWithin(text.substr(std::min(cross + 1, text.size())), kLeastWindow, kMostWindow);
      });
}

ScriptForm fileNameForm(std::vector<std::string> endings) {
  std::string write = "a file name without a folder";
  if (!endings.empty()) write += " that ends in " + settings::orText(endings);
  const bool hasSpaces = !endings.empty();
  ScriptForm form = checkedForm(std::move(write), [endings = std::move(endings)](const std::string& text) {
    const auto isEnding = [&](const std::string& ending) {
      return text.size() > ending.size() && text.ends_with(ending);
    };
    return text.find_first_of("/\\") == std::string::npos &&
           (endings.empty() || std::any_of(endings.begin(), endings.end(), isEnding));
  });
  form.hasSpaces = hasSpaces;
  return form;
}

ScriptForm pinForm() {
  ScriptForm form =
      checkedForm("NAME=S(1) or NAME=R for a value, or LAYER=column for a layer; != forbids, and * matches",
                  [](const std::string& text) { return solve::Pin::parse(text).has_value(); });
  form.hasSpaces = true;
  return form;
}

ScriptForm placementOrStrategyForm() {
  ScriptForm form =
      checkedForm("a placement such as R or S(1), or a strategy such as column",
                  [](const std::string& text) { return rules::parseStrategy(text) || rules::Placement::parse(text); });
  form.hasSpaces = true;
  return form;
}

}  // namespace cleave::views
