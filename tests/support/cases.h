#pragma once
/// Tests as text: questions and expected answers in tests/<room>/cases/<kind>/*.txt. A new case needs a new entry in a
/// file or a new file in a folder, but no C++. A file:
///
///     # What these cases are about: comments come before the first case.
///
///     === a bias that only one rank may add      (the title, once in a file)
///     > ranks 2                                  (settings, a name and its value, defined by the kind)
///     x: f32[4,8] = input                        (the question: lines that the kind reads)
///     ---
///     column(R, S(0)) -> S(1)                    (the answer, up to the next title)
///
/// A room's test defines the function that answers each kind:
///
///     const test::Cases m_cases{"rules", {{"verdicts", verdictsOf}}};
///     void answersAsWritten_data() { m_cases.list(); }       // one data row per case
///     void answersAsWritten() { m_cases.answer(); }          // fails with a diff
///
/// With CLEAVE_UPDATE_CASES=1 the test writes the current answers into the files. Review them before the commit. In CI
/// this is a failure.
#include "base/files.h"
#include "tests/support/line_diff.h"

#include <QTest>

#include <algorithm>
#include <fstream>
#include <functional>
#include <map>
#include <set>
#include <sstream>

namespace cleave::test {

inline std::vector<std::string> linesOf(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

inline std::string joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

/// A question with its settings. The test must read each setting, so that misspelt ones are detected.
class Case {
 public:
  std::string title, question;
  std::vector<std::string> expected;
  int line = 0;                    ///< of the title
  std::size_t begin = 0, end = 0;  ///< the lines of the answer

  void add(const std::string& setting) {
    const auto space = setting.find(' ');
    m_settings.emplace_back(setting.substr(0, space), space == std::string::npos ? "" : setting.substr(space + 1));
  }
  std::vector<std::string> all(const std::string& word) const {
    m_asked.insert(word);
    std::vector<std::string> values;
    for (const auto& [name, value] : m_settings) {
      if (name == word) values.push_back(value);
    }
    return values;
  }
  std::string setting(const std::string& word, const std::string& otherwise) const {
    const auto values = all(word);
    return values.empty() ? otherwise : values.back();
  }
  int number(const std::string& word, int otherwise) const {
    return std::stoi(setting(word, std::to_string(otherwise)));
  }
  bool has(const std::string& word) const { return !all(word).empty(); }
  /// The settings that the test did not read.
  std::string unasked() const {
    std::string words;
    for (const auto& [name, value] : m_settings) {
      if (!m_asked.contains(name)) words += " " + name;
    }
    return words;
  }

 private:
  std::vector<std::pair<std::string, std::string>> m_settings;
  mutable std::set<std::string> m_asked;
};

/// The cases of a file. Aborts with file and line if the file is malformed.
inline std::vector<Case> casesOf(const fs::path& file, const std::vector<std::string>& lines) {
  enum { Comments, Settings, Question, Answer } part = Comments;
  std::vector<Case> cases;
  std::set<std::string> titles;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const std::string& line = lines[i];
    const auto refuse = [&](const char* why) { qFatal("%s:%zu: %s: %s", file.c_str(), i + 1, why, line.c_str()); };
    if (line.starts_with("=== ")) {
      if (part == Settings || part == Question) refuse("the previous case has no answer");
      if (!titles.insert(line).second) refuse("two cases have this title");
      cases.emplace_back().title = line.substr(4);
      cases.back().line = static_cast<int>(i) + 1;
      part = Settings;
    } else if (part == Comments) {
      if (!line.empty() && !line.starts_with('#')) refuse("expected a comment or a title");
    } else if (part == Answer) {
      cases.back().expected.push_back(line);
      if (!line.empty()) cases.back().end = i + 1;
    } else if (line == "---") {
      part = Answer;
      cases.back().begin = cases.back().end = i + 1;
    } else if (line.starts_with("> ")) {
      if (part == Question) refuse("settings must come before the question");
      cases.back().add(line.substr(2));
    } else {
      part = Question;
      cases.back().question += line + "\n";
    }
  }
  if (part != Answer) qFatal("%s: the file has no case, or the last case has no answer", file.c_str());
  for (Case& read : cases) read.expected.resize(read.end - read.begin);
  return cases;
}

class Cases {
 public:
  using Answer = std::function<std::string(const Case&)>;

  Cases(const char* room, std::map<std::string, Answer> kinds)
      : m_folder(fs::path(CLEAVE_SOURCE_DIR) / "tests" / room / "cases"), m_kinds(std::move(kinds)) {}

  /// Adds a row for each case. Every folder must have a function that answers it, and every function a folder.
  void list() const {
    QTest::addColumn<QString>("file");
    QTest::addColumn<QString>("title");
    std::set<std::string> asked;
    for (const fs::path& file : files()) {
      const std::string kind = file.parent_path().filename();
      if (!m_kinds.contains(kind)) qFatal("%s: no function answers %s", file.c_str(), kind.c_str());
      asked.insert(kind);
      for (const Case& read : casesOf(file, linesOf(textOf(file)))) {
        QTest::addRow("%s/%s: %s", kind.c_str(), file.stem().c_str(), read.title.c_str())
            << QString::fromStdString(file.string()) << QString::fromStdString(read.title);
      }
    }
    for (const auto& [kind, answer] : m_kinds) {
      if (!asked.contains(kind)) qFatal("%s has no case of %s", m_folder.c_str(), kind.c_str());
    }
  }

  void answer() const {
    QFETCH(QString, file);
    QFETCH(QString, title);
    const fs::path path = file.toStdString();
    const auto lines = linesOf(textOf(path));
    const auto cases = casesOf(path, lines);
    const auto at =
        std::find_if(cases.begin(), cases.end(), [&](const Case& c) { return c.title == title.toStdString(); });
    QVERIFY(at != cases.end());
    auto got = linesOf(m_kinds.at(path.parent_path().filename())(*at));
    while (!got.empty() && got.back().empty()) got.pop_back();
    QVERIFY2(at->unasked().empty(), ("unknown settings" + at->unasked()).c_str());
    if (got == at->expected) return;
    if (!qEnvironmentVariableIsSet("CLEAVE_UPDATE_CASES")) {
      QFAIL(fmt::format("{}:{}: {}\n(- expected, + answered)\n{}", path.string(), at->line, at->title,
                        lineDiff(at->expected, got))
                .c_str());
    }
    QVERIFY2(!qEnvironmentVariableIsSet("CI"), "CLEAVE_UPDATE_CASES must not be set in CI");
    rewrite(path, lines, *at, got);
    QSKIP("the answer was rewritten");
  }

 private:
  static std::string textOf(const fs::path& file) {
    const auto text = readTextFile(file, 1 << 20);
    if (!text) qFatal("%s", text.error().message.c_str());
    return *text;
  }

  static void rewrite(const fs::path& file, const std::vector<std::string>& lines, const Case& old,
                      const std::vector<std::string>& answer) {
    std::vector<std::string> whole(lines.begin(), lines.begin() + static_cast<std::ptrdiff_t>(old.begin));
    whole.insert(whole.end(), answer.begin(), answer.end());
    whole.insert(whole.end(), lines.begin() + static_cast<std::ptrdiff_t>(old.end), lines.end());
    std::ofstream(file) << joined(whole);
  }

  /// Sorted by name.
  std::vector<fs::path> files() const {
    std::vector<fs::path> found;
    for (const auto& entry : fs::recursive_directory_iterator(m_folder)) {
      if (entry.is_regular_file()) found.push_back(entry.path());
    }
    std::sort(found.begin(), found.end());
    return found;
  }

  fs::path m_folder;
  std::map<std::string, Answer> m_kinds;
};

/// Answers each line of the question separately: `line -> answer`.
inline Cases::Answer eachLine(std::function<std::string(const std::string&)> answer) {
  return [answer = std::move(answer)](const Case& asked) {
    std::string text;
    for (const std::string& line : linesOf(asked.question)) text += fmt::format("{} -> {}\n", line, answer(line));
    return text;
  };
}

}  // namespace cleave::test
