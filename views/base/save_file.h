#pragma once
/// Writes a file for the user. Only regular files are accepted: a pipe or a device may block the writer or lose the
/// data. The command line accepts both.
#include "base/progress.h"

#include <QByteArray>
#include <QString>

namespace cleave::views {

/// BadUsage with one sentence if the name belongs to something other than a regular file.
Result<void> checkIsFile(const QString& file);
/// Writes the whole content after that check.
Result<void> saveFile(const QString& file, const QByteArray& content, const Progress& progress = {});

}  // namespace cleave::views
