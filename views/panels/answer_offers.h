#pragma once
/// The actions that panels offer for an answer: why-not replies, sets of constraints, remedies. Each has text, figures
/// and a button that changes the demands and solves again.
#include "views/base/rich_text.h"
#include "views/session/answers.h"
#include "views/session/plans.h"
#include "views/widgets/panel_parts.h"

namespace cleave::views {

/// "Lift the pin lm_head=row": solve::toText of the change, as the label of a button.
QString changeText(const solve::Change& change);

/// One offer per constraint, in order. Constraints that the user can lift have a button.
std::vector<Offer> coreOffers(Plans& plans, const graph::Graph& graph, const solve::Core& core);

/// Layers split, bytes per rank and predicted time, before and after, as a small table.
QString figuresTable(const solve::Figures& before, const solve::Figures& after, const TextColors& colors);
/// Best first, each with its figures.
std::vector<Offer> remedyOffers(Plans& plans, const graph::Graph& graph, const std::vector<solve::Remedy>& remedies,
                                const TextColors& colors);

/// For a budget without a plan: the changes that fit, each with its figures and a button that solves with it.
std::vector<Offer> fitOffers(Plans& plans, const plan::ModelInfo& info, const pipeline::Fits& fits,
                             const TextColors& colors);

/// The answer to a why-not question, with offers.
struct AnswerText {
  QString html;
  std::vector<Offer> offers;
};
AnswerText answerText(Plans& plans, const graph::Graph& graph, const WhyNotReply& reply, const TextColors& colors);

}  // namespace cleave::views
