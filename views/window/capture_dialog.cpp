#include "views/window/capture_dialog.h"

#include <QCheckBox>
#include <QComboBox>
#include <QDialog>
#include <QDialogButtonBox>
#include <QFileDialog>
#include <QFormLayout>
#include <QHBoxLayout>
#include <QLabel>
#include <QLineEdit>
#include <QPushButton>
#include <QSpinBox>

#include "formats/exported_sizes.h"
#include "views/base/text.h"

namespace cleave::views {

namespace {
/// The fields of the dialog. They are read after it was accepted.
struct Fields {
  QSpinBox *batch, *sequence, *keep;
  QComboBox* dtype;
  QCheckBox *mask, *tokenTypes, *loss;
};

QSpinBox* addNumber(QFormLayout& form, const QString& label, std::int64_t value, int least) {
  auto* box = new QSpinBox;
  box->setRange(least, 1 << 20);
  box->setValue(static_cast<int>(value));
  form.addRow(label, box);
  return box;
}

Fields makeFields(QFormLayout& form, const spec::InputSpec& now, const plan::ModelInfo& model) {
  Fields fields{};
  fields.batch = addNumber(form, QStringLiteral("Batch"), model.batch, 1);
  fields.sequence = addNumber(form, QStringLiteral("Sequence"), model.sequence, 1);
  fields.keep = addNumber(form, QStringLiteral("Logits to keep"), now.logitsToKeep, 0);
  fields.keep->setSpecialValueText(QStringLiteral("all positions"));
  fields.dtype = new QComboBox;
  fields.dtype->addItem(QStringLiteral("as in the config"));
  for (const auto type : {graph::DType::Float32, graph::DType::BFloat16, graph::DType::Float16}) {
    fields.dtype->addItem(toQ(graph::toText(type)), int(type));
    if (now.dtype == type) fields.dtype->setCurrentIndex(fields.dtype->count() - 1);
  }
  form.addRow(QStringLiteral("Data type"), fields.dtype);
  fields.mask = new QCheckBox(QStringLiteral("with an attention mask"));
  fields.mask->setChecked(now.mask);
  fields.tokenTypes = new QCheckBox(QStringLiteral("with token types"));
  fields.tokenTypes->setChecked(now.tokenTypes);
  fields.loss = new QCheckBox(QStringLiteral("with labels and the loss"));
  fields.loss->setChecked(now.loss);
  form.addRow(QString(), fields.mask);
  form.addRow(QString(), fields.tokenTypes);
  form.addRow(QString(), fields.loss);
  return fields;
}

/// The weights that an archive lacks: a safetensors file, or a folder of them.
QLineEdit* addWeights(QFormLayout& form, const pipeline::Model& model, QWidget* parent) {
  auto* path = new QLineEdit(toQ(model.info.input.weights));
  path->setObjectName(QStringLiteral("weights"));
  path->setMinimumWidth(path->fontMetrics().averageCharWidth() * 44);
  path->setPlaceholderText(QStringLiteral("empty: random weights"));
  auto* row = new QHBoxLayout;
  row->addWidget(path, 1);
  const auto addButton = [&](const QString& text, auto ask) {
    auto* button = new QPushButton(text);
    QObject::connect(button, &QPushButton::clicked, path, [path, ask] {
      if (const QString chosen = ask(); !chosen.isEmpty()) path->setText(chosen);
    });
    row->addWidget(button);
  };
  const QString beside = toQ(model.exported->path.parent_path().string());
  const auto from = [path, beside] { return path->text().isEmpty() ? beside : path->text(); };
  addButton(QStringLiteral("File…"), [from, parent] {
    return QFileDialog::getOpenFileName(parent, QStringLiteral("Weights"), from(),
                                        QStringLiteral("safetensors (*.safetensors);;All files (*)"));
  });
  addButton(QStringLiteral("Folder…"),
            [from, parent] { return QFileDialog::getExistingDirectory(parent, QStringLiteral("Weights"), from()); });
  form.addRow(
      new QLabel(QStringLiteral("The archive has no readable weights. Choose a safetensors file or a folder of them "
                                "whose tensors have the parameters' names.")));
  form.addRow(QStringLiteral("Weights"), row);
  return path;
}

/// Shows the dialog with its buttons below the fields. `go`: the label of the accepting button.
bool isAccepted(QDialog& dialog, QFormLayout& form, const QString& go = {}) {
  auto* buttons = new QDialogButtonBox(QDialogButtonBox::Ok | QDialogButtonBox::Cancel);
  if (!go.isEmpty()) buttons->button(QDialogButtonBox::Ok)->setText(go);
  form.addRow(buttons);
  QObject::connect(buttons, &QDialogButtonBox::accepted, &dialog, &QDialog::accept);
  QObject::connect(buttons, &QDialogButtonBox::rejected, &dialog, &QDialog::reject);
  return dialog.exec() == QDialog::Accepted;
}
}  // namespace

std::optional<spec::InputSpec> askForCapture(const spec::InputSpec& now, const plan::ModelInfo& model,
                                             QWidget* parent) {
  QDialog dialog(parent);
  dialog.setWindowTitle(QStringLiteral("Capture input"));
  auto* form = new QFormLayout(&dialog);
  const Fields fields = makeFields(*form, now, model);
  if (!isAccepted(dialog, *form)) return std::nullopt;
  spec::InputSpec input = now;
  // A size that stays as the model was captured stays as it was asked for, perhaps not at all.
  if (fields.batch->value() != model.batch) input.batch = fields.batch->value();
  if (fields.sequence->value() != model.sequence) input.sequence = fields.sequence->value();
  input.logitsToKeep = fields.keep->value();
  input.mask = fields.mask->isChecked();
  input.tokenTypes = fields.tokenTypes->isChecked();
  input.loss = fields.loss->isChecked();
  input.dtype = fields.dtype->currentIndex() == 0
                    ? std::nullopt
                    : std::optional(static_cast<graph::DType>(fields.dtype->currentData().toInt()));
  return input;
}

std::optional<spec::InputSpec> askForSizes(const pipeline::Model& model, QWidget* parent) {
  const formats::ExportedProgram& program = *model.exported;
  QDialog dialog(parent);
  dialog.setWindowTitle(QStringLiteral("Sizes of the exported program"));
  auto* form = new QFormLayout(&dialog);
  form->addRow(
      new QLabel(QStringLiteral("Inputs: %1").arg(toQ(formats::inputsInWords(program, model.info.input.sizes)))));
  if (program.symbols.empty())
    form->addRow(new QLabel(QStringLiteral(
        "The program was exported for these sizes only. Export it with dynamic_shapes to change them.")));
  std::vector<std::pair<std::string, QSpinBox*>> boxes;
  for (const auto& [symbol, size] : model.info.input.sizes) {
    const formats::ExportedSymbol& bounds = program.symbols.at(symbol);
    QSpinBox* box =
        addNumber(*form, toQ(symbol), size, static_cast<int>(std::min<std::int64_t>(bounds.least, 1 << 20)));
    if (bounds.most) box->setMaximum(static_cast<int>(std::min<std::int64_t>(*bounds.most, 1 << 20)));
    boxes.emplace_back(symbol, box);
  }
  const bool lacksWeights = !program.whyWithoutWeights.empty();
  QLineEdit* weights = lacksWeights ? addWeights(*form, model, &dialog) : nullptr;
  if (!isAccepted(dialog, *form)) return std::nullopt;
  spec::InputSpec input = model.info.input;
  for (const auto& [symbol, box] : boxes) input.sizes[symbol] = box->value();
  if (weights) input.weights = toStd(weights->text().trimmed());
  return input;
}

std::optional<spec::InputSpec> askForWeights(const pipeline::Model& model, QWidget* parent) {
  QDialog dialog(parent);
  dialog.setWindowTitle(QStringLiteral("Weights for the run"));
  auto* form = new QFormLayout(&dialog);
  const QLineEdit* weights = addWeights(*form, model, &dialog);
  if (!isAccepted(dialog, *form, QStringLiteral("Run"))) return std::nullopt;
  spec::InputSpec input = model.info.input;
  input.weights = toStd(weights->text().trimmed());
  return input;
}

}  // namespace cleave::views
