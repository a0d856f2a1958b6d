#pragma once
/// The sentence of an error, for comparisons.
#include "base/result.h"

#include <QString>

namespace cleave::test {

template <class T>
QString errorOf(const Result<T>& result) {
  return result ? QString("no error") : QString::fromStdString(result.error().message);
}

}  // namespace cleave::test
