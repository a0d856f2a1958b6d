#include "views/window/setting_field.h"

#include <QCheckBox>
#include <QComboBox>
#include <QDoubleSpinBox>
#include <QHBoxLayout>
#include <QLabel>
#include <QLineEdit>
#include <QSignalBlocker>
#include <QVBoxLayout>
#include <cmath>

#include "pipeline/solve/devices.h"
#include "views/base/quantities.h"
#include "views/base/text.h"

namespace cleave::views {

namespace {
using settings::ValueKind;
using Row = SettingField::Row;
using Texts = std::vector<std::string>;

/// The label without the mark of its key: the name for screen readers.
QString plainLabel(const Row& row) { return toQ(row.label).remove(QLatin1Char('&')); }

/// A switch, or a choice of on and off.
class CheckField : public SettingField {
 public:
  CheckField(const Row& row, Settings& settings, QWidget* parent)
      : SettingField(row, settings, parent), m_box(new QCheckBox(toQ(row.caption))) {
    fill(m_box);
    connect(m_box, &QCheckBox::clicked, this,
            [this](bool isOn) { set({std::string(isOn ? settings::kOn : settings::kOff)}); });
  }
  void refresh() override { m_box->setChecked(texts() == Texts{std::string(settings::kOn)}); }

 private:
  QCheckBox* m_box;
};

class ChoiceField : public SettingField {
 public:
  ChoiceField(const Row& row, Settings& settings, QWidget* parent)
      : SettingField(row, settings, parent), m_box(new QComboBox) {
    if (!row.caption.empty()) m_box->addItem(toQ(row.caption));
    for (std::size_t i = 0; i < row.form.words.size(); ++i)
      m_box->addItem(toQ(row.wordTexts.empty() ? row.form.words[i] : row.wordTexts[i]), toQ(row.form.words[i]));
    m_box->setAccessibleName(plainLabel(row));
    fill(m_box);
    connect(m_box, &QComboBox::activated, this, [this] {
      const QString word = m_box->currentData().toString();
      set(word.isEmpty() ? Texts() : Texts{toStd(word)});
    });
  }
  void refresh() override {
    const Texts now = texts();
    m_box->setCurrentIndex(now.empty() ? 0 : m_box->findData(toQ(now.front())));
  }

 private:
  QComboBox* m_box;
};

class NumberField : public SettingField {
 public:
  NumberField(const Row& row, Settings& settings, QWidget* parent)
      : SettingField(row, settings, parent), m_box(new QDoubleSpinBox) {
    m_box->setRange(row.form.least, row.form.most);
    m_box->setDecimals(kDecimals);
    if (!row.form.unit.empty()) m_box->setSuffix(QStringLiteral(" %1").arg(toQ(row.form.unit)));
    m_box->setAccessibleName(plainLabel(row));
    fill(m_box);
    connect(m_box, &QDoubleSpinBox::editingFinished, this, [this] {
      // A value that the box cannot show exactly is kept until another one is typed.
      if (std::abs(m_box->value() - now()) >= std::pow(10, -kDecimals) / 2) set({fmt::format("{}", m_box->value())});
    });
  }
  void refresh() override {
    const QSignalBlocker silent(m_box);
    m_box->setValue(now());
  }

 private:
  static constexpr int kDecimals = 3;
  double now() const {
    const Texts texts = this->texts();
    return texts.empty() ? 0 : toQ(texts.front()).toDouble();
  }
  QDoubleSpinBox* m_box;
};

/// A size with its unit, or none.
class BytesField : public SettingField {
 public:
  BytesField(const Row& row, Settings& settings, QWidget* parent)
      : SettingField(row, settings, parent), m_has(new QCheckBox(toQ(row.caption))) {
    m_box->setRange(0.001, kMostGiB);
    m_box->setDecimals(3);
    m_box->setAccessibleName(plainLabel(row));
    m_unit->setAccessibleName(QStringLiteral("%1: unit").arg(plainLabel(row)));
    m_unit->addItem(QStringLiteral("GiB"), QVariant::fromValue<qlonglong>(kGiB));
    m_unit->addItem(QStringLiteral("MiB"), QVariant::fromValue<qlonglong>(kMiB));
    auto* layout = new QHBoxLayout(this);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->addWidget(m_has);
    layout->addWidget(m_box, 1);
    layout->addWidget(m_unit);
    connect(m_has, &QCheckBox::clicked, this, &BytesField::read);
    connect(m_unit, &QComboBox::activated, this, &BytesField::read);
    connect(m_box, &QDoubleSpinBox::editingFinished, this, &BytesField::read);
  }
  void refresh() override {
    const QSignalBlocker box(m_box), unit(m_unit);
    const solve::CostSettings& cost = settings().spec().cost;
    enable(!texts().empty());
    const std::int64_t shown = cost.budgetBytes();
    if (bytes() == shown) return;
    m_unit->setCurrentIndex(shown < kGiB ? 1 : 0);
    m_box->setValue(static_cast<double>(shown) / unitBytes());
  }

 private:
  static constexpr std::int64_t kMiB = 1ll << 20, kGiB = 1ll << 30;
  static constexpr double kMostGiB = 1 << 20;
  double unitBytes() const { return static_cast<double>(m_unit->currentData().toLongLong()); }
  std::int64_t bytes() const { return static_cast<std::int64_t>(m_box->value() * unitBytes()); }
  void enable(bool isOn) {
    m_has->setChecked(isOn);
    m_box->setEnabled(isOn);
    m_unit->setEnabled(isOn);
  }
  void read() {
    const bool isOn = m_has->isChecked();
    enable(isOn);
    set(isOn ? Texts{std::to_string(bytes())} : Texts());
  }
  QCheckBox* m_has;
  QDoubleSpinBox* m_box = new QDoubleSpinBox;
  QComboBox* m_unit = new QComboBox;
};

QString rateText(double bytesPerSecond) {
  return QStringLiteral("%1/s").arg(bytesText(static_cast<std::int64_t>(bytesPerSecond)));
}

/// The bundled profiles, and the figures of the chosen one.
class DeviceField : public SettingField {
 public:
  DeviceField(const Row& row, Settings& settings, QWidget* parent)
      : SettingField(row, settings, parent), m_box(new QComboBox), m_facts(new QLabel) {
    if (const auto profiles = pipeline::deviceProfiles())
      for (const solve::DeviceProfile& profile : *profiles) m_box->addItem(toQ(profile.title), toQ(profile.name));
    m_box->setAccessibleName(plainLabel(row));
    auto* layout = new QVBoxLayout(this);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->addWidget(m_box);
    layout->addWidget(m_facts);
    connect(m_box, &QComboBox::activated, this, [this] { set({toStd(m_box->currentData().toString())}); });
  }
  void refresh() override {
    const solve::DeviceProfile& profile = settings().spec().cost.profile;
    if (m_box->findData(toQ(profile.name)) < 0) m_box->addItem(toQ(profile.title), toQ(profile.name));
    m_box->setCurrentIndex(m_box->findData(toQ(profile.name)));
    m_facts->setText(QStringLiteral("%1 memory at %2, links at %3, %4 TFLOP/s in bfloat16")
                         .arg(bytesText(profile.memoryBytes), rateText(profile.memoryBytesPerSecond),
                              rateText(profile.linkBytesPerSecond),
                              QString::number(profile.halfFlopsPerSecond / 1e12, 'f', 0)));
  }

 private:
  QComboBox* m_box;
  QLabel* m_facts;
};

/// Text, or a list with commas: "*softmax*, aten::mul.Tensor".
class TextField : public SettingField {
 public:
  TextField(const Row& row, Settings& settings, QWidget* parent)
      : SettingField(row, settings, parent), m_line(new QLineEdit) {
    m_line->setPlaceholderText(toQ(row.caption));
    m_line->setAccessibleName(plainLabel(row));
    fill(m_line);
    connect(m_line, &QLineEdit::editingFinished, this, [this] { set(typed()); });
  }
  void refresh() override {
    const Texts now = texts();
    if (typed() == now) return;
    QStringList parts;
    for (const std::string& text : now) parts << toQ(text);
    m_line->setText(parts.join(QStringLiteral(", ")));
  }

 private:
  Texts typed() const {
    if (!row().isList) return m_line->text().trimmed().isEmpty() ? Texts() : Texts{toStd(m_line->text().trimmed())};
    Texts texts;
    for (const QString& part : m_line->text().split(QLatin1Char(','), Qt::SkipEmptyParts))
      if (const QString trimmed = part.trimmed(); !trimmed.isEmpty()) texts.push_back(toStd(trimmed));
    return texts;
  }
  QLineEdit* m_line;
};

bool isOnOff(const Row& row) {
  return row.form.kind == ValueKind::Switch ||
         (row.form.kind == ValueKind::Choice && row.form.words.size() == 2 && row.form.words[0] == settings::kOn);
}
}  // namespace

SettingField::SettingField(const Row& row, Settings& settings, QWidget* parent)
    : QWidget(parent), m_row(row), m_settings(settings) {
  setToolTip(toQ(row.tip));
}

void SettingField::fill(QWidget* control) {
  auto* layout = new QHBoxLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->addWidget(control);
  setFocusProxy(control);  // the label's key leads to it
  m_control = control;
  setTip(toolTip());
}

void SettingField::setTip(const QString& tip) {
  setToolTip(tip);
  if (m_control) m_control->setToolTip(tip);
}

void SettingField::set(const std::vector<std::string>& wanted) {
  if (wanted == texts()) return emit refused({});
  const auto done = m_settings.set(m_row, wanted);
  emit refused(done ? QString() : toQ(done.error().message));
  if (done) emit changedByUser();
}

SettingField* makeSettingField(const Row& row, Settings& settings, QWidget* parent) {
  if (isOnOff(row)) return new CheckField(row, settings, parent);
  switch (row.form.kind) {
    case ValueKind::Choice: return new ChoiceField(row, settings, parent);
    case ValueKind::Number: return new NumberField(row, settings, parent);
    case ValueKind::Bytes: return new BytesField(row, settings, parent);
    case ValueKind::Device: return new DeviceField(row, settings, parent);
    case ValueKind::Switch:
    case ValueKind::Text: break;
  }
  return new TextField(row, settings, parent);
}

}  // namespace cleave::views
