#include "rules/placement.h"

#include "base/checked.h"
#include "base/quantities.h"
#include "base/result.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <numeric>

namespace cleave::rules {

std::int64_t sizeBefore(const Shape& shape, int dim) {
  std::int64_t product = 1;
  for (int d = 0; d < dim; ++d) product = saturatingMul(product, sizeAt(shape, d));
  return product;
}

namespace {

constexpr int kMaxDim = 1000;
constexpr int kMaxReplicas = 1 << 20;
constexpr std::size_t kMaxBlocks = 4096;
constexpr std::int64_t kMaxPadding = std::int64_t{1} << 40;

/// Reads the text form from left to right. Spaces are allowed between tokens.
class Reader {
 public:
  explicit Reader(std::string_view text) : m_rest(text) {}
  bool take(std::string_view token) {
    skipSpaces();
    if (!m_rest.starts_with(token)) return false;
    m_rest.remove_prefix(token.size());
    return true;
  }
  std::optional<std::int64_t> number(std::int64_t low, std::int64_t high) {
    skipSpaces();
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(m_rest.data(), m_rest.data() + m_rest.size(), value);
    if (error != std::errc() || value < low || value > high) return std::nullopt;
    m_rest.remove_prefix(static_cast<std::size_t>(end - m_rest.data()));
    return value;
  }
  bool atEnd() {
    skipSpaces();
    return m_rest.empty();
  }

 private:
  void skipSpaces() {
    while (!m_rest.empty() && m_rest.front() == ' ') m_rest.remove_prefix(1);
  }
  std::string_view m_rest;
};

/// The replicas of "/x2" after a block's size. 1 if there is no such suffix, nullopt if it is malformed.
std::optional<int> readBlockReplicas(Reader& in) {
  if (!in.take("/")) return 1;
  if (!in.take("x")) return std::nullopt;
  const auto replicas = in.number(1, kMaxReplicas);
  if (!replicas) return std::nullopt;
  return static_cast<int>(*replicas);
}

/// The text after the "b": "3", "3/x2" or "[4,1/x2]".
std::optional<std::vector<Block>> readBlocks(Reader& in) {
  std::vector<Block> blocks;
  if (!in.take("[")) {
    const auto count = in.number(2, kMaxBlocks);
    const auto replicas = count ? readBlockReplicas(in) : std::nullopt;
    if (!replicas) return std::nullopt;
    return std::vector<Block>(static_cast<std::size_t>(*count), Block{0, *replicas});
  }
  do {
    const auto size = in.number(1, std::int64_t{1} << 60);
    const auto replicas = size ? readBlockReplicas(in) : std::nullopt;
    if (!replicas || blocks.size() == kMaxBlocks) return std::nullopt;
    blocks.push_back({*size, *replicas});
  } while (in.take(","));
  if (!in.take("]")) return std::nullopt;
  return blocks;
}

/// Splits `sizes` jointly, row-major, into `parts`. Outer dimensions are used up before inner ones are divided, because
/// only then each part is one rectangle. False if no such division exists.
bool divideJointly(std::span<std::int64_t> sizes, std::int64_t parts) {
  for (std::int64_t& size : sizes) {
    if (parts == 1) return true;
    if (size % parts == 0) {
      size /= parts;
      return true;
    }
    if (size == 0 || parts % size != 0) return false;
    parts /= size;
    size = 1;
  }
  return parts == 1;
}

}  // namespace

Placement Placement::joint(int firstDim, int lastDim) {
  CLEAVE_CHECK(0 <= firstDim && firstDim <= lastDim && lastDim <= kMaxDim, "{}:{}", firstDim, lastDim);
  Placement p;
  p.m_firstDim = static_cast<std::int16_t>(firstDim);
  p.m_lastDim = static_cast<std::int16_t>(lastDim);
  return p;
}

Placement Placement::withReplicas(int replicas) const {
  CLEAVE_CHECK(isSplit() && m_blocks.empty() && replicas >= 1);
  Placement p = *this;
  p.m_replicas = replicas;
  return p;
}

Placement Placement::withPadding(std::int64_t padding) const {
  CLEAVE_CHECK(isSplit() && m_blocks.empty() && m_firstDim == m_lastDim && padding >= 0);
  Placement p = *this;
  p.m_padding = padding;
  return p;
}

Placement Placement::withBlocks(std::vector<Block> blocks) const {
  CLEAVE_CHECK(isSplit() && m_firstDim == m_lastDim && m_padding == 0);
  Placement p = *this;
  p.m_replicas = 1;
  p.m_blocks.clear();
  if (blocks.empty()) return p;
  if (blocks.size() == 1) return p.withReplicas(blocks.front().replicas);
  const bool areEqual = std::all_of(blocks.begin(), blocks.end(), [&](const Block& b) { return b == blocks.front(); });
  if (areEqual) {
    for (Block& block : blocks) block.size = 0;
  }
  p.m_blocks = std::move(blocks);
  return p;
}

Placement Placement::shifted(int offset) const {
  if (isReplicated()) return *this;
  CLEAVE_CHECK(m_firstDim + offset >= 0 && m_lastDim + offset <= kMaxDim, "{} by {}", text(), offset);
  Placement p = *this;
  p.m_firstDim = static_cast<std::int16_t>(m_firstDim + offset);
  p.m_lastDim = static_cast<std::int16_t>(m_lastDim + offset);
  return p;
}

bool Placement::isPlainSplit() const {
  return isSplit() && m_firstDim == m_lastDim && m_replicas == 1 && m_padding == 0 && m_blocks.empty();
}

bool Placement::isReplicatedOn(int worldSize) const {
  if (isReplicated()) return true;
  if (m_blocks.empty()) return m_replicas == worldSize && m_padding == 0;
  return std::all_of(m_blocks.begin(), m_blocks.end(), [&](const Block& b) { return b.replicas == worldSize; });
}

std::optional<Placement> Placement::parse(std::string_view text) {
  Reader in(text);
  if (in.take("R")) return in.atEnd() ? std::optional(Placement()) : std::nullopt;
  if (!in.take("S") || !in.take("(")) return std::nullopt;
  const auto first = in.number(0, kMaxDim);
  if (!first) return std::nullopt;
  auto last = first;
  if (in.take(":")) last = in.number(*first, kMaxDim);
  if (!last) return std::nullopt;
  Placement p = joint(static_cast<int>(*first), static_cast<int>(*last));
  while (in.take(",")) {
    if (in.take("x") && p.m_replicas == 1 && p.m_blocks.empty()) {
      const auto replicas = in.number(1, kMaxReplicas);
      if (!replicas) return std::nullopt;
      p.m_replicas = static_cast<int>(*replicas);
    } else if (in.take("pad") && p.m_padding == 0 && p.m_blocks.empty() && first == last) {
      const auto padding = in.number(0, kMaxPadding);
      if (!padding) return std::nullopt;
      p.m_padding = *padding;
    } else if (in.take("b") && p.m_replicas == 1 && p.m_padding == 0 && p.m_blocks.empty() && first == last) {
      auto blocks = readBlocks(in);
      if (!blocks) return std::nullopt;
      p = p.withBlocks(std::move(*blocks));
    } else {
      return std::nullopt;
    }
  }
  if (!in.take(")") || !in.atEnd()) return std::nullopt;
  return p;
}

std::string Placement::text() const {
  if (isReplicated()) return "R";
  std::string out = fmt::format("S({}", m_firstDim);
  if (m_lastDim != m_firstDim) out += fmt::format(":{}", m_lastDim);
  if (m_replicas != 1) out += fmt::format(",x{}", m_replicas);
  if (m_padding != 0) out += fmt::format(",pad {}", m_padding);
  const auto replicasText = [](int replicas) { return replicas == 1 ? std::string() : fmt::format("/x{}", replicas); };
  if (!m_blocks.empty() && m_blocks.front().size == 0) {
    out += fmt::format(",b{}{}", m_blocks.size(), replicasText(m_blocks.front().replicas));
  } else if (!m_blocks.empty()) {
    out += ",b[";
    for (std::size_t i = 0; i < m_blocks.size(); ++i) {
      out += fmt::format("{}{}{}", i == 0 ? "" : ",", m_blocks[i].size, replicasText(m_blocks[i].replicas));
    }
    out += "]";
  }
  return out + ")";
}

std::vector<Block> Placement::blocksOf(std::int64_t size) const {
  if (m_blocks.empty()) return {Block{size, m_replicas}};
  if (m_blocks.front().size != 0) return m_blocks;
  const auto count = static_cast<std::int64_t>(m_blocks.size());
  return std::vector<Block>(m_blocks.size(), Block{size / count, m_blocks.front().replicas});
}

std::string Placement::whyNotDivisible(const Shape& shape, int worldSize) const {
  if (isReplicated()) return {};
  const int rank = static_cast<int>(shape.size());
  if (m_lastDim >= rank) {
    return fmt::format("{} needs dimension {}, but the tensor has {}", text(), m_lastDim, counted(rank, "dimension"));
  }
  const auto badReplicas = [&](int replicas) {
    return replicas < 1 || worldSize % replicas != 0
               ? fmt::format("{} replicas do not divide {}", replicas, counted(worldSize, "rank"))
               : std::string();
  };
  const auto partsText = [&](int replicas) {
    return replicas == 1 ? fmt::format("{} ranks", worldSize)
                         : fmt::format("{} parts ({} ranks, {} replicas)", worldSize / replicas, worldSize, replicas);
  };
  const std::int64_t size = shape[static_cast<std::size_t>(m_firstDim)];
  if (!m_blocks.empty()) {
    const auto count = static_cast<std::int64_t>(m_blocks.size());
    if (m_blocks.front().size == 0 && size % count != 0) {
      return fmt::format("{} does not divide into {} equal blocks", size, count);
    }
    std::int64_t sum = 0;
    for (const Block& block : blocksOf(size)) {
      if (auto why = badReplicas(block.replicas); !why.empty()) return why;
      if (block.size % (worldSize / block.replicas) != 0) {
        return fmt::format("a block of {} does not divide by {}", block.size, partsText(block.replicas));
      }
      const auto next = checkedAdd(sum, block.size);
      if (!next) return fmt::format("the blocks of {} overflow", text());
      sum = *next;
    }
    return sum == size ? std::string() : fmt::format("the blocks add up to {}, the dimension has {}", sum, size);
  }
  if (auto why = badReplicas(m_replicas); !why.empty()) return why;
  const int parts = worldSize / m_replicas;
  if (m_firstDim == m_lastDim) {
    const auto padded = checkedAdd(size, m_padding);
    if (padded && *padded % parts == 0) return {};
    return fmt::format("{} does not divide by {}", padded.value_or(size), partsText(m_replicas));
  }
  Shape sizes(shape.begin() + m_firstDim, shape.begin() + m_lastDim + 1);
  if (divideJointly(sizes, parts)) return {};
  return fmt::format("{} together do not divide by {}",
                     fmt::join(shape.begin() + m_firstDim, shape.begin() + m_lastDim + 1, " x "),
                     partsText(m_replicas));
}

std::optional<Shape> Placement::localShape(const Shape& shape, int worldSize) const {
  if (isReplicated()) return shape;
  if (worldSize < 1 || !whyNotDivisible(shape, worldSize).empty()) return std::nullopt;
  Shape local = shape;
  std::int64_t& size = local[static_cast<std::size_t>(m_firstDim)];
  if (!m_blocks.empty()) {
    const std::int64_t whole = size;
    size = 0;
    for (const Block& block : blocksOf(whole)) size += block.size / (worldSize / block.replicas);
  } else if (m_firstDim == m_lastDim) {
    size = (size + m_padding) / (worldSize / m_replicas);
  } else {
    const auto count = static_cast<std::size_t>(m_lastDim - m_firstDim + 1);
    divideJointly(std::span(local).subspan(static_cast<std::size_t>(m_firstDim), count), worldSize / m_replicas);
  }
  return local;
}

std::int64_t Placement::localCount(const Shape& shape, int worldSize) const {
  const std::int64_t whole = graph::elementCount(shape);
  if (isReplicated() || whole == 0) return whole;
  if (m_blocks.empty() && m_padding == 0) return whole / (worldSize / m_replicas);
  const std::int64_t size = shape[static_cast<std::size_t>(m_firstDim)];
  const std::int64_t others = whole / size;
  if (m_blocks.empty()) return others * ((size + m_padding) / (worldSize / m_replicas));
  const auto count = static_cast<std::int64_t>(m_blocks.size());
  std::int64_t local = 0;
  for (const Block& block : m_blocks) {
    local += (block.size != 0 ? block.size : size / count) / (worldSize / block.replicas);
  }
  return others * local;
}

std::vector<Range> Placement::ranges(const Shape& shape, int worldSize, int rank) const {
  if (isReplicated()) return {};
  std::int64_t size = 1;
  for (int d = m_firstDim; d <= m_lastDim; ++d) size *= shape[static_cast<std::size_t>(d)];
  std::vector<Range> out;
  std::int64_t offset = 0;
  for (const Block& block : blocksOf(size)) {
    const std::int64_t length = (block.size + m_padding) / (worldSize / block.replicas);
    const std::int64_t begin = offset + length * (rank / block.replicas);
    const std::int64_t end = std::min(begin + length, offset + block.size);
    out.push_back({std::min(begin, end), std::max<std::int64_t>(0, end - begin)});
    offset += block.size;
  }
  return out;
}

std::size_t Placement::hash() const {
  std::size_t h = static_cast<std::size_t>(m_firstDim + 1) * 1000003u + static_cast<std::size_t>(m_lastDim + 1);
  const auto mix = [&h](std::uint64_t x) { h = (h ^ x) * 0x9E3779B97F4A7C15ull; };
  mix(static_cast<std::uint64_t>(m_replicas));
  mix(static_cast<std::uint64_t>(m_padding));
  for (const Block& block : m_blocks) {
    mix(static_cast<std::uint64_t>(block.size));
    mix(static_cast<std::uint64_t>(block.replicas));
  }
  return h ^ (h >> 29);
}

}  // namespace cleave::rules
