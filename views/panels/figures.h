#pragma once
/// Predicted times and sizes, and their changes, as text for panels.
#include <QString>

#include "base/femtoseconds.h"
#include "views/base/quantities.h"

namespace cleave::views {

/// As solve::timeText writes it: "1.25 ms".
QString timeText(Femtoseconds time);
/// "+0.80 ms", "−1.10 GiB", "±0": with a true minus sign, so that columns of changes align.
QString timeChange(Femtoseconds change);
QString bytesChange(std::int64_t bytes);
QString countChange(std::int64_t count);
/// "+0.80 ms, +1.10 GiB": the extra cost of another plan. "same time and bytes" if they are equal.
QString costChange(Femtoseconds time, std::int64_t bytes);

}  // namespace cleave::views
