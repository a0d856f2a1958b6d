#pragma once
/// Arguments and tensor types as an exported program's JSON writes them. Part of exported_program.h's reader.
#include "base/json.h"
#include "formats/exported_program.h"

#include <unordered_map>

namespace cleave::formats {

/// What a name stands for: a value, or in the graph of a higher operator what it was handed instead.
using ExportedMeaning = std::variant<std::monostate, ExportedId, std::int64_t, double, bool>;
using ExportedNames = std::unordered_map<std::string, ExportedMeaning>;

/// A JSON object with one key that says what its value is: {"as_int": 3}.
struct ExportedUnion {
  std::string tag;
  const nlohmann::json* value = nullptr;
  std::string where;
};
/// Keys whose value is null do not count. BadInput unless one is left.
Result<ExportedUnion> readUnion(const nlohmann::json& json, std::string where);

/// The name in {"name": ...} or, for numbers, {"as_name": ...}.
Result<std::string> readName(const nlohmann::json& json, const char* key, const std::string& where);

/// BadInput for a name that stands for nothing yet and for numbers out of range. What Cleave replays no call with is an
/// ExportedOther.
Result<ExportedArgument> readArgument(const ExportedUnion& from, const ExportedNames& names);

/// Element types and shapes; remembers expressions, of which there are few.
class ExportedTypes {
 public:
  Result<ExportedTensor> readTensor(const nlohmann::json& json, const std::string& where);
  Result<ExportedSize> readSize(const nlohmann::json& json, const std::string& where);

 private:
  Result<std::shared_ptr<const SizeExpression>> expressionOf(const std::string& text, const std::string& where);
  std::unordered_map<std::string, std::shared_ptr<const SizeExpression>> m_expressions;
};

/// Whether a schema.ScalarType is one of complex numbers.
bool isComplexType(const nlohmann::json& scalarType);
/// "F32" for schema.ScalarType 7; BadInput for what no graph can hold.
Result<graph::DType> readScalarType(const nlohmann::json& json, const std::string& where);

}  // namespace cleave::formats
