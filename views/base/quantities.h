#pragma once
/// How shapes, sizes and counts are written everywhere in the window.
#include <QString>

#include "graph/types.h"

namespace cleave::views {

/// "8×512×4096"; "scalar" for no dimensions.
QString shapeText(const graph::Shape& shape);
/// As base/quantities.h writes them: "11.2 GiB", "912 MiB", "4 KiB".
QString bytesText(std::int64_t bytes);
/// "18,204": digits in groups of three whatever the locale, as in scripts and logs.
QString countText(std::uint64_t count);
/// "1 conflict", "2,304 conflicts". Only this function chooses between singular and plural. `many`: the plural, if it
/// is not one plus "s".
QString countedText(std::uint64_t count, const QString& one, const QString& many = {});
/// "0.4 %". At least one significant digit, so that a small share does not read as zero.
QString percentText(double share);

}  // namespace cleave::views
