#include "views/panels/pareto_panel.h"

#include <QApplication>
#include <QClipboard>
#include <QLabel>
#include <QPushButton>
#include <QVBoxLayout>

#include "plan/text/choice_text.h"
#include "views/base/text.h"
#include "views/panels/pareto_plot.h"
#include "views/widgets/flow_layout.h"
#include "views/widgets/panel_parts.h"

namespace cleave::views {

ParetoPanel::ParetoPanel(const OpenedModel& opened, Settings& settings, Plans& plans, Answers& answers,
                         const Jobs& jobs, QWidget* parent)
    : QWidget(parent),
      m_opened(opened),
      m_settings(settings),
      m_plans(plans),
      m_answers(answers),
      m_jobs(jobs),
      m_empty(new EmptyState),
      m_full(new QWidget),
      m_plot(new ParetoPlot),
      m_readout(new QLabel),
      m_summary(new QLabel),
      m_use(new QPushButton(QStringLiteral("Use this plan"))) {
  for (QLabel* label : {m_readout, m_summary}) {
    label->setTextFormat(Qt::PlainText);
    label->setWordWrap(true);
    label->setTextInteractionFlags(Qt::TextSelectableByMouse);
  }
  m_summary->setForegroundRole(QPalette::PlaceholderText);
  m_use->setToolTip(
      QStringLiteral("Set the memory budget to what this plan needs, without slack, and solve again (Enter)"));
  auto* copy = new QPushButton(QStringLiteral("Copy"));
  copy->setToolTip(QStringLiteral("All plans of the front as a table"));
  auto* buttons = new FlowLayout(0);
  buttons->addWidget(m_use);
  buttons->addWidget(copy);
  auto* full = new QVBoxLayout(m_full);
  full->setContentsMargins(8, 6, 8, 6);
  full->setSpacing(4);
  full->addWidget(m_readout);
  full->addWidget(m_plot, 1);
  full->addWidget(m_summary);
  full->addLayout(buttons);
  makeColumn(this, {m_empty, m_full});

  connect(m_plot, &ParetoPlot::readoutChanged, this, [this] {
    m_readout->setText(m_plot->readout());
    m_use->setEnabled(m_plot->current() >= 0);
  });
  connect(m_plot, &ParetoPlot::pointUsed, &plans, &Plans::usePoint);
  connect(m_use, &QPushButton::clicked, this, [this] {
    if (m_plot->current() >= 0) m_plans.usePoint(m_plot->point(m_plot->current()));
  });
  connect(copy, &QPushButton::clicked, this, &ParetoPanel::copyTable);
  connect(m_empty, &EmptyState::acted, this, &ParetoPanel::fill);
  connect(m_empty, &EmptyState::cancelled, this, [this] { m_answers.cancel(); });
  connect(&answers, &Answers::progressed, m_empty,
          [this](const QString&, qint64 done, qint64 total) { m_empty->setProgress(done, total); });
  auto* timer = new RefreshTimer(this, [this] { refresh(); });
  timer->follow(answers, {&Answers::frontChanged}).follow(plans, {&Plans::planChanged});
  timer->follow(opened, {&OpenedModel::changed}).follow(settings, {&Settings::changed});
  timer->follow(jobs, {&Jobs::activityChanged});
  refresh();
}

void ParetoPanel::refresh() {
  const auto& front = m_answers.front();
  const bool isFull = front && front->failure.isEmpty() && !front->front.points.empty();
  m_full->setVisible(isFull);
  m_empty->setVisible(!isFull);
  if (isFull)
    showPlot();
  else
    showEmpty();
}

void ParetoPanel::showPlot() {
  const Front& front = *m_answers.front();
  ParetoData data{front.front, std::nullopt, std::nullopt};
  if (const auto& plan = m_plans.plan()) {
    data.present = solve::ParetoPoint{plan->cost.femtoseconds(), plan->cost.bytes(), plan->cost.transientPeak};
    data.budgetBytes = plan->spec.cost.budgetBytes();
  }
  m_plot->setData(std::move(data));
  const auto& plan = m_plans.plan();
  const std::string chosen = plan ? plan::choiceInWords(*plan) : std::string();
  m_summary->setText(chosen.empty() ? m_plot->summary()
                                    : QStringLiteral("%1 The plan shown: %2.").arg(m_plot->summary(), toQ(chosen)));
}

void ParetoPanel::showEmpty() {
  const QString promise =
      QStringLiteral("This panel plots time against memory: each plan that no other plan beats in both.");
  const auto& solved = m_plans.solved();
  if (m_answers.isPending(AnswerKind::Front)) return m_empty->work(QStringLiteral("Computing the Pareto front …"));
  if (!m_opened.model()) return m_empty->say(QStringLiteral("%1 Open a model to begin.").arg(promise));
  if (m_jobs.activity() == Activity::Solving)
    return m_empty->say(QStringLiteral("%1 The search is still running.").arg(promise));
  if (solved && solved->result.outcome == solve::Outcome::NoSolution)
    return m_empty->say(QStringLiteral("%1, so there is no front. The conflict card shows the reason.")
                            .arg(toQ(solve::noSolutionText(solved->result))));
  if (!solved || !solved->result.optimum)
    return m_empty->say(QStringLiteral("%1 Only the engine optimal computes them.").arg(promise),
                        QStringLiteral("Solve with optimal"));
  const auto& front = m_answers.front();
  if (front && !front->failure.isEmpty()) return m_empty->say(front->failure, QStringLiteral("Try again"));
  m_empty->say(promise, QStringLiteral("Compute the front"));
}

void ParetoPanel::fill() {
  const auto& solved = m_plans.solved();
  if (solved && solved->result.optimum) return m_answers.computeFront();
  m_settings.setEngine(solve::Engine::Optimal);
  m_settings.solve();
}

void ParetoPanel::copyTable() const {
  QStringList lines{QStringLiteral("femtoseconds per step\tbytes per rank\ttransient bytes of these")};
  for (int i = 0; i < m_plot->count(); ++i)
    lines << QStringLiteral("%1\t%2\t%3")
                 .arg(toQ(cleave::toText(m_plot->point(i).femtoseconds)))
                 .arg(m_plot->point(i).bytes)
                 .arg(m_plot->point(i).transientPeak);
  QApplication::clipboard()->setText(lines.join(QLatin1Char('\n')));
}

}  // namespace cleave::views
