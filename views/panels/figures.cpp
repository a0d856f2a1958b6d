#include "views/panels/figures.h"

#include <QObject>

#include "solve/cost/cost_model.h"
#include "views/base/text.h"

namespace cleave::views {

namespace {
template <class Amount, class Text>
QString changeText(Amount change, Text text) {
  if (change == 0) return QStringLiteral("±0");
  // The smallest integer has no opposite.
  const Amount magnitude = change > 0 ? change : change == Amount(INT64_MIN) ? Amount(INT64_MAX) : -change;
  return (change > 0 ? QStringLiteral("+") : QStringLiteral("−")) + text(magnitude);
}
}  // namespace

QString timeText(Femtoseconds time) { return toQ(solve::timeText(time)); }

QString timeChange(Femtoseconds change) { return changeText(change, &timeText); }

QString bytesChange(std::int64_t bytes) {
  return changeText(bytes, [](std::int64_t size) { return bytesText(size); });
}

QString countChange(std::int64_t count) {
  return changeText(count, [](std::int64_t size) { return countText(static_cast<std::uint64_t>(size)); });
}

QString costChange(Femtoseconds time, std::int64_t bytes) {
  if (time == 0 && bytes == 0) return QStringLiteral("same time and bytes");
  if (time == 0) return QStringLiteral("same time, %1").arg(bytesChange(bytes));
  if (bytes == 0) return QStringLiteral("%1, same bytes").arg(timeChange(time));
  return QStringLiteral("%1, %2").arg(timeChange(time), bytesChange(bytes));
}

}  // namespace cleave::views
