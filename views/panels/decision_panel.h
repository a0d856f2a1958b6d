#pragma once
/// The choice of the focused node or module, and its reasons. Rich text follows the search, and its links move the
/// focus. The answer to a question is below it, with buttons for changes.
#include <QWidget>

#include "views/panels/decision_text.h"

class QLabel;
class QPushButton;

namespace cleave::views {

class LinkText;
class OfferList;

class DecisionPanel : public QWidget {
  Q_OBJECT
 public:
  DecisionPanel(const OpenedModel& opened, Settings& settings, Plans& plans, Debugger& debugger, Selection& selection,
                Answers& answers, Notices& notices, QWidget* parent = nullptr);

 private:
  void makeAnswer();
  QLayout* makeButtons();
  void followSession();
  void refresh();
  void refreshAnswer();
  void fillMenu(QPushButton* button, const std::vector<PinOffer>& offers);
  void fillQuestions(const std::vector<WhyNotTarget>& questions);
  void ask(const WhyNotTarget& question);
  const OpenedModel& m_opened;
  Settings& m_settings;
  Plans& m_plans;
  Debugger& m_debugger;
  Selection& m_selection;
  Answers& m_answers;
  Notices& m_notices;
  QLabel* m_title;
  LinkText* m_text;
  QWidget* m_answer;  ///< the why-not question and its answer
  QLabel* m_question;
  OfferList* m_offers;
  QPushButton* m_pin;
  QPushButton* m_forbid;
  QPushButton* m_breakpoint;
  QPushButton* m_next;
  QPushButton* m_whyNot;
  Focus m_shownFocus;
  std::shared_ptr<const WhyNotReply> m_closedReply;  ///< answer that the user closed
};

}  // namespace cleave::views
