#pragma once
/// What lies in files and folders, and the Python that is compared with.
#include <QDir>
#include <QDirIterator>
#include <QFile>
#include <QStringList>

namespace cleave::test {

/// Empty where it cannot be read.
inline QByteArray contentOf(const QString& path) {
  QFile file(path);
  return file.open(QFile::ReadOnly) ? file.readAll() : QByteArray();
}

/// All files and links below a folder, hidden ones too.
inline QStringList filesBelow(const QString& folder) {
  QStringList files;
  for (QDirIterator at(folder, QDir::Files | QDir::Hidden | QDir::System, QDirIterator::Subdirectories); at.hasNext();)
    files << at.next();
  return files;
}

/// The interpreter of the environment that packaging/setup makes; empty: there is none.
inline QString python() {
  const QDir cache(qEnvironmentVariable("XDG_CACHE_HOME", QDir::homePath() + "/.cache") + "/cleave");
  const QStringList found = cache.entryList({"venv-torch-*"}, QDir::Dirs);
  return found.isEmpty() ? QString() : cache.filePath(found.first() + "/bin/python");
}

}  // namespace cleave::test
