#include "views/panels/conflict_card.h"

#include <QApplication>
#include <QClipboard>
#include <QEvent>
#include <QPushButton>
#include <QTimer>
#include <QVBoxLayout>

#include "views/panels/answer_offers.h"
#include "views/panels/conflict_text.h"
#include "views/widgets/flow_layout.h"
#include "views/widgets/link_text.h"
#include "views/widgets/panel_parts.h"

namespace cleave::views {

namespace {
constexpr int kRemediesShare = 60;  ///< percent of the card for remedies; the rest scrolls
}

ConflictCard::ConflictCard(const OpenedModel& opened, Plans& plans, Debugger& debugger, Selection& selection,
                           Answers& answers, QWidget* parent)
    : QWidget(parent),
      m_opened(opened),
      m_plans(plans),
      m_debugger(debugger),
      m_answers(answers),
      m_text(new LinkText),
      m_offers(new OfferList) {
  m_text->setEmptyText(QStringLiteral(
      "At a dead end of the search, this card shows the values that cause it, what was tried, and what helps. Solve "
      "a model, then press F8."));
  m_text->setAccessibleName(QStringLiteral("Conflict"));
  auto* copyButton = new QPushButton(QStringLiteral("Copy"));
  auto* previous = new QPushButton(QStringLiteral("Previous"));
  auto* next = new QPushButton(QStringLiteral("Next conflict"));
  previous->setToolTip(QStringLiteral("Previous conflict (Shift+F8)"));
  next->setToolTip(QStringLiteral("Next conflict (F8)"));
  auto* buttons = new FlowLayout;
  buttons->addWidget(previous);
  buttons->addWidget(next);
  buttons->addWidget(copyButton);
  makeColumn(this, {m_text, m_offers}, m_text)->addLayout(buttons);
  connect(m_text, &LinkText::followed, &selection, &Selection::follow);
  connect(m_offers, &OfferList::followed, &selection, &Selection::follow);
  connect(copyButton, &QPushButton::clicked, this, &ConflictCard::copy);
  connect(previous, &QPushButton::clicked, &debugger, &Debugger::previousConflict);
  connect(next, &QPushButton::clicked, &debugger, &Debugger::nextConflict);
  m_offers->limitTo(*this, kRemediesShare);
  auto* timer = new RefreshTimer(this, [this] { refresh(); });
  timer->followPalette()
      .follow(debugger, {&Debugger::stepChanged, &Debugger::traceChanged})
      .follow(plans, {&Plans::planChanged});
  timer->follow(answers, {&Answers::remediesChanged}).follow(opened, {&OpenedModel::changed});
  const auto enable = [=, &debugger] {
    for (QPushButton* button : {copyButton, previous, next}) button->setEnabled(debugger.trace() != nullptr);
  };
  connect(&debugger, &Debugger::traceChanged, this, enable);
  enable();
}

void ConflictCard::refresh() {
  m_text->showHtml(conflictText(m_plans, m_debugger, TextColors::of(palette())), false);
  refreshOffers();
}

/// The remedies for the card's subject: this conflict, no solution, or layers that stayed replicated.
void ConflictCard::refreshOffers() {
  const TextColors colors = TextColors::of(palette());
  const auto& state = m_debugger.state();
  const auto& solved = m_plans.solved();
  if (!m_opened.graph() || !solved) return m_offers->clear();
  const bool hasConflict = state && state->conflict;
  const bool hasSolution = solved->result.solution.has_value();
  std::vector<Offer> offers;
  QString head;
  const auto& remedies = m_answers.remedies();
  const solve::Core& core = solved->result.core;
  if (!hasSolution && !core.constraints.empty()) {
    head = heading(core.isIrreducible ? QStringLiteral("These constraints conflict; each one is needed")
                                      : QStringLiteral("These constraints conflict"),
                   colors);
    offers = coreOffers(m_plans, *m_opened.graph(), core);
  }
  if (remedies && remedies->fits)
    for (Offer& offer : fitOffers(m_plans, m_opened.model()->info, *remedies->fits, colors))
      offers.push_back(std::move(offer));
  const QString title =
      hasConflict   ? QStringLiteral("Changes that resolve this conflict (best first, other rank counts last)")
      : hasSolution ? QStringLiteral("Changes that split more layers (best first, other rank counts last)")
                    : QStringLiteral("Changes that lead to a plan (best first, other rank counts last)");
  if (remedies && !remedies->failure.isEmpty()) {
    offers.push_back({quiet(remedies->failure.toHtmlEscaped(), colors), {}, {}, {}});
  } else if (remedies && !remedies->offers.empty()) {
    offers.push_back({heading(title, colors), {}, {}, {}});
    for (Offer& offer : remedyOffers(m_plans, *m_opened.graph(), remedies->offers, colors))
      offers.push_back(std::move(offer));
  } else if (remedies && !remedies->fits && (hasConflict || !hasSolution)) {
    offers.push_back({quiet(QStringLiteral("None of the single changes tried helps."), colors), {}, {}, {}});
  } else if (m_answers.isPending(AnswerKind::Remedies)) {
    offers.push_back({quiet(QStringLiteral("Trying changes that could help …"), colors), {}, {}, {}});
  }
  m_offers->setOffers(head, std::move(offers));
}

void ConflictCard::copy() const {
  const QString offers = m_offers->plainText();
  QApplication::clipboard()->setText(m_text->toPlainText() +
                                     (offers.isEmpty() ? QString() : QStringLiteral("\n\n") + offers));
}

}  // namespace cleave::views
