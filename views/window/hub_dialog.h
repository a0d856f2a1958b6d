#pragma once
/// Asks for a model on the Hub, and whether to fetch its weights.
#include <QString>
#include <optional>

#include "base/result.h"
#include "hub/snapshot.h"

class QWidget;

namespace cleave::views {

/// "org/name" or "org/name@revision"; nullopt: the user cancelled. Offers the models in the cache.
std::optional<QString> askForHubModel(QWidget* parent);

enum class WeightsChoice { Fetch, Random };
/// Before a run of a model with weights on its Hub. `announced`: their size, or the reason why it is unknown.
std::optional<WeightsChoice> askForHubWeights(const QString& model, const Result<hub::WeightsAnnounced>& announced,
                                              QWidget* parent);

}  // namespace cleave::views
