// Settings of the next solve, and the user's demands with their undo.
#include <QFileInfo>
#include <QUndoCommand>

#include "views/base/text.h"
#include "views/session/document.h"

namespace cleave::views {

namespace {
std::vector<std::string> textsOf(const std::vector<solve::Pin>& pins) {
  std::vector<std::string> texts;
  for (const solve::Pin& pin : pins) texts.push_back(pin.text);
  return texts;
}

/// Changes in `now` what differs between `from` and `to`, and nothing else: what was set since stays.
void bring(Document::Demands& now, const Document::Demands& from, const Document::Demands& to) {
  const auto carry = [&](auto field) {
    if (from.*field != to.*field) now.*field = to.*field;
  };
  const auto carryCost = [&](auto field) {
    if (from.cost.*field != to.cost.*field) now.cost.*field = to.cost.*field;
  };
  if (textsOf(from.pins) != textsOf(to.pins)) now.pins = to.pins;
  carry(&Document::Demands::rulesOff);
  carry(&Document::Demands::redistributable);
  carry(&Document::Demands::engine);
  carry(&Document::Demands::menu);
  carry(&Document::Demands::sequenceParallel);
  carry(&Document::Demands::ranks);
  carryCost(&solve::CostSettings::profile);
  carryCost(&solve::CostSettings::isTraining);
  carryCost(&solve::CostSettings::optimizer);
  carryCost(&solve::CostSettings::memoryBudget);
  carryCost(&solve::CostSettings::slackPercent);
}

class DemandsCommand : public QUndoCommand {
 public:
  DemandsCommand(Document& document, Document::Demands after, const QString& text)
      : QUndoCommand(text), m_document(document), m_before(document.demands()), m_after(std::move(after)) {}
  void undo() override { go(m_after, m_before); }
  void redo() override { go(m_before, m_after); }

 private:
  void go(const Document::Demands& from, const Document::Demands& to) {
    Document::Demands now = m_document.demands();
    bring(now, from, to);
    m_document.applyDemands(now);
  }
  Document& m_document;
  Document::Demands m_before, m_after;
};
}  // namespace

void Document::setRanks(int ranks) {
  if (ranks == m_settings.ranks || ranks < 1) return;
  m_settings.ranks = ranks;
  emit settingsChanged();
}

void Document::setEngine(solve::Engine engine) {
  if (engine == m_settings.engine) return;
  m_settings.engine = engine;
  emit settingsChanged();
}

void Document::setSequenceParallel(rules::SequenceParallel mode) {
  if (mode == m_settings.sequenceParallel) return;
  m_settings.sequenceParallel = mode;
  emit settingsChanged();
}

void Document::setMenu(std::optional<rules::Menu> menu) {
  if (menu == m_settings.menu) return;
  m_settings.menu = menu;
  emit settingsChanged();
}

void Document::setTraining(bool isTraining) {
  if (isTraining == m_settings.cost.isTraining) return;
  m_settings.cost.isTraining = isTraining;
  emit settingsChanged();
}

void Document::setOptimizer(solve::Optimizer optimizer) {
  if (optimizer == m_settings.cost.optimizer) return;
  m_settings.cost.optimizer = optimizer;
  emit settingsChanged();
}

Result<void> Document::setDeviceProfile(const QString& nameOrFile) {
  CLEAVE_TRY(const auto profile, pipeline::deviceProfile(toStd(nameOrFile)));
  if (const QFileInfo file(nameOrFile); toQ(profile.name) != nameOrFile && file.exists())
    m_deviceFiles.push_back({profile, toStd(file.absoluteFilePath())});
  if (profile == m_settings.cost.profile) return {};
  m_settings.cost.profile = profile;
  emit settingsChanged();
  return {};
}

void Document::setMemoryBudget(std::optional<std::int64_t> bytes) {
  if (bytes == m_settings.cost.memoryBudget) return;
  m_settings.cost.memoryBudget = bytes;
  emit settingsChanged();
}

void Document::setSlack(double percent) {
  if (percent == m_settings.cost.slackPercent) return;
  m_settings.cost.slackPercent = percent;
  emit settingsChanged();
}

Document::Demands Document::Demands::of(const pipeline::SolveOptions& options) {
  return {options.pins, options.rulesOff,         options.redistributable, options.engine,
          options.menu, options.sequenceParallel, options.ranks,           options.cost};
}

void Document::applyDemands(const Demands& demands) {
  m_settings.pins = demands.pins;
  m_settings.rulesOff = demands.rulesOff;
  m_settings.redistributable = demands.redistributable;
  m_settings.engine = demands.engine;
  m_settings.menu = demands.menu;
  m_settings.sequenceParallel = demands.sequenceParallel;
  m_settings.ranks = demands.ranks;
  m_settings.cost = demands.cost;
  emit settingsChanged();
  emit pinsChanged();
  solve();
}

void Document::pushDemands(const Demands& after, const QString& text) {
  m_undo.push(new DemandsCommand(*this, after, text));
}

Result<void> Document::addPin(const QString& text) {
  if (!m_model) return fail(ErrorCode::BadUsage, "There is no model to pin {} in: open one first.", toStd(text));
  CLEAVE_TRY(const solve::Pin pin, solve::Pin::parse(toStd(text)));
  CLEAVE_TRY_VOID(checkDemand([&](solve::Problem& problem) { problem.pins = {pin}; }));
  Demands after = demands();
  std::erase_if(after.pins, [&](const solve::Pin& other) { return other.text == pin.text; });
  after.pins.push_back(pin);
  pushDemands(after, tr("pin %1").arg(text));
  return {};
}

void Document::removePin(const QString& text) {
  Demands after = demands();
  if (std::erase_if(after.pins, [&](const solve::Pin& pin) { return toQ(pin.text) == text; }) == 0) return;
  pushDemands(after, tr("lift %1").arg(text));
}

Result<void> Document::setRulesOff(std::vector<std::string> patterns) {
  if (!m_model)
    return fail(ErrorCode::BadUsage, "There is no model whose rules could be switched off: open one first.");
  CLEAVE_TRY_VOID(checkDemand([&](solve::Problem& problem) { problem.rulesOff = patterns; }));
  Demands after = demands();
  if (after.rulesOff == patterns) return {};
  after.rulesOff = std::move(patterns);
  pushDemands(after, tr("switch rules"));
  return {};
}

Result<void> Document::setRedistributable(std::vector<std::string> patterns) {
  if (!m_model) return fail(ErrorCode::BadUsage, "There is no model to redistribute values of: open one first.");
  CLEAVE_TRY_VOID(checkDemand([&](solve::Problem& problem) { problem.redistributable = patterns; }));
  Demands after = demands();
  if (after.redistributable == patterns) return {};
  after.redistributable = std::move(patterns);
  pushDemands(after, tr("redistribute values"));
  return {};
}

/// Tried alone, so that a demand is refused for its own sake and not for another's.
Result<void> Document::checkDemand(const std::function<void(solve::Problem&)>& demand) const {
  solve::Problem trial;
  trial.graph = m_model->aten;
  trial.context = {m_settings.ranks, rules::Menu::Full, m_settings.sequenceParallel};
  demand(trial);
  return trial.checkPins();
}

const pipeline::SolveOptions& Document::solvedOptions() const {
  return m_branches.empty() ? m_settings : m_branches[m_shownBranch].options;
}

void Document::applyChange(const solve::Change& change) {
  if (!m_model) return;
  const auto problem = pipeline::problemOf(*m_model, solvedOptions());
  const auto changed = problem ? solve::applied(**problem, change) : tl::unexpected<Error>(problem.error());
  if (!changed) return void(emit message(toQ(changed.error().message), Severity::Failure));
  Demands after = Demands::of(solvedOptions());
  after.pins = changed->pins;
  after.rulesOff = changed->rulesOff;
  after.redistributable = changed->redistributable;
  after.sequenceParallel = changed->context.sequenceParallel;
  after.ranks = changed->context.worldSize;
  after.cost.memoryBudget = changed->cost.memoryBudget;
  // An engine's own menu stays "its own" as long as the change does not speak of it.
  if (changed->context.menu != (*problem)->context.menu) after.menu = changed->context.menu;
  pushDemands(after, toQ(solve::toText(change)));
}

void Document::applyFit(const pipeline::Fit& fit) {
  if (!m_model) return;
  if (fit.capture == pipeline::captureOptionsOf(m_model->info))
    return pushDemands(Demands::of(fit.options), toQ(fit.change));
  pipeline::SolveOptions settings = fit.options;
  settings.onTrace = nullptr;
  recapture(fit.capture, settings);
}

void Document::usePoint(const solve::ParetoPoint& point) {
  Demands after = Demands::of(solvedOptions());
  after.engine = solve::Engine::Optimal;  // the only one that minds the budget
  after.cost.memoryBudget = point.bytes;
  after.cost.slackPercent = 0;  // that very point, not one beside it that holds less
  pushDemands(after, tr("budget of %1").arg(bytesText(point.bytes)));
}

}  // namespace cleave::views
