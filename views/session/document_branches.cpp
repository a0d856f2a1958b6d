// Branches A and B: which solves are kept, which one is shown, and the diff between them.
#include "views/base/text.h"
#include "views/session/document.h"

namespace cleave::views {

namespace {
constexpr std::size_t kBase = 0, kChanged = 1;

std::vector<QString> pinTexts(const pipeline::SolveOptions& options) {
  std::vector<QString> texts;
  for (const solve::Pin& pin : options.pins) texts.push_back(toQ(pin.text));
  return texts;
}

template <class List, class Write>
void addListChanges(QStringList& parts, const List& before, const List& after, const Write& write) {
  for (const auto& entry : after)
    if (std::find(before.begin(), before.end(), entry) == before.end()) parts << write(entry, true);
  for (const auto& entry : before)
    if (std::find(after.begin(), after.end(), entry) == after.end()) parts << write(entry, false);
}

/// What the second solve was asked otherwise: "4 ranks, lm_head=row".
QString changeText(const pipeline::SolveOptions& before, const pipeline::SolveOptions& after) {
  QStringList parts;
  if (before.engine != after.engine) parts << toQ(solve::toText(after.engine));
  if (before.ranks != after.ranks) parts << ranksText(after.ranks);
  if (menuOf(before) != menuOf(after))
    parts << (menuOf(after) == rules::Menu::Full ? Document::tr("full menu") : Document::tr("reference's menu"));
  if (before.sequenceParallel != after.sequenceParallel)
    parts << Document::tr("sequence parallel %1").arg(toQ(rules::toText(after.sequenceParallel)));
  addListChanges(parts, pinTexts(before), pinTexts(after),
                 [](const QString& pin, bool isNew) { return isNew ? pin : Document::tr("without %1").arg(pin); });
  addListChanges(parts, before.rulesOff, after.rulesOff, [](const std::string& rule, bool isNew) {
    return isNew ? Document::tr("%1 off").arg(toQ(rule)) : Document::tr("%1 on").arg(toQ(rule));
  });
  addListChanges(parts, before.redistributable, after.redistributable, [](const std::string& value, bool isNew) {
    return isNew ? Document::tr("%1 may be redistributed").arg(toQ(value))
                 : Document::tr("%1 is not redistributed").arg(toQ(value));
  });
  const solve::CostSettings &was = before.cost, &is = after.cost;
  if (was.profile != is.profile)
    parts << (was.profile.name != is.profile.name ? toQ(is.profile.name)
                                                  : Document::tr("%1 with other figures").arg(toQ(is.profile.name)));
  if (was.isTraining != is.isTraining) parts << (is.isTraining ? Document::tr("training") : Document::tr("inference"));
  if (is.isTraining && was.optimizer != is.optimizer) parts << toQ(solve::toText(is.optimizer));
  if (was.slackPercent != is.slackPercent)
    parts << Document::tr("slack %1").arg(toQ(solve::slackText(is.slackPercent)));
  if (was.memoryBudget != is.memoryBudget)
    parts << (is.memoryBudget ? Document::tr("budget %1").arg(bytesText(*is.memoryBudget))
                              : Document::tr("no budget but the device's"));
  return parts.join(QStringLiteral(", "));
}

QString settingsText(const pipeline::SolveOptions& options) {
  return QStringLiteral("%1, %2").arg(toQ(solve::toText(options.engine)), ranksText(options.ranks));
}
}  // namespace

bool Document::isOutdated() const {
  return !m_branches.empty() && !isSameProblem(m_branches[m_shownBranch].options, m_settings);
}

void Document::takeBranch(Branch branch) {
  branch.options.onTrace = nullptr;
  const bool isBase = m_branches.empty() || isSameProblem(m_branches[kBase].options, branch.options);
  if (isBase) {
    branch.name = QStringLiteral("A");
    branch.label = settingsText(branch.options);
    m_branches = {std::move(branch)};
    m_shownBranch = kBase;
  } else {
    branch.name = QStringLiteral("B");
    branch.label = changeText(m_branches[kBase].options, branch.options);
    m_branches.resize(kChanged);
    m_branches.push_back(std::move(branch));
    m_shownBranch = kChanged;
  }
  presentBranch();
  postDiff();
  emit branchesChanged();
}

void Document::presentBranch() {
  const Branch shown = m_branches.empty() ? Branch{} : m_branches[m_shownBranch];
  m_solved = shown.solved;
  m_plan = shown.plan;
  m_answers.setSolved(m_solved);
  if (shown.trace != m_trace) setTrace(shown.trace);
  if (!m_trace && m_solved && m_solved->result.solution) showSolution();
  emit planChanged();
  m_answers.analyse(m_focus.node, m_focus.value);
  seekRemedies();
}

void Document::showBranch(std::size_t index) {
  if (index >= m_branches.size() || index == m_shownBranch) return;
  if (m_activity == Activity::Solving) {
    emit message(tr("A search is under way: stop it, or wait, before looking at another plan."), Severity::Info);
    return;
  }
  m_shownBranch = index;
  m_settings = m_branches[index].options;
  emit settingsChanged();
  emit pinsChanged();
  presentBranch();
  emit branchesChanged();
  m_followsEnd = true;
  seek(stepCount());
  say(m_branches[index]);
}

void Document::dropBranch() {
  if (m_branches.size() < 2 || m_activity == Activity::Solving) return;
  showBranch(kBase);
  m_branches.resize(kChanged);
  postDiff();
  emit branchesChanged();
}

void Document::keepBranch() {
  if (m_branches.size() < 2 || m_activity == Activity::Solving) return;
  showBranch(kChanged);
  m_branches.erase(m_branches.begin());
  m_shownBranch = kBase;
  m_branches.front().name = QStringLiteral("A");
  m_branches.front().label = settingsText(m_branches.front().options);
  postDiff();
  emit branchesChanged();
}

void Document::postDiff() {
  m_diff.reset();
  m_diffFailure.clear();
  if (m_branches.size() < 2) {
    m_reads.post(QStringLiteral("diff"), {}, [](const Progress&) { return nullptr; });  // replaces one under way
    return;
  }
  const auto before = m_branches[kBase].plan, after = m_branches[kChanged].plan;
  if (!before || !after) {
    m_diffFailure = tr("Branch %1 has no plan to compare with.").arg(m_branches[before ? kChanged : kBase].name);
    return;
  }
  m_reads.post(QStringLiteral("diff"), {}, [this, before, after](const Progress&) -> Worker::Completion {
    auto found = plan::diff(*before, *after);
    return [=, this, found = std::move(found)] {
      if (m_branches.size() < 2 || m_branches[kChanged].plan != after) return;
      if (found)
        m_diff = std::make_shared<const plan::PlanDiff>(*found);
      else
        m_diffFailure = toQ(found.error().message);
      emit branchesChanged();
    };
  });
}

/// Worth seeking when something could be better: no solution, a conflict on the way, or a layer that stayed whole.
void Document::seekRemedies() {
  if (!m_solved) return;
  const solve::SolveResult& result = m_solved->result;
  const auto isWhole = [](const std::optional<rules::StrategyOption>& option) {
    return option && option->strategy == rules::Strategy::Whole;
  };
  const bool hasWhole =
      result.solution && std::any_of(result.solution->strategies.begin(), result.solution->strategies.end(), isWhole);
  const bool hasNone = result.outcome == solve::Outcome::NoSolution;
  if (hasNone || result.stats.conflicts > 0 || hasWhole) m_answers.seekRemedies(std::nullopt);
}

}  // namespace cleave::views
