#include "views/window/export_dialog.h"

#include <QApplication>
#include <QClipboard>
#include <QDialogButtonBox>
#include <QFileDialog>
#include <QFontDatabase>
#include <QGridLayout>
#include <QLabel>
#include <QListWidget>
#include <QPlainTextEdit>
#include <QPushButton>

#include <fmt/ranges.h>

#include "views/base/text.h"

namespace cleave::views {

namespace {
constexpr int kWidth = 860, kHeight = 560, kListWidth = 130, kUnsaidHeight = 120;
constexpr qsizetype kMostShown = 100'000;  ///< characters: an editor lays out all of its text at once
const QString kTag = QStringLiteral("preview");

QPlainTextEdit* reader(const QString& accessibleName) {
  auto* text = new QPlainTextEdit;
  text->setReadOnly(true);
  text->setAccessibleName(accessibleName);
  return text;
}

QString nameFor(const QString& title, const exchange::Format& format) {
  const QString name = toQ(format.name), extension = toQ(format.extension);
  const QString kind = name == QLatin1String("json") ? QStringLiteral("plan") : name;
  return kind == extension ? QStringLiteral("%1.%2").arg(title, extension)
                           : QStringLiteral("%1.%2.%3").arg(title, kind, extension);
}
}  // namespace

ExportDialog::ExportDialog(const Plans& plans, Files& files, std::function<QString()> title, QWidget* parent)
    : QDialog(parent),
      m_plans(plans),
      m_files(files),
      m_title(std::move(title)),
      m_formats(new QListWidget),
      m_what(new QLabel),
      m_text(reader(QStringLiteral("The plan in this format"))),
      m_unsaidTitle(new QLabel(QStringLiteral("Not included in this format:"))),
      m_unsaid(reader(QStringLiteral("Not included in this format"))) {
  setWindowTitle(QStringLiteral("Export the plan"));
  resize(parent ? QSize(kWidth, kHeight).boundedTo(parent->size()) : QSize(kWidth, kHeight));
  for (const exchange::Format& each : exchange::formats()) {
    m_formats->addItem(toQ(each.name));
    m_formats->item(m_formats->count() - 1)->setToolTip(toQ(each.what));
  }
  m_formats->setAccessibleName(QStringLiteral("Formats"));
  m_formats->setFixedWidth(kListWidth);
  m_what->setWordWrap(true);
  m_text->setFont(QFontDatabase::systemFont(QFontDatabase::FixedFont));
  m_unsaid->setMaximumHeight(kUnsaidHeight);
  auto* buttons = new QDialogButtonBox(QDialogButtonBox::Save | QDialogButtonBox::Close);
  m_save = buttons->button(QDialogButtonBox::Save);
  m_save->setText(QStringLiteral("&Save…"));
  m_copy = buttons->addButton(QStringLiteral("&Copy"), QDialogButtonBox::ActionRole);
  m_copy->setObjectName(QStringLiteral("copy"));
  auto* layout = new QGridLayout(this);
  layout->addWidget(m_formats, 0, 0, 4, 1);
  layout->addWidget(m_what, 0, 1);
  layout->addWidget(m_text, 1, 1);
  layout->addWidget(m_unsaidTitle, 2, 1);
  layout->addWidget(m_unsaid, 3, 1);
  layout->addWidget(buttons, 4, 0, 1, 2);
  layout->setRowStretch(1, 1);

  connect(buttons, &QDialogButtonBox::rejected, this, &QDialog::close);
  connect(m_save, &QPushButton::clicked, this, &ExportDialog::save);
  connect(m_copy, &QPushButton::clicked, this, [this] { QApplication::clipboard()->setText(m_whole); });
  connect(m_formats, &QListWidget::itemDoubleClicked, this, &ExportDialog::save);  // Enter activates the default button
  connect(m_formats, &QListWidget::currentRowChanged, this, &ExportDialog::refresh);
  connect(&plans, &Plans::planChanged, this, &ExportDialog::refresh);
  m_formats->setCurrentRow(0);
}

const exchange::Format& ExportDialog::format() const {
  return exchange::formats()[static_cast<std::size_t>(std::max(0, m_formats->currentRow()))];
}

void ExportDialog::showEvent(QShowEvent* event) {
  QDialog::showEvent(event);
  refresh();
}

void ExportDialog::refresh() {
  if (!isVisible()) return;  // hidden: the text of a large plan takes time
  const auto plan = m_plans.plan();
  const exchange::Format* const chosen = &format();
  m_worker.cancelAll();
  m_save->setEnabled(plan != nullptr);
  m_what->setText(QStringLiteral("%1: %2").arg(toQ(chosen->name), toQ(chosen->what)));
  if (!plan) return clear(QStringLiteral("There is no plan yet. Solve first."));
  if (chosen->isPicture)
    return clear(
        QStringLiteral("Cleave draws the picture when you save it. A large graph takes minutes; Esc stops it."));
  clear(QStringLiteral("…"));
  m_worker.post(kTag, {}, [this, plan, chosen](const Progress& progress) -> Worker::Completion {
    const auto exported = chosen->write(*plan, {.progress = progress});
    Preview preview;
    if (exported) {
      preview.whole = toQ(exported->text);
      preview.unsaid = toQ(fmt::format("{}", fmt::join(exported->sentences, "\n")));
    }
    const QString failure = exported ? QString() : toQ(exported.error().message);
    return [=, this] {
      if (plan != m_plans.plan() || chosen != &format()) return;
      if (exported) return showPreview(preview);
      clear(failure);
      m_save->setEnabled(false);
    };
  });
}

void ExportDialog::showPreview(const Preview& preview) {
  m_whole = preview.whole;
  m_copy->setEnabled(true);
  QString shown = m_whole.left(kMostShown);
  if (shown.size() < m_whole.size())
    shown += QStringLiteral("…\n(%1 more characters; Save and Copy include them)").arg(m_whole.size() - shown.size());
  m_text->setLineWrapMode(QPlainTextEdit::NoWrap);
  m_text->setPlainText(shown);
  m_unsaid->setPlainText(preview.unsaid);
  m_unsaidTitle->setVisible(!preview.unsaid.isEmpty());
  m_unsaid->setVisible(!preview.unsaid.isEmpty());
}

void ExportDialog::clear(const QString& said) {
  m_whole.clear();
  m_copy->setEnabled(false);
  m_text->setLineWrapMode(QPlainTextEdit::WidgetWidth);
  m_text->setPlainText(said);
  m_unsaidTitle->hide();
  m_unsaid->hide();
}

void ExportDialog::save() {
  if (!m_save->isEnabled()) return;
  const exchange::Format* const chosen = &format();
  const QString path = QFileDialog::getSaveFileName(
      this, QStringLiteral("Export the plan as %1").arg(toQ(chosen->name)), nameFor(m_title(), *chosen),
      QStringLiteral("%1 (*.%2);;All files (*)").arg(toQ(chosen->name), toQ(chosen->extension)));
  // The plan shown now. It may have changed while the file dialog was open.
  if (path.isEmpty() || !m_plans.plan()) return;
  m_files.exportPlan(path, m_plans.plan(), *chosen);
  close();  // the window reports the result
}

}  // namespace cleave::views
