#pragma once
/// The conflict at the current step, or the reason why there is no solution. Below it are the changes that help, each
/// tried, with figures before and after.
#include <QWidget>

#include "views/session/answers.h"
#include "views/session/plans.h"
#include "views/session/selection.h"

namespace cleave::views {

class LinkText;
class OfferList;

class ConflictCard : public QWidget {
  Q_OBJECT
 public:
  ConflictCard(const OpenedModel& opened, Plans& plans, Debugger& debugger, Selection& selection, Answers& answers,
               QWidget* parent = nullptr);

 private:
  void refresh();
  void refreshOffers();
  void copy() const;
  const OpenedModel& m_opened;
  Plans& m_plans;
  Debugger& m_debugger;
  Answers& m_answers;
  LinkText* m_text;
  OfferList* m_offers;
};

}  // namespace cleave::views
