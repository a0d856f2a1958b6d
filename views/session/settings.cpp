#include "views/session/settings.h"

#include <QFileInfo>
#include <QUndoCommand>
#include <algorithm>

#include "pipeline/solve/devices.h"
#include "solve/solve_cache.h"
#include "views/base/text.h"

namespace cleave::views {

namespace {
using pipeline::PlanSettings;

/// Applies to `now` the differences between `from` and `to`, and keeps later changes.
spec::PlanSpec merged(const spec::PlanSpec& now, const spec::PlanSpec& from, const spec::PlanSpec& to) {
  PlanSettings result = PlanSettings::of({}, {}, now);
  settings::applyChanges(pipeline::planSettings(), result, PlanSettings::of({}, {}, from),
                         PlanSettings::of({}, {}, to));
  if (from.cost.profile != to.cost.profile) result.plan.cost.profile = to.cost.profile;
  return result.plan;
}

class DemandCommand : public QUndoCommand {
 public:
  DemandCommand(Settings& settings, spec::PlanSpec after, const QString& text)
      : QUndoCommand(text), m_settings(settings), m_before(settings.spec()), m_after(std::move(after)) {}
  void undo() override { m_settings.apply(merged(m_settings.spec(), m_after, m_before)); }
  void redo() override { m_settings.apply(merged(m_settings.spec(), m_before, m_after)); }

 private:
  Settings& m_settings;
  spec::PlanSpec m_before, m_after;
};
}  // namespace

Settings::Settings(const OpenedModel& opened, QUndoStack& undo, QObject* parent)
    : QObject(parent), m_opened(opened), m_undo(undo) {
  // Without resources the generic profile remains, which is enough to open a trace.
  if (auto profile = pipeline::deviceProfile(std::string(pipeline::kDefaultDevice)))
    m_spec.cost.profile = std::move(*profile);
}

PlanSettings Settings::request() const {
  return PlanSettings::of(toStd(m_opened.folder()), m_opened.input(), m_spec, deviceFile(m_spec.cost.profile));
}

spec::PlanSpec Settings::forNewModel() const {
  spec::PlanSpec spec = m_isBorrowed ? m_own : m_spec;
  spec.pins.clear();
  spec.rulesOff.clear();
  spec.redistributable.clear();
  return spec;
}

void Settings::take(const spec::PlanSpec& spec, bool isBorrowed) {
  if (isBorrowed && !m_isBorrowed) m_own = m_spec;
  m_isBorrowed = isBorrowed;
  m_spec = spec;
  m_cache = std::make_shared<solve::SolveCache>();
}

void Settings::show(const spec::PlanSpec& spec) {
  m_spec = spec;
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

void Settings::change(const std::function<void(spec::PlanSpec&)>& edit) {
  spec::PlanSpec after = m_spec;
  edit(after);
  if (after == m_spec) return;
  m_spec = std::move(after);
  emit changed();
}

Result<void> Settings::set(const settings::Setting<PlanSettings>& row, const std::vector<std::string>& texts) {
  if (row.isNamed("device-profile")) return setDeviceProfile(texts.empty() ? QString() : toQ(texts.front()));
  if (row.solvesAtOnce && !m_opened.model())
    return fail(ErrorCode::BadUsage, "{} needs an open model. Open one first.", row.flag);
  PlanSettings after = request();
  row.copy(after, PlanSettings());
  for (const std::string& text : texts) CLEAVE_TRY_VOID(row.read(after, text));
  if (!row.solvesAtOnce) {
    change([&](spec::PlanSpec& spec) { spec = after.plan; });
    return {};
  }
  PlanSettings alone;
  row.copy(alone, after);
  CLEAVE_TRY_VOID(check(alone.plan));
  if (after.plan != m_spec) demand(after.plan, toQ(row.label).remove(QLatin1Char('&')).toLower());
  return {};
}

Result<void> Settings::set(std::string_view name, std::string_view text) {
  const auto* row = settings::findSetting(pipeline::planSettings(), name);
  if (!row) return fail(ErrorCode::BadUsage, "There is no setting \"{}\".", name);
  return set(*row, text.empty() ? std::vector<std::string>() : std::vector{std::string(text)});
}

void Settings::setRanks(int ranks) {
  if (ranks >= 1) change([ranks](spec::PlanSpec& spec) { spec.ranks = ranks; });
}

void Settings::setEngine(solve::Engine engine) {
  change([engine](spec::PlanSpec& spec) { spec.engine = engine; });
}

Result<void> Settings::setDeviceProfile(const QString& nameOrFile) {
  CLEAVE_TRY(const auto profile, pipeline::deviceProfile(toStd(nameOrFile)));
  if (const QFileInfo file(nameOrFile); toQ(profile.name) != nameOrFile && file.exists())
    noteDeviceFile(profile, nameOrFile);
  change([&](spec::PlanSpec& spec) { spec.cost.profile = profile; });
  return {};
}

void Settings::apply(const spec::PlanSpec& spec) {
  m_spec = spec;
  announce();
  solve();
}

void Settings::demand(const spec::PlanSpec& after, const QString& what) {
  m_undo.push(new DemandCommand(*this, after, what));
}

Result<void> Settings::addPin(const QString& text) {
  if (!m_opened.model())
    return fail(ErrorCode::BadUsage, "Cannot pin {}: no model is open. Open one first.", toStd(text));
  CLEAVE_TRY(const solve::Pin pin, solve::Pin::parse(toStd(text)));
  spec::PlanSpec alone;
  alone.pins = {pin};
  CLEAVE_TRY_VOID(check(alone));
  spec::PlanSpec after = m_spec;
  std::erase(after.pins, pin);
  after.pins.push_back(pin);
  demand(after, QStringLiteral("pin %1").arg(text));
  return {};
}

void Settings::removePin(const QString& text) {
  spec::PlanSpec after = m_spec;
  if (std::erase_if(after.pins, [&](const solve::Pin& pin) { return toQ(pin.text) == text; }) == 0) return;
  demand(after, QStringLiteral("lift %1").arg(text));
}

/// Checked apart from the other settings, so that an error is about these demands.
Result<void> Settings::check(const spec::PlanSpec& demands) const {
  spec::PlanSpec trial;
  trial.ranks = m_spec.ranks;
  trial.candidateSet = rules::CandidateSet::Full;
  trial.sequenceParallel = m_spec.sequenceParallel;
  trial.pins = demands.pins;
  trial.rulesOff = demands.rulesOff;
  trial.redistributable = demands.redistributable;
  return spec::problemOf(m_opened.model()->aten, trial).checkPins();
}

}  // namespace cleave::views
