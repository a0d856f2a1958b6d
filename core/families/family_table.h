#pragma once
/// All families, and how to find one.
#include "families/family.h"

namespace cleave::families {

/// In the order in which they were added.
std::span<const Family* const> families();
/// Null if no row has it.
const Family* findFamily(std::string_view modelType);

struct KnownClass {
  const Family* family = nullptr;
  const HeadClass* head = nullptr;
};
/// Looks up a name in `architectures`. Null pointers if no row has it.
KnownClass findClass(std::string_view className);

}  // namespace cleave::families
