#pragma once
/// Asks for a model by what it is called on the Hub, and whether its weights are to be fetched.
#include <QString>
#include <optional>

#include "base/result.h"
#include "hub/snapshot.h"

class QWidget;

namespace cleave::views {

/// "org/name" or "org/name@revision"; nullopt: the user thought better of it. Offers those that the cache has.
std::optional<QString> askForHubModel(QWidget* parent);

enum class WeightsChoice { Fetch, Random };
/// Before a run of a model whose weights its Hub has: `announced` says how large they are, or why that is not known.
std::optional<WeightsChoice> askForHubWeights(const QString& model, const Result<hub::WeightsAnnounced>& announced,
                                              QWidget* parent);

}  // namespace cleave::views
