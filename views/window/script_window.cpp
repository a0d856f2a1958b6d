// The commands of a script that show runs, move the focus, and arrange the window.
#include <QDockWidget>

#include "views/base/text.h"
#include "views/run/history_page.h"
#include "views/run/run_view.h"
#include "views/window/graph_area.h"
#include "views/window/script_actions.h"
#include "views/window/script_values.h"

namespace cleave::views {

std::vector<std::string> ScriptActions::pageWords() { return {"overview", "lanes", "memory", "log", "history"}; }

std::vector<std::string> ScriptActions::presetWords() { return {"inspect", "debug", "run"}; }

std::vector<std::string> ScriptActions::colorWords() {
  std::vector<std::string> words;
  for (int i = 0; i < kColorByCount; ++i) words.push_back(toStd(colorName(static_cast<ColorBy>(i))));
  return words;
}

Result<void> ScriptActions::setRun(const QStringList& values) {
  RunSettings settings = m_session.runs().settings();
  for (const KeyValue& pair : keyValues(values[0])) CLEAVE_TRY_VOID(readRunValue(pair, settings));
  m_session.runs().setSettings(settings);
  return {};
}

Result<void> ScriptActions::runRanks(const QStringList& values) {
  CLEAVE_TRY_VOID(setRun(values));
  m_session.runs().run(m_session.runs().settings());
  return {};
}

Result<void> ScriptActions::bisect(const QStringList&) {
  if (!m_session.plans().plan()) return fail(ErrorCode::Negative, "there is no plan to compare with an unsplit run");
  m_window.showRun();
  m_session.runs().findFirstDifference();
  return {};
}

Result<void> ScriptActions::needSavedRun(int number) {
  const int count = static_cast<int>(m_session.runs().history().runs().size());
  if (number <= count) return {};
  return fail(ErrorCode::Negative, "there is no run {}; the number of saved runs is {}", number, count);
}

Result<void> ScriptActions::showSavedRun(const QStringList& values) {
  const int number = values[0].toInt();
  CLEAVE_TRY_VOID(needSavedRun(number));
  m_window.showRun();
  m_window.runView().showPage(RunView::Page::History);
  if (m_window.runView().history().showRun(number)) return {};
  return fail(ErrorCode::Negative, "the run {} cannot be shown", number);
}

Result<void> ScriptActions::compareSavedRuns(const QStringList& values) {
  const int first = values[0].toInt(), second = values[1].toInt();
  CLEAVE_TRY_VOID(needSavedRun(std::max(first, second)));
  m_window.showRun();
  m_window.runView().showPage(RunView::Page::History);
  if (m_window.runView().history().compare(first, second)) return {};
  return fail(ErrorCode::Negative, "compare needs two different runs");
}

Result<void> ScriptActions::forgetRun(const QStringList& values) {
  const int number = values[0].toInt();
  CLEAVE_TRY_VOID(needSavedRun(number));
  m_session.runs().history().forget(static_cast<std::size_t>(number) - 1);
  return {};
}

Result<void> ScriptActions::wait(const QStringList& values) {
  return values[0].isEmpty() ? m_jobs.reach(ScriptState::Settled) : m_jobs.pause(values[0].toInt());
}

Result<void> ScriptActions::stop(const QStringList&) {
  m_jobs.stop();
  return {};
}

Result<void> ScriptActions::select(const QStringList& values) { return focus(values[0]); }

Result<void> ScriptActions::expand(const QStringList& values) { return m_window.graphArea().expand(values[0]); }

Result<void> ScriptActions::search(const QStringList& values) {
  m_window.setSearchText(values[0]);
  const auto found = m_session.selection().find(values[0]);
  return found ? Result<void>() : tl::unexpected<Error>(found.error());
}

Result<void> ScriptActions::showView(const QStringList& values) {
  values[0] == QLatin1String("run") ? m_window.showRun() : m_window.showGraph();
  return {};
}

Result<void> ScriptActions::showPage(const QStringList& values) {
  const auto pages = pageWords();
  const auto page = std::find(pages.begin(), pages.end(), toStd(values[0])) - pages.begin();
  m_window.showRun();
  m_window.runView().showPage(static_cast<RunView::Page>(page));
  return {};
}

Result<void> ScriptActions::raisePanel(const QStringList& values) {
  if (m_window.raiseDock(values[0])) return {};
  std::vector<std::string> names{"Run"};
  for (const QDockWidget* const dock : m_window.findChildren<QDockWidget*>())
    names.push_back(toStd(dock->objectName()));
  std::sort(names.begin(), names.end());
  return fail(ErrorCode::Negative, "unknown panel \"{}\"; use {}", toStd(values[0]), settings::orText(names));
}

Result<void> ScriptActions::applyPreset(const QStringList& values) {
  const auto presets = presetWords();
  const auto preset = std::find(presets.begin(), presets.end(), toStd(values[0])) - presets.begin();
  m_window.applyPreset(static_cast<MainWindow::Preset>(preset));
  return {};
}

Result<void> ScriptActions::colorBy(const QStringList& values) {
  m_window.graphArea().setColorBy(*parseColorBy(values[0]));
  return {};
}

Result<void> ScriptActions::setTheme(const QStringList& values) {
  m_window.setDarkTheme(values[0] == QLatin1String("dark"));
  return {};
}

Result<void> ScriptActions::resize(const QStringList& values) {
  m_window.resize(values[0].section(QLatin1Char('x'), 0, 0).toInt(), values[0].section(QLatin1Char('x'), 1).toInt());
  return {};
}

}  // namespace cleave::views
