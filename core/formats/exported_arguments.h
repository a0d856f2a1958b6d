#pragma once
/// Arguments and tensor types in an exported program's JSON. Part of exported_program.h's reader.
#include "base/json.h"
#include "formats/exported_program.h"

#include <unordered_map>

namespace cleave::formats {

/// What a name refers to: a value, or in the graph of a higher operator the argument passed for it.
using ExportedMeaning = std::variant<std::monostate, ExportedId, std::int64_t, double, bool>;
using ExportedNames = std::unordered_map<std::string, ExportedMeaning>;

/// A JSON object with one key that gives the kind of its value: {"as_int": 3}.
struct ExportedUnion {
  std::string tag;
  const nlohmann::json* value = nullptr;
  std::string where;
};
/// Ignores keys with value null. BadInput unless one key remains.
Result<ExportedUnion> readUnion(const nlohmann::json& json, std::string where);

/// The name in {"name": ...} or, for numbers, {"as_name": ...}.
Result<std::string> readName(const nlohmann::json& json, const char* key, const std::string& where);

/// BadInput for an undefined name and for numbers out of range. Kinds that Cleave replays in no call become
/// ExportedOther.
Result<ExportedArgument> readArgument(const ExportedUnion& from, const ExportedNames& names);

/// Element types and shapes. It caches expressions, because there are few different ones.
class ExportedTypes {
 public:
  Result<ExportedTensor> readTensor(const nlohmann::json& json, const std::string& where);
  Result<ExportedSize> readSize(const nlohmann::json& json, const std::string& where);

 private:
  Result<std::shared_ptr<const SizeExpression>> expressionOf(const std::string& text, const std::string& where);
  std::unordered_map<std::string, std::shared_ptr<const SizeExpression>> m_expressions;
};

/// True if a schema.ScalarType is complex.
bool isComplexType(const nlohmann::json& scalarType);
/// "F32" for schema.ScalarType 7; BadInput for types that no graph supports.
Result<graph::DType> readScalarType(const nlohmann::json& json, const std::string& where);

}  // namespace cleave::formats
