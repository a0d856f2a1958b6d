#include "views/window/export_dialog.h"

#include <QApplication>
#include <QClipboard>
#include <QDialogButtonBox>
#include <QFileDialog>
#include <QFileInfo>
#include <QFontDatabase>
#include <QGridLayout>
#include <QLabel>
#include <QListWidget>
#include <QPlainTextEdit>
#include <QPushButton>

#include "views/base/text.h"

namespace cleave::views {

namespace {
constexpr int kWidth = 860, kHeight = 560, kListWidth = 130, kUnsaidHeight = 120;
constexpr qsizetype kMostShown = 100'000;  ///< characters: an editor lays all of its text out at once
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

ExportDialog::ExportDialog(const Plans& plans, Files& files, QWidget* parent)
    : QDialog(parent),
      m_plans(plans),
      m_files(files),
      m_formats(new QListWidget),
      m_what(new QLabel),
      m_text(reader(tr("The plan in this format"))),
      m_unsaidTitle(new QLabel(tr("What it cannot say:"))),
      m_unsaid(reader(tr("What this format cannot say"))) {
  setWindowTitle(tr("Export the plan"));
  resize(kWidth, kHeight);
  for (const exchange::Format& each : exchange::formats()) {
    m_formats->addItem(toQ(each.name));
    m_formats->item(m_formats->count() - 1)->setToolTip(toQ(each.what));
  }
  m_formats->setAccessibleName(tr("Formats"));
  m_formats->setFixedWidth(kListWidth);
  m_what->setWordWrap(true);
  m_text->setFont(QFontDatabase::systemFont(QFontDatabase::FixedFont));
  m_text->setLineWrapMode(QPlainTextEdit::NoWrap);
  m_unsaid->setMaximumHeight(kUnsaidHeight);
  auto* buttons = new QDialogButtonBox(QDialogButtonBox::Save | QDialogButtonBox::Close);
  m_save = buttons->button(QDialogButtonBox::Save);
  m_save->setText(tr("&Save…"));
  m_copy = buttons->addButton(tr("&Copy"), QDialogButtonBox::ActionRole);
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
  connect(m_formats, &QListWidget::itemActivated, this, &ExportDialog::save);
  connect(m_formats, &QListWidget::currentRowChanged, this, &ExportDialog::refresh);
  connect(&plans, &Plans::planChanged, this, &ExportDialog::refresh);
  m_formats->setCurrentRow(0);
}

const exchange::Format& ExportDialog::format() const {
  return exchange::formats()[static_cast<std::size_t>(std::max(0, m_formats->currentRow()))];
}

void ExportDialog::refresh() {
  const auto plan = m_plans.plan();
  const exchange::Format* const chosen = &format();
  m_worker.cancelAll();
  m_save->setEnabled(plan != nullptr);
  m_what->setText(tr("%1: %2").arg(toQ(chosen->name), toQ(chosen->what)));
  if (!plan) return clear(tr("There is no plan yet: solve first."));
  if (chosen->isPicture) return clear(tr("A picture is drawn when it is saved."));
  clear(tr("…"));
  m_worker.post(kTag, {}, [this, plan, chosen](const Progress& progress) -> Worker::Completion {
    auto exported = chosen->write(*plan, {.progress = progress});
    return [=, this, exported = std::move(exported)] {
      if (plan == m_plans.plan() && chosen == &format()) showText(exported);
    };
  });
}

void ExportDialog::showText(const Result<exchange::Exported>& exported) {
  if (!exported) {
    clear(toQ(exported.error().message));
    return;
  }
  m_whole = toQ(exported->text);
  m_copy->setEnabled(true);
  QString shown = m_whole.left(kMostShown);
  if (shown.size() < m_whole.size())
    shown += tr("…\n(%1 more characters, which Save writes and Copy copies)").arg(m_whole.size() - shown.size());
  m_text->setPlainText(shown);
  QStringList unsaid;
  for (const std::string& sentence : exported->sentences) unsaid << toQ(sentence);
  m_unsaid->setPlainText(unsaid.join(QLatin1Char('\n')));
  m_unsaidTitle->setVisible(!unsaid.isEmpty());
  m_unsaid->setVisible(!unsaid.isEmpty());
}

void ExportDialog::clear(const QString& said) {
  m_whole.clear();
  m_copy->setEnabled(false);
  m_text->setPlainText(said);
  m_unsaidTitle->hide();
  m_unsaid->hide();
}

void ExportDialog::save() {
  const auto plan = m_plans.plan();
  if (!plan) return;
  const exchange::Format* chosen = &format();
  const QString path =
      QFileDialog::getSaveFileName(this, tr("Export the plan as %1").arg(toQ(chosen->name)), nameFor(m_title, *chosen),
                                   tr("%1 (*.%2);;All files (*)").arg(toQ(chosen->name), toQ(chosen->extension)));
  if (path.isEmpty()) return;
  // An ending that another format has alone says more than a row that was left as it was.
  if (const auto* named = exchange::formatNamed(toStd(QFileInfo(path).suffix()));
      named && named->extension != chosen->extension)
    chosen = named;
  m_files.exportPlan(path, plan, *chosen);
  close();  // what became of it is said in the window
}

}  // namespace cleave::views
