#include "views/window/hub_dialog.h"

#include <QDialog>
#include <QDialogButtonBox>
#include <QLabel>
#include <QLineEdit>
#include <QListWidget>
#include <QMessageBox>
#include <QPushButton>
#include <QVBoxLayout>

#include "hub/cache.h"
#include "views/base/text.h"

namespace cleave::views {

namespace {
constexpr int kDialogWidth = 520, kListHeight = 160;

/// Models whose config is in the cache, so that they open without a network.
QStringList cachedModels() {
  QStringList models;
  if (const auto settings = hub::hubSettings())
    for (const std::string& model : hub::Cache(settings->cache).models()) models << toQ(model);
  return models;
}

QListWidget* listOf(const QStringList& models, QLineEdit* id, QDialog& dialog) {
  auto* list = new QListWidget;
  list->addItems(models);
  list->setMaximumHeight(kListHeight);
  QObject::connect(list, &QListWidget::currentTextChanged, id, &QLineEdit::setText);
  QObject::connect(list, &QListWidget::itemActivated, &dialog, &QDialog::accept);
  return list;
}
}  // namespace

std::optional<QString> askForHubModel(QWidget* parent) {
  QDialog dialog(parent);
  dialog.setWindowTitle(QStringLiteral("Open a model from the Hub"));
  dialog.setMinimumWidth(kDialogWidth);
  auto* layout = new QVBoxLayout(&dialog);
  auto* id = new QLineEdit;
  id->setPlaceholderText(QStringLiteral("Qwen/Qwen3-0.6B"));
  id->setAccessibleName(QStringLiteral("Model on the Hub"));
  auto* said = new QLabel(
      QStringLiteral("org/name, or org/name@revision. Cleave fetches the config now, and the weights before the "
                     "first run."));
  said->setWordWrap(true);
  layout->addWidget(id);
  layout->addWidget(said);
  if (const QStringList models = cachedModels(); !models.isEmpty()) {
    layout->addWidget(new QLabel(QStringLiteral("In the cache:")));
    layout->addWidget(listOf(models, id, dialog));
  }
  auto* buttons = new QDialogButtonBox(QDialogButtonBox::Open | QDialogButtonBox::Cancel);
  QPushButton* open = buttons->button(QDialogButtonBox::Open);
  open->setEnabled(false);
  const QString hint = said->text();
  QObject::connect(id, &QLineEdit::textChanged, &dialog, [=](const QString& text) {
    const auto parsed = hub::HubId::parse(toStd(text.trimmed()));
    open->setEnabled(parsed.has_value());
    said->setText(parsed || text.trimmed().isEmpty() ? hint : toQ(parsed.error().message));
  });
  QObject::connect(buttons, &QDialogButtonBox::accepted, &dialog, &QDialog::accept);
  QObject::connect(buttons, &QDialogButtonBox::rejected, &dialog, &QDialog::reject);
  layout->addWidget(buttons);
  id->setFocus();
  if (dialog.exec() != QDialog::Accepted) return std::nullopt;
  return id->text().trimmed();
}

std::optional<WeightsChoice> askForHubWeights(const QString& model, const Result<hub::WeightsAnnounced>& announced,
                                              QWidget* parent) {
  QMessageBox box(parent);
  box.setWindowTitle(QStringLiteral("Weights for the run"));
  box.setText(QStringLiteral("The weights of %1 are not in the cache yet.").arg(model));
  const QAbstractButton* fetch = nullptr;
  if (announced) {
    const QString bytes = bytesText(announced->missingBytes);
    box.setInformativeText(QStringLiteral("They are %1 in %2. Cleave keeps fetched files in the cache.")
                               .arg(bytesText(announced->totalBytes),
                                    countedText(static_cast<std::uint64_t>(announced->files), QStringLiteral("file"))));
    fetch = box.addButton(QStringLiteral("Fetch %1 and Run").arg(bytes), QMessageBox::AcceptRole);
  } else {
    box.setInformativeText(toQ(announced.error().message));
  }
  const QAbstractButton* random = box.addButton(QStringLiteral("Run with Random Weights"), QMessageBox::ActionRole);
  box.addButton(QMessageBox::Cancel);
  box.exec();
  if (box.clickedButton() == fetch && fetch) return WeightsChoice::Fetch;
  if (box.clickedButton() == random) return WeightsChoice::Random;
  return std::nullopt;
}

}  // namespace cleave::views
