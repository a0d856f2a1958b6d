#pragma once
/// The toolbar's icons. They are painted: sharp at any size, in the palette's colours, with a disabled form.
#include <QIcon>
#include <QPalette>

namespace cleave::views {

enum class Glyph { Open, Solve, First, Previous, Next, Last, Conflict, Run, Stop, Into, Out, App };
QIcon glyphIcon(Glyph glyph, const QPalette& palette);

}  // namespace cleave::views
