#pragma once
/// `run --shapes`: what is asked for, and the one document that all shapes of a run make.
#include "base/result.h"

#include <optional>
#include <string>
#include <vector>

namespace cleave::cli {

struct AskedShape {
  std::int64_t batch = 1, sequence = 1;
  /// "batch 2, sequence 16"
  std::string words() const;
};

/// "2x16,1x64": at least one. BadUsage names the flag.
Result<std::vector<AskedShape>> parseShapes(const std::string& text);

/// Schema "cleave.runs/1"; also where one of the shapes is the last because it failed.
class ShapesDocument {
 public:
  /// `report`: in JSON. `passed`: nullopt: it was compared with nothing.
  void add(const AskedShape& shape, const std::string& report, std::optional<bool> passed);
  void add(const AskedShape& shape, const Error& error);
  std::string text() const;

 private:
  void addEntry(const AskedShape& shape, const std::string& entry);
  std::string m_entries;
  bool m_hasFailed = false, m_isAllChecked = true;
};

}  // namespace cleave::cli
