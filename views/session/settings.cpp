#include "views/session/settings.h"

#include <QFileInfo>
#include <QUndoCommand>
#include <algorithm>

#include "pipeline/solve/devices.h"
#include "views/base/text.h"

namespace cleave::views {

namespace {
std::vector<std::string> textsOf(const std::vector<solve::Pin>& pins) {
  std::vector<std::string> texts;
  for (const solve::Pin& pin : pins) texts.push_back(pin.text);
  return texts;
}

/// Applies to `now` the differences between `from` and `to`, and keeps later changes.
void bring(Demands& now, const Demands& from, const Demands& to) {
  const auto carry = [&](auto field) {
    if (from.*field != to.*field) now.*field = to.*field;
  };
  const auto carryCost = [&](auto field) {
    if (from.cost.*field != to.cost.*field) now.cost.*field = to.cost.*field;
  };
  if (textsOf(from.pins) != textsOf(to.pins)) now.pins = to.pins;
  carry(&Demands::rulesOff);
  carry(&Demands::redistributable);
  carry(&Demands::engine);
  carry(&Demands::candidateSet);
  carry(&Demands::sequenceParallel);
  carry(&Demands::ranks);
  carry(&Demands::trainsWithDropout);
  carryCost(&solve::CostSettings::profile);
  carryCost(&solve::CostSettings::isTraining);
  carryCost(&solve::CostSettings::optimizer);
  carryCost(&solve::CostSettings::checkpointsActivations);
  carryCost(&solve::CostSettings::memoryBudget);
  carryCost(&solve::CostSettings::slackPercent);
}

class DemandsCommand : public QUndoCommand {
 public:
  DemandsCommand(Settings& settings, Demands after, const QString& text)
      : QUndoCommand(text), m_settings(settings), m_before(settings.demands()), m_after(std::move(after)) {}
  void undo() override { go(m_after, m_before); }
  void redo() override { go(m_before, m_after); }

 private:
  void go(const Demands& from, const Demands& to) {
    Demands now = m_settings.demands();
    bring(now, from, to);
    m_settings.apply(now);
  }
  Settings& m_settings;
  Demands m_before, m_after;
};
}  // namespace

rules::CandidateSet candidateSetOf(const pipeline::SolveOptions& options) {
  return options.candidateSet.value_or(pipeline::defaultCandidateSet(options.engine));
}

bool isSameProblem(const pipeline::SolveOptions& a, const pipeline::SolveOptions& b) {
  const auto isSamePin = [](const solve::Pin& one, const solve::Pin& other) { return one.text == other.text; };
  return a.ranks == b.ranks && a.engine == b.engine && candidateSetOf(a) == candidateSetOf(b) &&
         a.sequenceParallel == b.sequenceParallel && std::ranges::equal(a.pins, b.pins, isSamePin) &&
         a.rulesOff == b.rulesOff && a.redistributable == b.redistributable && a.cost == b.cost && a.seed == b.seed &&
         a.dropsOut() == b.dropsOut();
}

Settings::Settings(const OpenedModel& opened, QUndoStack& undo, QObject* parent)
    : QObject(parent), m_opened(opened), m_undo(undo) {
  // Without resources the generic profile remains, which is enough to open a trace.
  if (auto profile = pipeline::deviceProfile(std::string(pipeline::kDefaultDevice)))
    m_options.cost.profile = std::move(*profile);
}

pipeline::SolveOptions Settings::forNewModel() const {
  pipeline::SolveOptions options = m_isBorrowed ? m_own : m_options;
  options.pins.clear();
  options.rulesOff.clear();
  options.redistributable.clear();
  return options;
}

void Settings::take(const pipeline::SolveOptions& options, bool isBorrowed) {
  if (isBorrowed && !m_isBorrowed) m_own = m_options;
  m_isBorrowed = isBorrowed;
  m_options = options;
  m_options.cache = std::make_shared<solve::SolveCache>();
}

void Settings::show(const pipeline::SolveOptions& options) {
  m_options = options;
  announce();
}

void Settings::announce() {
  emit changed();
  emit demandsChanged();
}

std::string Settings::deviceFile(const solve::DeviceProfile& profile) const {
  for (auto known = m_deviceFiles.rbegin(); known != m_deviceFiles.rend(); ++known)
    if (known->profile == profile && QFileInfo::exists(toQ(known->file))) return known->file;
  return {};
}

void Settings::noteDeviceFile(const solve::DeviceProfile& profile, const QString& file) {
  m_deviceFiles.push_back({profile, toStd(QFileInfo(file).absoluteFilePath())});
}

void Settings::setRanks(int ranks) {
  if (ranks == m_options.ranks || ranks < 1) return;
  m_options.ranks = ranks;
  emit changed();
}

void Settings::setEngine(solve::Engine engine) {
  if (engine == m_options.engine) return;
  m_options.engine = engine;
  emit changed();
}

void Settings::setSequenceParallel(rules::SequenceParallel mode) {
  if (mode == m_options.sequenceParallel) return;
  m_options.sequenceParallel = mode;
  emit changed();
}

void Settings::setCandidateSet(std::optional<rules::CandidateSet> candidateSet) {
  if (candidateSet == m_options.candidateSet) return;
  m_options.candidateSet = candidateSet;
  emit changed();
}

void Settings::setTraining(bool isTraining) {
  if (isTraining == m_options.cost.isTraining) return;
  m_options.cost.isTraining = isTraining;
  emit changed();
}

void Settings::setOptimizer(solve::Optimizer optimizer) {
  if (optimizer == m_options.cost.optimizer) return;
  m_options.cost.optimizer = optimizer;
  emit changed();
}

void Settings::setCheckpointsActivations(bool checkpoints) {
  if (checkpoints == m_options.cost.checkpointsActivations) return;
  m_options.cost.checkpointsActivations = checkpoints;
  emit changed();
}

void Settings::setTrainsWithDropout(bool trainsWithDropout) {
  if (trainsWithDropout == m_options.trainsWithDropout) return;
  m_options.trainsWithDropout = trainsWithDropout;
  emit changed();
}

Result<void> Settings::setDeviceProfile(const QString& nameOrFile) {
  CLEAVE_TRY(const auto profile, pipeline::deviceProfile(toStd(nameOrFile)));
  if (const QFileInfo file(nameOrFile); toQ(profile.name) != nameOrFile && file.exists())
    noteDeviceFile(profile, nameOrFile);
  if (profile == m_options.cost.profile) return {};
  m_options.cost.profile = profile;
  emit changed();
  return {};
}

void Settings::setMemoryBudget(std::optional<std::int64_t> bytes) {
  if (bytes == m_options.cost.memoryBudget) return;
  m_options.cost.memoryBudget = bytes;
  emit changed();
}

void Settings::setSlack(double percent) {
  if (percent == m_options.cost.slackPercent) return;
  m_options.cost.slackPercent = percent;
  emit changed();
}

Demands Demands::of(const pipeline::SolveOptions& options) {
  return {options.pins,   options.rulesOff,     options.redistributable,
          options.engine, options.candidateSet, options.sequenceParallel,
          options.ranks,  options.cost,         options.trainsWithDropout};
}

void Settings::apply(const Demands& demands) {
  m_options.pins = demands.pins;
  m_options.rulesOff = demands.rulesOff;
  m_options.redistributable = demands.redistributable;
  m_options.engine = demands.engine;
  m_options.candidateSet = demands.candidateSet;
  m_options.sequenceParallel = demands.sequenceParallel;
  m_options.ranks = demands.ranks;
  m_options.cost = demands.cost;
  m_options.trainsWithDropout = demands.trainsWithDropout;
  emit changed();
  emit demandsChanged();
  solve();
}

void Settings::demand(const Demands& after, const QString& what) {
  m_undo.push(new DemandsCommand(*this, after, what));
}

Result<void> Settings::addPin(const QString& text) {
  if (!m_opened.model())
    return fail(ErrorCode::BadUsage, "Cannot pin {}: no model is open. Open one first.", toStd(text));
  CLEAVE_TRY(const solve::Pin pin, solve::Pin::parse(toStd(text)));
  CLEAVE_TRY_VOID(check([&](solve::Problem& problem) { problem.pins = {pin}; }));
  Demands after = demands();
  std::erase_if(after.pins, [&](const solve::Pin& other) { return other.text == pin.text; });
  after.pins.push_back(pin);
  demand(after, QStringLiteral("pin %1").arg(text));
  return {};
}

void Settings::removePin(const QString& text) {
  Demands after = demands();
  if (std::erase_if(after.pins, [&](const solve::Pin& pin) { return toQ(pin.text) == text; }) == 0) return;
  demand(after, QStringLiteral("lift %1").arg(text));
}

Result<void> Settings::setRulesOff(std::vector<std::string> patterns) {
  if (!m_opened.model()) return fail(ErrorCode::BadUsage, "Cannot switch off rules: no model is open. Open one first.");
  CLEAVE_TRY_VOID(check([&](solve::Problem& problem) { problem.rulesOff = patterns; }));
  Demands after = demands();
  if (after.rulesOff == patterns) return {};
  after.rulesOff = std::move(patterns);
  demand(after, QStringLiteral("switch rules"));
  return {};
}

Result<void> Settings::setRedistributable(std::vector<std::string> patterns) {
  if (!m_opened.model())
    return fail(ErrorCode::BadUsage, "Cannot redistribute values: no model is open. Open one first.");
  CLEAVE_TRY_VOID(check([&](solve::Problem& problem) { problem.redistributable = patterns; }));
  Demands after = demands();
  if (after.redistributable == patterns) return {};
  after.redistributable = std::move(patterns);
  demand(after, QStringLiteral("redistribute values"));
  return {};
}

/// Checked alone, so that an error is about this demand and not about another one.
Result<void> Settings::check(const std::function<void(solve::Problem&)>& demand) const {
  solve::Problem trial;
  trial.graph = m_opened.model()->aten;
  trial.context = {m_options.ranks, rules::CandidateSet::Full, m_options.sequenceParallel};
  demand(trial);
  return trial.checkPins();
}

}  // namespace cleave::views
