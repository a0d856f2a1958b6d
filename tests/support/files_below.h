#pragma once
/// Contents of files and folders, and the Python interpreter for comparisons.
#include <QDir>
#include <QDirIterator>
#include <QFile>
#include <QStringList>

namespace cleave::test {

/// Empty if the file cannot be read.
inline QByteArray contentOf(const QString& path) {
  QFile file(path);
  return file.open(QFile::ReadOnly) ? file.readAll() : QByteArray();
}

/// All files and links below a folder, including hidden ones.
inline QStringList filesBelow(const QString& folder) {
  QStringList files;
  for (QDirIterator at(folder, QDir::Files | QDir::Hidden | QDir::System, QDirIterator::Subdirectories); at.hasNext();)
    files << at.next();
  return files;
}

/// The interpreter of the environment that packaging/setup creates; empty if it does not exist.
inline QString python() {
  const QDir cache(qEnvironmentVariable("XDG_CACHE_HOME", QDir::homePath() + "/.cache") + "/cleave");
  const QStringList found = cache.entryList({"venv-torch-*"}, QDir::Dirs);
  return found.isEmpty() ? QString() : cache.filePath(found.first() + "/bin/python");
}

}  // namespace cleave::test
