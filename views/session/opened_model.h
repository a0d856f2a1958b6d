#pragma once
/// The open model, its source, and its inputs. For an opened plan or recorded search it is the graph in that
/// file. Everything is null or empty before the first open. GUI thread only.
#include <QObject>
#include <QString>

#include "pipeline/model/model.h"
#include "pipeline/session/samples.h"

namespace cleave::views {

class OpenedModel : public QObject {
  Q_OBJECT
 public:
  using QObject::QObject;
  const std::shared_ptr<const pipeline::Model>& model() const { return m_model; }
  const graph::Graph* graph() const { return m_model ? m_model->aten.get() : nullptr; }
  /// The path that was opened.
  const QString& source() const { return m_source; }
  /// The folder of the model. Empty without a folder (a recorded search alone).
  QString folder() const;
  const std::optional<pipeline::Sample>& sample() const { return m_sample; }
  /// The inputs that were asked for. The model's own are settled (`model()->info.input`).
  const spec::InputSpec& input() const { return m_input; }
  /// "Tiny Llama", or the folder's name. A sample's title mentions its rank count; with another count the title is the
  /// folder's name too.
  QString title(int ranks) const;

 signals:
  void changed();

 private:
  friend class Session;  // updates every part before it announces the change
  void take(std::shared_ptr<const pipeline::Model> model, const QString& source, const spec::InputSpec& input,
            const std::optional<pipeline::Sample>& sample);
  void announce() { emit changed(); }

  std::shared_ptr<const pipeline::Model> m_model;
  QString m_source;
  std::optional<pipeline::Sample> m_sample;
  spec::InputSpec m_input;
};

}  // namespace cleave::views
