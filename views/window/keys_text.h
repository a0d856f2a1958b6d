#pragma once
/// The text of Help, Keys.
#include <QString>

class QMenuBar;

namespace cleave::views {

/// All shortcuts of the menus, in two columns.
QString keysText(const QMenuBar& bar);

}  // namespace cleave::views
