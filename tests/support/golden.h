#pragma once
/// Text goldens of searches. A file holds a question, `---` and the answer:
///
///     # ranks 2
///     # pin head=row
///     # sequence-parallel on
///     <the graph's text form>
///     ---
///     <what the test makes of it>
///
/// CLEAVE_UPDATE_GOLDENS=1 writes the answers anew; a CI refuses that.
#include "base/files.h"
#include "tests/support/solve_support.h"

#include <QTest>

#include <algorithm>
#include <fstream>
#include <sstream>

namespace cleave::test {

class Golden {
 public:
  explicit Golden(const QString& file) : m_file(file.toStdString()) {
    constexpr std::string_view kSeparator = "---\n";
    const std::string text = *readTextFile(m_file, 1 << 20);
    const auto end = std::min(text.find(kSeparator), text.size());
    m_question = text.substr(0, end);
    m_answer = text.substr(std::min(end + kSeparator.size(), text.size()));
    parseQuestion();
  }

  std::shared_ptr<const solve::Problem> problem;

  void compare(const std::string& answer) const {
    if (!qEnvironmentVariableIsSet("CLEAVE_UPDATE_GOLDENS") || qEnvironmentVariableIsSet("CI")) {
      QCOMPARE(answer, m_answer);
      return;
    }
    std::ofstream(m_file) << m_question << "---\n" << answer;
    QSKIP("golden written");
  }

 private:
  void parseQuestion() {
    int ranks = 2;
    auto sequence = rules::SequenceParallel::Off;
    std::vector<std::string> pins;
    std::string graph;
    std::istringstream lines(m_question);
    for (std::string line; std::getline(lines, line);) {
      if (line.starts_with("# ranks ")) {
        ranks = std::stoi(line.substr(8));
      } else if (line.starts_with("# pin ")) {
        pins.push_back(line.substr(6));
      } else if (line == "# sequence-parallel on") {
        sequence = rules::SequenceParallel::On;
      } else {
        graph += line + "\n";
      }
    }
    problem = problemOf(parsedGraph(graph), ranks, pins, sequence);
  }

  fs::path m_file;
  std::string m_question, m_answer;
};

/// A row for each golden of a folder of tests/solve, in the order of their names.
inline void listGoldens(const char* folder) {
  QTest::addColumn<QString>("file");
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(fs::path(CLEAVE_SOURCE_DIR) / "tests/solve" / folder))
    files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  for (const fs::path& file : files) QTest::newRow(file.stem().c_str()) << QString::fromStdString(file.string());
}

}  // namespace cleave::test
