#pragma once
/// What Help, Keys shows.
#include <QString>

class QMenuBar;

namespace cleave::views {

/// All shortcuts as the menus have them, in two columns.
QString keysText(const QMenuBar& bar);

}  // namespace cleave::views
