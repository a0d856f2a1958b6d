#include "views/run/run_verdict.h"

#include <QEvent>
#include <QHBoxLayout>
#include <QPushButton>
#include <QVBoxLayout>
#include <algorithm>
#include <map>

#include "views/base/text.h"
#include "views/base/theme.h"
#include "views/widgets/flow_layout.h"
#include "views/widgets/panel_parts.h"

namespace cleave::views {

namespace {
/// "2 ranks: loading", "64 ranks: 60 running, 4 loading".
QString ranksAtWork(const std::vector<RankView>& ranks) {
  std::map<QString, int> byState;
  for (const RankView& rank : ranks) ++byState[toQ(protocol::toText(rank.phase))];
  QStringList parts;
  for (const auto& [state, count] : byState)
    parts << (byState.size() == 1 ? state : QStringLiteral("%1 %2").arg(count).arg(state));
  return QStringLiteral("%1: %2").arg(ranksText(static_cast<int>(ranks.size())), parts.join(QStringLiteral(", ")));
}

/// The launcher's latest notice about any rank, such as that the others wait for it.
QString noticedText(const std::vector<RankView>& ranks) {
  constexpr double kMsOfSecond = 1e3;
  const auto last = std::ranges::max_element(ranks, {}, &RankView::noticedAtMs);
  if (last == ranks.end() || last->noticed.isEmpty()) return {};
  return QStringLiteral("After %1 s: %2")
      .arg(static_cast<double>(last->noticedAtMs) / kMsOfSecond, 0, 'f', 1)
      .arg(last->noticed);
}

QString failedText(const pipeline::RunReport& report) {
  if (const auto& failure = report.outcome.firstFailure)
    return QStringLiteral("Rank %1 failed first: it %2. %3")
        .arg(failure->rank)
        .arg(toQ(failure->what), toQ(failure->lastMessage).simplified());
  if (!report.violations.empty()) return toQ(report.violations.front());
  const auto worst = std::max_element(report.outputs.begin(), report.outputs.end(), [](const auto& a, const auto& b) {
    return std::pair(!a.within(), a.ofTolerance) < std::pair(!b.within(), b.ofTolerance);
  });
  if (worst == report.outputs.end()) return {};
  if (worst->notANumber > 0)
    return QStringLiteral("%1 has %2 with NaN, here or in %3.")
        .arg(toQ(worst->name), countedText(static_cast<std::uint64_t>(worst->notANumber), QStringLiteral("element")),
             toQ(report.comparedWith));
  return QStringLiteral("%1 differs from %2 by up to %3, %4× the tolerance.")
      .arg(toQ(worst->name), toQ(report.comparedWith), QString::number(worst->maxAbs, 'g', 3),
           countText(static_cast<std::uint64_t>(std::min(worst->ofTolerance, 1e15))));
}

QString passedText(const pipeline::RunReport& report, int ranks) {
  const QString what =
      report.spec.training.isAsked()
          ? QStringLiteral("%1 on %2")
                .arg(countedText(static_cast<std::uint64_t>(report.spec.training.steps), "training step"),
                     ranksText(ranks))
          : ranksText(ranks);
  if (report.verdict == pipeline::RunVerdict::NotChecked)
    return QStringLiteral("%1: finished, results not compared.").arg(what);
  double most = 0;
  for (const pipeline::OutputDifference& output : report.outputs) most = std::max(most, output.ofTolerance);
  return QStringLiteral("%1: equal to %2, largest difference %3 % of the tolerance.")
      .arg(what, toQ(report.comparedWith), QString::number(100 * most, 'g', 3));
}

Verdict ended(const RunState& state) {
  if (!state.report)
    return {state.hasRanks() ? QStringLiteral("stopped") : QStringLiteral("not started"), state.failure, {}, Tone::Bad};
  const pipeline::RunReport& report = *state.report;
  const QString word = verdictWord(report.verdict);
  switch (report.verdict) {
    case pipeline::RunVerdict::Failed: return {word, failedText(report), {}, Tone::Bad};
    case pipeline::RunVerdict::Passed: return {word, passedText(report, state.settings.ranks), {}, Tone::Good};
    case pipeline::RunVerdict::NotChecked: break;
  }
  return {word, passedText(report, state.settings.ranks), {}, Tone::Quiet};
}
}  // namespace

QString verdictWord(pipeline::RunVerdict verdict) {
  switch (verdict) {
    case pipeline::RunVerdict::Passed: return QStringLiteral("passed");
    case pipeline::RunVerdict::NotChecked: return QStringLiteral("not checked");
    case pipeline::RunVerdict::Failed: break;
  }
  return QStringLiteral("failed");
}

QString stepText(const std::vector<protocol::TrainingStep>& steps) {
  if (steps.empty()) return {};
  const protocol::TrainingStep& last = steps.back();
  return QStringLiteral("step %1 of %2, loss %3").arg(last.step).arg(last.steps).arg(last.loss, 0, 'g', 5);
}

QString differenceText(const FirstDifference* difference) {
  if (!difference || difference->isPending()) return {};
  if (!difference->found) return difference->failure;
  return prose(pipeline::bisectionText(*difference->found, *difference->plan)).trimmed();
}

Verdict verdictOf(const RunState* state, const FirstDifference* difference) {
  if (difference && difference->isPending())
    return {QStringLiteral("comparing"),
            QStringLiteral("Searching for the first value that differs from an unsplit run."),
            {},
            Tone::Working};
  if (!state)
    return {QStringLiteral("not run"), QStringLiteral("This plan has not been run yet."), differenceText(difference),
            Tone::Quiet};
  if (!state->isActive) {
    Verdict verdict = ended(*state);
    verdict.difference = differenceText(difference);
    return verdict;
  }
  const auto ranks = state->monitor->snapshot();
  const bool areThrough =
      std::all_of(ranks.begin(), ranks.end(), [](const RankView& rank) { return rank.phase == protocol::Phase::Done; });
  const QString steps = areThrough ? QString() : stepText(state->monitor->steps());
  return {QStringLiteral("running"),
          areThrough ? QStringLiteral("The ranks have finished. The unsplit run for the comparison is still running.")
                     : ranksAtWork(ranks) + (steps.isEmpty() ? QString() : QStringLiteral(", ") + steps),
          noticedText(ranks), Tone::Working};
}

VerdictStrip::VerdictStrip(QWidget* parent)
    : QWidget(parent),
      m_word(new QLabel),
      m_sentence(new ElidedLabel),
      m_difference(new ElidedLabel),
      m_buttons(new QWidget),
      m_row(new FlowLayout(0, 6)) {
  setAccessibleName(QStringLiteral("Verdict"));
  m_word->setAlignment(Qt::AlignCenter);
  m_sentence->setTextInteractionFlags(Qt::TextSelectableByMouse);
  m_sentence->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Preferred);
  m_difference->setTextInteractionFlags(Qt::TextSelectableByMouse);
  m_difference->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Preferred);
  m_buttons->setLayout(m_row);
  auto* line = new QHBoxLayout;
  line->setSpacing(8);
  line->addWidget(m_word);
  line->addWidget(m_sentence, 1);
  auto* all = new QVBoxLayout(this);
  all->setContentsMargins(8, 6, 8, 4);
  all->setSpacing(4);
  all->addLayout(line);
  all->addWidget(m_difference);
  all->addWidget(m_buttons);
  setSizePolicy(QSizePolicy::Preferred, QSizePolicy::Fixed);
}

void VerdictStrip::setVerdict(const Verdict& verdict, std::vector<RunRemedy> remedies) {
  m_verdict = verdict;
  m_word->setText(verdict.word);
  m_sentence->setText(verdict.sentence);
  m_difference->setText(verdict.difference.section(QLatin1Char('\n'), 0, 0));
  m_difference->setVisible(!verdict.difference.isEmpty());
  setAccessibleDescription(verdict.word + QStringLiteral(": ") + verdict.sentence);
  paintWord();
  QStringList names;
  for (const RunRemedy& remedy : remedies) names << remedy.name;
  m_buttons->setVisible(!names.isEmpty());
  if (names == m_names) return;  // a refresh must not lose the keyboard focus
  m_names = names;
  while (QLayoutItem* item = m_row->takeAt(0)) {
    item->widget()->deleteLater();
    delete item;
  }
  for (RunRemedy& remedy : remedies) {
    auto* button = new QPushButton(remedy.name);
    button->setToolTip(remedy.tip);
    connect(button, &QPushButton::clicked, this, [act = std::move(remedy.act)] { act(); });
    m_row->addWidget(button);
    button->show();
  }
}

/// A word on a coloured ground. A mark in front makes the verdict readable in grey too.
void VerdictStrip::paintWord() {
  const Theme theme = Theme::of(palette());
  const QColor color = m_verdict.tone == Tone::Good      ? theme.good
                       : m_verdict.tone == Tone::Bad     ? theme.conflict
                       : m_verdict.tone == Tone::Working ? theme.accent
                                                         : theme.groundSunken;
  const QString mark = m_verdict.tone == Tone::Good  ? QStringLiteral("✓ ")
                       : m_verdict.tone == Tone::Bad ? QStringLiteral("✕ ")
                                                     : QString();
  m_word->setText(mark + m_verdict.word);
  m_word->setStyleSheet(QStringLiteral("background:%1;color:%2;font-weight:600;border-radius:4px;padding:3px 9px")
                            .arg(color.name(), theme.textOn(color).name()));
}

void VerdictStrip::changeEvent(QEvent* event) {
  QWidget::changeEvent(event);
  if (event->type() == QEvent::PaletteChange) paintWord();
}

}  // namespace cleave::views
