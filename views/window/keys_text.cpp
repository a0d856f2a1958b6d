#include "views/window/keys_text.h"

#include <QMenu>
#include <QMenuBar>
#include <QStringList>

namespace cleave::views {

namespace {
QString keyRow(const QString& key, const QString& text) {
  return QStringLiteral("<tr><td><b>%1</b>&nbsp;&nbsp;</td><td>%2&nbsp;&nbsp;&nbsp;</td></tr>")
      .arg(key.toHtmlEscaped(), QString(text).remove(QLatin1Char('&')).toHtmlEscaped());
}

/// The shortcuts of a menu and its submenus, one row each.
QString keyRows(const QMenu& menu) {
  QString rows;
  for (const QAction* action : menu.actions()) {
    if (action->menu()) rows += keyRows(*action->menu());
    if (!action->shortcut().isEmpty())
      rows += keyRow(action->shortcut().toString(QKeySequence::NativeText), action->text());
  }
  return rows;
}
}  // namespace

QString keysText(const QMenuBar& bar) {
  QStringList sections;
  for (const QAction* action : bar.actions()) {
    const QString rows = action->menu() ? keyRows(*action->menu()) : QString();
    if (!rows.isEmpty())
      sections << QStringLiteral("<tr><td colspan=2><br><u>%1</u></td></tr>%2")
                      .arg(QString(action->text()).remove(QLatin1Char('&')).toHtmlEscaped(), rows);
  }
  sections << keyRow(QStringLiteral("Esc"), QStringLiteral("Stop the running job"));
  qsizetype all = 0, left = 0;
  for (const QString& section : sections) all += section.count(QLatin1String("<tr>"));
  QString columns[2];
  for (const QString& section : sections) {
    columns[left * 2 < all ? 0 : 1] += section;
    left += section.count(QLatin1String("<tr>"));
  }
  return QStringLiteral(
             "<table><tr><td valign=top><table>%1</table></td><td valign=top><table>%2</table></td></tr></table>")
      .arg(columns[0], columns[1]);
}

}  // namespace cleave::views
