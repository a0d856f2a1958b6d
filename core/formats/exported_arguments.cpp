#include "formats/exported_arguments.h"

#include "base/checked.h"
#include "graph/type_text.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>

namespace cleave::formats {
namespace {

using graph::DType;
using nlohmann::json;

/// schema.ScalarType; Cleave's graphs support no other types (complex, uint16, ...).
constexpr std::array<std::pair<std::int64_t, DType>, 12> kScalarTypes{{{1, DType::UInt8},
                                                                       {2, DType::Int8},
                                                                       {3, DType::Int16},
                                                                       {4, DType::Int32},
                                                                       {5, DType::Int64},
                                                                       {6, DType::Float16},
                                                                       {7, DType::Float32},
                                                                       {8, DType::Float64},
                                                                       {12, DType::Bool},
                                                                       {13, DType::BFloat16},
                                                                       {29, DType::Float8E4M3},
                                                                       {30, DType::Float8E5M2}}};

constexpr std::int64_t kComplexHalf = 9, kComplexDouble = 11;

tl::unexpected<Error> wrong(const std::string& where, std::string_view expected, const json& value) {
  return fail(ErrorCode::BadInput, "{} must be {}, but it is {}.", where, expected, describe(value));
}

Result<std::int64_t> integerOf(const json& value, const std::string& where) {
  if (value.is_number_integer() && !(value.is_number_unsigned() && value.get<std::uint64_t>() > INT64_MAX))
    return value.get<std::int64_t>();
  return wrong(where, "a whole number of 64 bits", value);
}

/// JSON has no infinities, so PyTorch writes them as texts.
Result<double> realOf(const json& value, const std::string& where) {
  if (value.is_number()) return value.get<double>();
  if (value == "Infinity") return std::numeric_limits<double>::infinity();
  if (value == "-Infinity") return -std::numeric_limits<double>::infinity();
  if (value == "NaN") return std::numeric_limits<double>::quiet_NaN();
  return wrong(where, "a number", value);
}

Result<bool> flagOf(const json& value, const std::string& where) {
  if (value.is_boolean()) return value.get<bool>();
  return wrong(where, "true or false", value);
}

template <class T, class Read>
Result<std::vector<T>> listOf(const json& value, const std::string& where, Read&& read) {
  if (!value.is_array()) return wrong(where, "a list", value);
  std::vector<T> items;
  items.reserve(value.size());
  for (std::size_t i = 0; i < value.size(); ++i) {
    CLEAVE_TRY(T item, read(value[i], fmt::format("{}[{}]", where, i)));
    items.push_back(std::move(item));
  }
  return items;
}

Result<ExportedMeaning> meaningOf(const json& value, const char* key, const ExportedNames& names,
                                  const std::string& where) {
  CLEAVE_TRY(const std::string name, readName(value, key, where));
  const auto found = names.find(name);
  if (found != names.end()) return found->second;
  return fail(ErrorCode::BadInput, "{} reads {}, which is not defined before it.", where, quotedText(name));
}

ExportedArgument argumentOf(const ExportedMeaning& meaning) {
  return std::visit([](const auto& value) { return ExportedArgument(value); }, meaning);
}

Result<ExportedId> tensorOf(const json& value, const ExportedNames& names, const std::string& where) {
  CLEAVE_TRY(const ExportedMeaning meaning, meaningOf(value, "name", names, where));
  if (std::holds_alternative<std::monostate>(meaning)) return ExportedId();
  if (const auto* id = std::get_if<ExportedId>(&meaning)) return *id;
  return fail(ErrorCode::BadInput, "{} must be a tensor, but it is a number.", where);
}

/// {"as_tensor": {"name": ...}} or {"as_none": true}
Result<ExportedId> optionalTensorOf(const json& value, const ExportedNames& names, const std::string& where) {
  CLEAVE_TRY(const ExportedUnion one, readUnion(value, where));
  if (one.tag == "as_none") return ExportedId();
  if (one.tag == "as_tensor") return tensorOf(*one.value, names, one.where);
  return wrong(where, "a tensor or none", value);
}

/// {"as_name": ...}, {"as_int": 3}, {"as_float": 0.5} or {"as_bool": true}
Result<ExportedMeaning> symbolicOf(const json& value, const ExportedNames& names, const std::string& where) {
  CLEAVE_TRY(const ExportedUnion one, readUnion(value, where));
  if (one.tag == "as_name") return meaningOf(value, "as_name", names, where);
  const auto widened = [](auto number) { return ExportedMeaning(number); };
  if (one.tag == "as_int") return integerOf(*one.value, one.where).map(widened);
  if (one.tag == "as_float") return realOf(*one.value, one.where).map(widened);
  if (one.tag == "as_bool") return flagOf(*one.value, one.where).map(widened);
  return wrong(where, "a number or the name of one", value);
}

Result<ExportedNumber> symbolicNumberOf(const json& value, const ExportedNames& names, const std::string& where) {
  CLEAVE_TRY(const ExportedMeaning meaning, symbolicOf(value, names, where));
  if (const auto* id = std::get_if<ExportedId>(&meaning)) return ExportedNumber(*id);
  if (const auto* integer = std::get_if<std::int64_t>(&meaning)) return ExportedNumber(*integer);
  if (const auto* real = std::get_if<double>(&meaning)) return ExportedNumber(*real);
  if (const auto* flag = std::get_if<bool>(&meaning)) return ExportedNumber(*flag);
  return wrong(where, "a number", value);
}

/// schema.MemoryFormat → c10::MemoryFormat
Result<ExportedArgument> memoryFormatOf(const json& value, const std::string& where) {
  constexpr std::array<std::int64_t, 5> kFormats{-1, 0, 2, 3, 1};
  CLEAVE_TRY(const std::int64_t number, integerOf(value, where));
  if (number < 1 || number >= std::ssize(kFormats)) return wrong(where, "a memory format from 1 to 4", value);
  return ExportedLayout{kFormats[static_cast<std::size_t>(number)]};
}

/// schema.Layout → c10::Layout; only strided tensors are supported.
Result<ExportedArgument> layoutOf(const json& value, const std::string& where) {
  constexpr std::int64_t kStrided = 7;
  CLEAVE_TRY(const std::int64_t number, integerOf(value, where));
  if (number == kStrided) return ExportedLayout{0};
  return ExportedOther{fmt::format("the tensor layout {}", number)};
}

Result<ExportedArgument> numbersOrText(const ExportedUnion& from) {
  const json& value = *from.value;
  const auto widened = [](auto argument) { return ExportedArgument(std::move(argument)); };
  const std::string& tag = from.tag;
  if (tag == "as_none") return ExportedArgument();
  if (tag == "as_int") return integerOf(value, from.where).map(widened);
  if (tag == "as_float") return realOf(value, from.where).map(widened);
  if (tag == "as_bool") return flagOf(value, from.where).map(widened);
  if (tag == "as_ints") return listOf<std::int64_t>(value, from.where, integerOf).map(widened);
  if (tag == "as_floats") return listOf<double>(value, from.where, realOf).map(widened);
  if (tag == "as_bools") return listOf<bool>(value, from.where, flagOf).map(widened);
  if (tag == "as_memory_format") return memoryFormatOf(value, from.where);
  if (tag == "as_layout") return layoutOf(value, from.where);
  if (tag == "as_device") return ExportedArgument(ExportedDevice());
  if (tag == "as_scalar_type") {
    const auto dtype = readScalarType(value, from.where);
    return dtype ? ExportedArgument(*dtype)
                 : ExportedArgument(ExportedOther{"an element type that graphs do not support"});
  }
  if (tag == "as_string") {
    if (!value.is_string()) return wrong(from.where, "a text", value);
    return ExportedArgument(value.get<std::string>());
  }
  return ExportedArgument(ExportedOther{fmt::format("an argument of the kind {}", quotedText(tag))});
}

}  // namespace

Result<ExportedUnion> readUnion(const json& value, std::string where) {
  if (!value.is_object()) return wrong(where, "an object with one key", value);
  ExportedUnion found;
  for (const auto& [tag, content] : value.items()) {
    if (content.is_null()) continue;
    if (found.value)
      return fail(ErrorCode::BadInput, "{} has the keys {} and {}, but only one is allowed.", where,
                  quotedText(found.tag), quotedText(tag));
    found.tag = tag;
    found.value = &content;
  }
  if (!found.value) return wrong(where, "an object with one key", value);
  found.where = fmt::format("{}.{}", where, found.tag);
  return found;
}

Result<std::string> readName(const json& value, const char* key, const std::string& where) {
  if (value.is_object()) {
    const auto name = value.find(key);
    if (name != value.end() && name->is_string() && !name->get_ref<const std::string&>().empty())
      return name->get<std::string>();
  }
  return fail(ErrorCode::BadInput, "{} must hold a name under {}, but it is {}.", where, key, describe(value));
}

Result<ExportedArgument> readArgument(const ExportedUnion& from, const ExportedNames& names) {
  const json& value = *from.value;
  const auto widened = [](auto argument) { return ExportedArgument(std::move(argument)); };
  const auto tensor = [&](const json& one, const std::string& where) { return tensorOf(one, names, where); };
  const auto optionalTensor = [&](const json& one, const std::string& where) {
    return optionalTensorOf(one, names, where);
  };
  const auto number = [&](const json& one, const std::string& where) { return symbolicNumberOf(one, names, where); };
  const std::string& tag = from.tag;
  if (tag == "as_tensor") {
    CLEAVE_TRY(const ExportedMeaning meaning, meaningOf(value, "name", names, from.where));
    return argumentOf(meaning);
  }
  if (tag == "as_optional_tensor") return optionalTensor(value, from.where).map(widened);
  if (tag == "as_sym_int" || tag == "as_sym_float" || tag == "as_sym_bool")
    return symbolicOf(value, names, from.where).map(argumentOf);
  if (tag == "as_tensors") return listOf<ExportedId>(value, from.where, tensor).map(widened);
  if (tag == "as_optional_tensors") return listOf<ExportedId>(value, from.where, optionalTensor).map(widened);
  if (tag == "as_sym_ints" || tag == "as_sym_floats" || tag == "as_sym_bools")
    return listOf<ExportedNumber>(value, from.where, number).map(widened);
  return numbersOrText(from);
}

bool isComplexType(const json& scalarType) {
  return scalarType.is_number_integer() && scalarType >= kComplexHalf && scalarType <= kComplexDouble;
}

Result<DType> readScalarType(const json& value, const std::string& where) {
  CLEAVE_TRY(const std::int64_t number, integerOf(value, where));
  const auto* row =
      std::find_if(kScalarTypes.begin(), kScalarTypes.end(), [&](const auto& entry) { return entry.first == number; });
  if (row != kScalarTypes.end()) return row->second;
  if (isComplexType(value)) return fail(ErrorCode::BadInput, "{} is {}: {}.", where, number, kNoComplexNumbers);
  return fail(ErrorCode::BadInput, "{} is {}, an element type that Cleave's graphs do not support.", where, number);
}

Result<std::shared_ptr<const SizeExpression>> ExportedTypes::expressionOf(const std::string& text,
                                                                          const std::string& where) {
  const auto [entry, isNew] = m_expressions.try_emplace(text);
  if (isNew) {
    auto parsed = SizeExpression::parse(text, where);
    if (!parsed) {
      m_expressions.erase(entry);
      return tl::unexpected(std::move(parsed).error());
    }
    entry->second = std::make_shared<const SizeExpression>(*std::move(parsed));
  }
  return entry->second;
}

Result<ExportedSize> ExportedTypes::readSize(const json& value, const std::string& where) {
  CLEAVE_TRY(const ExportedUnion one, readUnion(value, where));
  if (one.tag == "as_int")
    return integerOf(*one.value, one.where).map([](std::int64_t size) { return ExportedSize{size, nullptr}; });
  if (one.tag != "as_expr") return wrong(where, "a number or an expression", value);
  CLEAVE_TRY(const std::string text, readName(*one.value, "expr_str", one.where));
  ExportedSize size;
  CLEAVE_TRY(size.expression, expressionOf(text, one.where));
  if (const auto hint = one.value->find("hint"); hint != one.value->end() && !hint->is_null()) {
    CLEAVE_TRY(const ExportedUnion known, readUnion(*hint, one.where + ".hint"));
    if (known.tag == "as_int") {
      CLEAVE_TRY(size.example, integerOf(*known.value, known.where));
    }
  }
  return size;
}

Result<ExportedTensor> ExportedTypes::readTensor(const json& value, const std::string& where) {
  CLEAVE_TRY(const JsonObject fields, JsonObject::at(value, where));
  ExportedTensor tensor;
  const json* dtype = fields.find("dtype");
  if (!dtype) return fields.wrong("dtype", "an element type");
  CLEAVE_TRY(tensor.dtype, readScalarType(*dtype, fields.nameOf("dtype")));
  const json* sizes = fields.find("sizes");
  if (!sizes || !sizes->is_array() || sizes->size() > graph::kMaxDimensions)
    return fields.wrong("sizes", fmt::format("a list of at most {} sizes", graph::kMaxDimensions));
  std::optional<std::int64_t> elements = 1;
  for (std::size_t i = 0; i < sizes->size(); ++i) {
    CLEAVE_TRY(ExportedSize size, readSize((*sizes)[i], fmt::format("{}[{}]", fields.nameOf("sizes"), i)));
    const std::int64_t known = size.example.value_or(1);
    elements = elements && known >= 0 ? checkedMul(*elements, known) : std::nullopt;
    tensor.sizes.push_back(std::move(size));
  }
  CLEAVE_TRY(tensor.requiresGrad, fields.flag("requires_grad", true));
  if (!elements || !checkedMul(*elements, 2 * graph::itemSize(tensor.dtype)))
    return fail(ErrorCode::BadInput, "{} does not fit 64-bit sizes.", where);
  return tensor;
}

}  // namespace cleave::formats
