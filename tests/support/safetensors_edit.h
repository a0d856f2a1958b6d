#pragma once
/// Modified copies of safetensors files.
#include <QFile>
#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>
#include <QtEndian>

#include <functional>

namespace cleave::test {

inline QByteArray readBytes(const QString& file) {
  QFile in(file);
  if (!in.open(QIODevice::ReadOnly)) qFatal("cannot read %s", qPrintable(file));
  return in.readAll();
}

inline void writeBytes(const QString& file, const QByteArray& bytes) {
  QFile out(file);
  if (!out.open(QIODevice::WriteOnly) || out.write(bytes) != bytes.size()) qFatal("cannot write %s", qPrintable(file));
}

/// Changes the header of a safetensors file, or its bytes.
using Alteration = std::function<void(QJsonObject& header, QByteArray& data)>;

inline void writeAltered(const QString& source, const QString& target, const Alteration& alter) {
  const QByteArray bytes = readBytes(source);
  const auto length = qFromLittleEndian<quint64>(bytes.constData());
  QJsonObject header = QJsonDocument::fromJson(bytes.mid(8, static_cast<qsizetype>(length))).object();
  QByteArray data = bytes.mid(8 + static_cast<qsizetype>(length));
  alter(header, data);
  const QByteArray text = QJsonDocument(header).toJson(QJsonDocument::Compact);
  QByteArray size(8, 0);
  qToLittleEndian<quint64>(static_cast<quint64>(text.size()), size.data());
  writeBytes(target, size + text + data);
}

/// Overwrites an element of a float32 tensor with `number`.
inline Alteration withNumber(const char* tensor, qsizetype index, float number) {
  return [=](QJsonObject& header, QByteArray& data) {
    const auto start = header[QLatin1String(tensor)].toObject()["data_offsets"].toArray()[0].toInteger();
    qToLittleEndian<float>(number, data.data() + start + index * 4);
  };
}

inline Alteration renamed(const char* from, const char* to) {
  return [=](QJsonObject& header, QByteArray&) { header[QLatin1String(to)] = header.take(QLatin1String(from)); };
}

}  // namespace cleave::test
