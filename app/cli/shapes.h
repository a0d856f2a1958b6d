#pragma once
/// `run --shapes`: the one document that all shapes of a run make.
#include "base/result.h"
#include "spec/run/run_spec.h"

#include <optional>
#include <string>
#include <vector>

namespace cleave::cli {

/// "batch 2, sequence 16"
std::string wordsOf(const spec::RunShape& shape);

/// Schema "cleave.runs/1"; also where one of the shapes is the last because it failed.
class ShapesDocument {
 public:
  /// `report`: in JSON. `passed`: nullopt: it was compared with nothing.
  void add(const spec::RunShape& shape, const std::string& report, std::optional<bool> passed);
  void add(const spec::RunShape& shape, const Error& error);
  std::string text() const;

 private:
  void addEntry(const spec::RunShape& shape, const std::string& entry);
  std::string m_entries;
  bool m_hasFailed = false, m_isAllChecked = true;
};

}  // namespace cleave::cli
