#pragma once
/// Fonts that differ from the one of the window.
#include <QFont>

namespace cleave::views {

QFont smallFont(QFont font);   ///< of labels, legends and chips
QFont strongFont(QFont font);  ///< of titles

}  // namespace cleave::views
