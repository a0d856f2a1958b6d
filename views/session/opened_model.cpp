#include "views/session/opened_model.h"

#include "pipeline/model/model.h"
#include "pipeline/source/hub_model.h"
#include "views/base/text.h"

namespace cleave::views {

QString OpenedModel::folder() const { return m_model ? toQ(m_model->info.source) : QString(); }

QString OpenedModel::title(int ranks) const {
  if (m_sample && m_sample->spec.ranks == ranks) return toQ(m_sample->title);
  if (m_source.isEmpty()) return {};
  const QString name = toQ(pipeline::modelName(toStd(m_source)));
  return name.isEmpty() ? m_source : name;
}

void OpenedModel::take(std::shared_ptr<const pipeline::Model> model, const QString& source,
                       const spec::InputSpec& input, const std::optional<pipeline::Sample>& sample) {
  m_model = std::move(model);
  m_source = source;
  m_input = input;
  m_sample = sample;
}

}  // namespace cleave::views
