#include "views/run/log_page.h"

#include <QComboBox>
#include <QFontDatabase>
#include <QPlainTextEdit>
#include <QSignalBlocker>
#include <QVBoxLayout>

#include "views/base/text.h"

namespace cleave::views {

LogPage::LogPage(const Runs& runs, QWidget* parent)
    : QWidget(parent), m_runs(runs), m_rank(new QComboBox), m_text(new QPlainTextEdit) {
  m_rank->setAccessibleName(QStringLiteral("Rank of the log"));
  m_text->setReadOnly(true);
  m_text->setFont(QFontDatabase::systemFont(QFontDatabase::FixedFont));
  m_text->setPlaceholderText(QStringLiteral("The standard error of a run's ranks appears here."));
  m_text->setAccessibleName(QStringLiteral("Log of the ranks"));
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(8, 6, 8, 6);
  layout->addWidget(m_rank, 0, Qt::AlignLeft);
  layout->addWidget(m_text, 1);
  connect(m_rank, &QComboBox::currentIndexChanged, this, &LogPage::showText);
  showRun();
}

void LogPage::showRun() {
  const RunState* run = m_runs.state();
  const int ranks = run && run->hasRanks() ? run->settings.ranks : 0;
  m_rank->setVisible(ranks > 0);
  if (m_rank->count() != (ranks > 0 ? ranks + 1 : 0)) {
    const QSignalBlocker blocker(m_rank);
    m_rank->clear();
    if (ranks > 0) m_rank->addItem(QStringLiteral("all ranks"));
    for (int rank = 0; rank < ranks; ++rank) m_rank->addItem(QStringLiteral("rank %1").arg(rank));
  }
  showText();
}

void LogPage::showRank(int rank) {
  if (rank + 1 < m_rank->count()) m_rank->setCurrentIndex(rank + 1);
}

void LogPage::showText() {
  const RunState* run = m_runs.state();
  QStringList lines;
  if (run && run->hasRanks()) {
    const int wanted = m_rank->currentIndex() - 1;
    for (const RankView& rank : run->monitor->snapshot()) {
      if (wanted >= 0 && rank.rank != wanted) continue;
      const QString prefix = wanted >= 0 ? QString() : QStringLiteral("rank %1: ").arg(rank.rank);
      for (const QString& line : rank.log) lines << prefix + line;
      if (!rank.error.isEmpty()) lines << prefix + rank.error;
    }
    if (lines.isEmpty() && !run->isActive) lines << QStringLiteral("The ranks wrote no output.");
  }
  const QString text = lines.join(QLatin1Char('\n'));
  if (text != m_text->toPlainText()) m_text->setPlainText(text);
}

}  // namespace cleave::views
