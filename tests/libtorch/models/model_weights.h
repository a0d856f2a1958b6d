#pragma once
/// Real tensors for tests: a ModelHost with a model folder's weights, and complete safetensors files.
#include "base/files.h"
#include "formats/model_folder.h"
#include "formats/safetensors.h"
#include "libtorch/bridge/types.h"
#include "libtorch/models/model_host.h"

#include <ATen/ATen.h>

#include <map>
#include <string>

namespace cleave::tests {

inline at::Tensor readTensor(const fs::path& file, const graph::TensorType& type, std::int64_t offset,
                             std::int64_t bytes) {
  at::Tensor tensor = at::empty(type.shape, bridge::toScalarType(type.dtype));
  const auto opened = RandomAccessFile::open(file);
  CLEAVE_CHECK(opened && opened->readAt(offset, {static_cast<std::byte*>(tensor.mutable_data_ptr()),
                                                 static_cast<std::size_t>(bytes)}),
               "{} cannot be read", file.string());
  return tensor;
}

/// All tensors of one safetensors file.
inline std::map<std::string, at::Tensor> readTensors(const fs::path& file) {
  const auto header = formats::readSafetensorsHeader(file);
  CLEAVE_CHECK(header.has_value(), "{}", header.error().message);
  std::map<std::string, at::Tensor> tensors;
  for (const auto& [name, entry] : header->tensors)
    tensors[name] = readTensor(file, entry.type, entry.offset, entry.bytes);
  return tensors;
}

/// Returns the given tensors, cast to the requested dtype. A missing or misshapen tensor is an error in the test.
class WeightsHost : public models::ModelHost {
 public:
  explicit WeightsHost(std::map<std::string, at::Tensor> weights) : m_weights(std::move(weights)) {}
  explicit WeightsHost(const formats::ModelFolder& folder) {
    for (const auto& [name, stored] : folder.tensors)
      m_weights[name] = readTensor(folder.path / stored.file, stored.type, stored.offset, stored.bytes);
  }
  at::Tensor parameter(const std::string& name, at::IntArrayRef shape, at::ScalarType dtype) override {
    if (const auto stored = m_stacked.find(name); stored != m_stacked.end() && !m_weights.contains(name))
      m_weights[name] = assembled(stored->second, shape);
    const auto found = m_weights.find(name);
    CLEAVE_CHECK(found != m_weights.end(), "the checkpoint has no {}", name);
    CLEAVE_CHECK(found->second.sizes() == shape, "{} has another shape", name);
    return found->second.to(dtype);
  }
  at::Tensor constant(const std::string&, const std::function<at::Tensor()>& compute) override { return compute(); }

  void stacked(const std::string& name, const graph::StackedName& stored) override { m_stacked[name] = stored; }

 private:
  at::Tensor assembled(const graph::StackedName& stored, at::IntArrayRef shape) const {
    std::vector<at::Tensor> items;
    for (std::int64_t item = 0; item < shape[0]; ++item) {
      std::vector<at::Tensor> parts;
      for (std::size_t part = 0; part < stored.suffixes.size(); ++part)
        parts.push_back(m_weights.at(stored.of(item, part)));
      items.push_back(at::cat(parts));
    }
    return at::stack(items);
  }

  std::map<std::string, at::Tensor> m_weights;
  std::map<std::string, graph::StackedName> m_stacked;
};

inline double largestDifference(const at::Tensor& a, const at::Tensor& b) {
  return a.sizes() == b.sizes() ? (a.to(at::kDouble) - b.to(at::kDouble)).abs().max().item<double>() : 1e30;
}

}  // namespace cleave::tests
