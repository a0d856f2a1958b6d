#pragma once
/// What the window writes for the user: regular files. A pipe or a device may keep a writer waiting, or swallow what
/// was meant to be kept; who wants that has the command line.
#include "base/progress.h"

#include <QByteArray>
#include <QString>

namespace cleave::views {

/// BadUsage where something else than a regular file has the name, in one sentence.
Result<void> checkIsFile(const QString& file);
/// The whole content, with that check.
Result<void> saveFile(const QString& file, const QByteArray& content, const Progress& progress = {});

}  // namespace cleave::views
