#include "views/panels/decision_panel.h"

#include <QEvent>
#include <QHBoxLayout>
#include <QLabel>
#include <QMenu>
#include <QPushButton>
#include <QTimer>
#include <QToolButton>
#include <QVBoxLayout>

#include "views/base/fonts.h"
#include "views/base/text.h"
#include "views/panels/answer_offers.h"
#include "views/widgets/flow_layout.h"
#include "views/widgets/link_text.h"
#include "views/widgets/panel_parts.h"

namespace cleave::views {

namespace {
constexpr int kAnswerShare = 45;  ///< percent of the panel for an answer; the rest scrolls
}

DecisionPanel::DecisionPanel(const OpenedModel& opened, Settings& settings, Plans& plans, Debugger& debugger,
                             Selection& selection, Answers& answers, Notices& notices, QWidget* parent)
    : QWidget(parent),
      m_opened(opened),
      m_settings(settings),
      m_plans(plans),
      m_debugger(debugger),
      m_selection(selection),
      m_answers(answers),
      m_notices(notices),
      m_title(new QLabel),
      m_text(new LinkText),
      m_answer(new QWidget),
      m_question(new QLabel),
      m_offers(new OfferList),
      m_pin(new QPushButton(QStringLiteral("Pin"))),
      m_forbid(new QPushButton(QStringLiteral("Forbid"))),
      m_breakpoint(new QPushButton(QStringLiteral("Breakpoint"))),
      m_next(new QPushButton(QStringLiteral("Next change"))),
      m_whyNot(new QPushButton(QStringLiteral("Why not"))) {
  m_title->setFont(strongFont(m_title->font()));
  m_title->setContentsMargins(8, 6, 8, 2);
  m_title->setTextInteractionFlags(Qt::TextSelectableByMouse);
  m_title->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Preferred);
  m_text->setEmptyText(QStringLiteral(
      "Click an operator or a module in the graph to see its choice, the alternatives, and why they were rejected."));
  m_text->setAccessibleName(QStringLiteral("Decision"));
  connect(m_text, &LinkText::followed, this, [this](const Target& target) {
    if (const auto* question = std::get_if<WhyNotTarget>(&target))
      ask(*question);
    else
      m_selection.follow(target);
  });
  makeAnswer();
  makeColumn(this, {m_title, m_text, m_answer}, m_text)->addLayout(makeButtons());
  followSession();
  refresh();
}

/// The question with a button that closes it, and the answer below.
void DecisionPanel::makeAnswer() {
  auto* close = new QToolButton;
  close->setText(QStringLiteral("✕"));
  close->setAutoRaise(true);
  close->setToolTip(QStringLiteral("Close the answer"));
  close->setAccessibleName(close->toolTip());
  m_question->setFont(strongFont(m_question->font()));
  m_question->setWordWrap(true);
  m_question->setTextInteractionFlags(Qt::TextSelectableByMouse);
  auto* question = new QHBoxLayout;
  question->setContentsMargins(8, 4, 4, 0);
  question->addWidget(m_question, 1);
  question->addWidget(close, 0, Qt::AlignTop);
  m_offers->limitTo(*this, kAnswerShare);
  QVBoxLayout* answer = makeColumn(m_answer, {makeRule()});
  answer->addLayout(question);
  answer->addWidget(m_offers);
  connect(m_offers, &OfferList::followed, &m_selection, &Selection::follow);
  connect(close, &QToolButton::clicked, this, [this] {
    m_closedReply = m_answers.whyNot();
    refreshAnswer();
  });
}

QLayout* DecisionPanel::makeButtons() {
  m_pin->setToolTip(QStringLiteral("Pin a strategy for this layer and solve again"));
  m_forbid->setToolTip(QStringLiteral("Forbid a strategy for this layer and solve again"));
  m_whyNot->setToolTip(QStringLiteral("Ask why another placement was not chosen, and what it would cost"));
  for (QPushButton* button : {m_pin, m_forbid, m_whyNot}) button->setMenu(new QMenu(button));
  m_breakpoint->setCheckable(true);
  m_breakpoint->setToolTip(QStringLiteral("Stop whenever the search changes this node (F9)"));
  m_next->setToolTip(QStringLiteral("Go to the next step that changes this node (Ctrl+F10)"));
  auto* buttons = new FlowLayout;
  for (QPushButton* button : {m_whyNot, m_pin, m_forbid, m_breakpoint, m_next}) buttons->addWidget(button);
  connect(m_breakpoint, &QPushButton::clicked, this, [this] { m_debugger.toggleBreakpoint(m_selection.focus().node); });
  connect(m_next, &QPushButton::clicked, this, [this] { m_debugger.toNextChange(m_selection.focus().node); });
  return buttons;
}

void DecisionPanel::followSession() {
  auto* timer = new RefreshTimer(this, [this] { refresh(); });
  timer->followPalette().follow(m_debugger, {&Debugger::stepChanged, &Debugger::decisionChanged,
                                             &Debugger::domainsChanged, &Debugger::breakpointsChanged});
  timer->follow(m_answers, {&Answers::analysisChanged, &Answers::whyNotChanged});
  timer->follow(m_selection, {&Selection::focusChanged}).follow(m_plans, {&Plans::planChanged});
  timer->follow(m_settings, {&Settings::demandsChanged}).follow(m_opened, {&OpenedModel::changed});
}

void DecisionPanel::refresh() {
  const DecisionText text =
      decisionText({m_opened, m_settings, m_plans, m_debugger, m_selection, m_answers}, TextColors::of(palette()));
  const Focus& focus = m_selection.focus();
  m_title->setText(text.title);
  m_title->setVisible(!text.title.isEmpty());
  m_text->showHtml(text.html, focus.node == m_shownFocus.node && focus.scope == m_shownFocus.scope);
  m_shownFocus = focus;
  const bool hasNode = focus.node.isValid();
  m_pin->setVisible(!text.pins.empty());
  m_forbid->setVisible(!text.forbids.empty());
  m_breakpoint->setVisible(hasNode);
  m_next->setVisible(hasNode && m_debugger.trace());
  m_breakpoint->setChecked(hasNode && m_debugger.hasBreakpoint(focus.node));
  fillMenu(m_pin, text.pins);
  fillMenu(m_forbid, text.forbids);
  fillQuestions(text.questions);
  refreshAnswer();
}

void DecisionPanel::refreshAnswer() {
  const auto& reply = m_answers.whyNot();
  const bool isShown = reply && reply != m_closedReply && m_opened.graph();
  m_answer->setVisible(isShown);
  if (!isShown) return m_offers->clear();
  m_question->setText(reply->question);
  AnswerText text = answerText(m_plans, *m_opened.graph(), *reply, TextColors::of(palette()));
  m_offers->setOffers(text.html, std::move(text.offers));
}

void DecisionPanel::ask(const WhyNotTarget& question) {
  const Focus& focus = m_selection.focus();
  if (const auto* strategy = std::get_if<rules::Strategy>(&question.choice))
    m_answers.askWhyNot(focus.node, *strategy);
  else
    m_answers.askWhyNot(focus.value, std::get<rules::Placement>(question.choice));
}

void DecisionPanel::fillQuestions(const std::vector<WhyNotTarget>& questions) {
  m_whyNot->setVisible(!questions.empty());
  m_whyNot->menu()->clear();
  bool hasStrategies = false;
  for (const WhyNotTarget& question : questions) {
    const bool isStrategy = std::holds_alternative<rules::Strategy>(question.choice);
    if (hasStrategies && !isStrategy) m_whyNot->menu()->addSeparator();
    hasStrategies = isStrategy;
    connect(m_whyNot->menu()->addAction(QStringLiteral("%1?").arg(question.text())), &QAction::triggered, this,
            [this, question] { ask(question); });
  }
}

void DecisionPanel::fillMenu(QPushButton* button, const std::vector<PinOffer>& offers) {
  button->menu()->clear();
  for (const PinOffer& offer : offers) {
    QAction* action = button->menu()->addAction(offer.label);
    action->setCheckable(true);
    action->setChecked(offer.isActive);
    connect(action, &QAction::triggered, this, [this, offer] {
      if (offer.isActive) return m_settings.removePin(offer.spec);
      if (const auto added = m_settings.addPin(offer.spec); !added)
        m_notices.say(toQ(added.error().message), Severity::Failure);
    });
  }
}

}  // namespace cleave::views
