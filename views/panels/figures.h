#pragma once
/// How predicted times and sizes, and their changes, are written in panels.
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
/// "+0.80 ms, +1.10 GiB": what another plan costs more than this one; "the same time and bytes" when nothing changes.
QString costChange(Femtoseconds time, std::int64_t bytes);

}  // namespace cleave::views
