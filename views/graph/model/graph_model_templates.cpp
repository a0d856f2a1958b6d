// Which modules are equal: a module's signature is a list of numbers, interned whole, so that equal ids mean equal
// modules.
#include <algorithm>
#include <bit>
#include <map>

#include "views/graph/model/graph_model_builder.h"

namespace cleave::views {
namespace {

using Signature = std::vector<std::uint64_t>;

/// Text and types to numbers, equal for equal ones.
class Interner {
 public:
  std::uint64_t operator()(std::string_view text) {
    return m_ids.try_emplace(std::string(text), m_ids.size()).first->second;
  }

 private:
  std::map<std::string, std::uint64_t, std::less<>> m_ids;
};

struct ArgumentTokens {
  Signature& out;
  Interner& intern;
  void operator()(std::monostate) const { out.push_back(0); }
  void operator()(ValueId) const { out.push_back(1); }  // wiring follows with the edges
  void operator()(const graph::ValueList& list) const {
    out.insert(out.end(), {2, list.size()});
    for (const ValueId v : list) out.push_back(v.isValid());
  }
  void operator()(std::int64_t v) const { out.insert(out.end(), {3, static_cast<std::uint64_t>(v)}); }
  void operator()(double v) const { out.insert(out.end(), {4, std::bit_cast<std::uint64_t>(v)}); }
  void operator()(bool v) const { out.insert(out.end(), {5, v}); }
  void operator()(const std::string& v) const { out.insert(out.end(), {6, intern(v)}); }
  void operator()(const std::vector<std::int64_t>& list) const {
    out.insert(out.end(), {7, list.size()});
    for (const auto v : list) out.push_back(static_cast<std::uint64_t>(v));
  }
  void operator()(const std::vector<double>& list) const {
    out.insert(out.end(), {8, list.size()});
    for (const auto v : list) out.push_back(std::bit_cast<std::uint64_t>(v));
  }
  void operator()(const std::vector<bool>& list) const {
    out.insert(out.end(), {9, list.size()});
    for (const bool v : list) out.push_back(v);
  }
  void operator()(graph::DType v) const { out.insert(out.end(), {10, static_cast<std::uint64_t>(v)}); }
  void operator()(graph::DeviceArgument) const { out.push_back(11); }
};

class TemplateMaker {
 public:
  explicit TemplateMaker(const GraphModel& model) : m(model) {}

  std::uint32_t idOf(const Module& module) {
    Signature s{static_cast<std::uint64_t>(module.kind), module.members.size()};
    for (const Member& member : module.members) {
      if (member.node.isValid())
        addNode(s, member.node);
      else if (member.module.isValid())
        s.insert(s.end(), {101, m.module(member.module).templateId, intern(m.module(member.module).title)});
      else
        s.insert(s.end(), {102, intern(m.graph().outputs[member.output].name)});
    }
    std::unordered_map<std::uint32_t, std::uint64_t> local;  // values by order of appearance
    for (const MemberEdge& e : module.edges) {
      s.insert(s.end(), {e.from, e.to, local.try_emplace(e.value.raw(), local.size()).first->second});
      if (e.from == MemberEdge::kOutside || e.to == MemberEdge::kOutside) addType(s, e.value);
    }
    for (const ValueId hub : module.madeHubs) s.insert(s.end(), {103, hub.raw()});
    return m_ids.try_emplace(std::move(s), static_cast<std::uint32_t>(m_ids.size())).first->second;
  }

 private:
  void addType(Signature& s, ValueId value) {
    const graph::TensorType& type = m.graph().value(value).type;
    s.insert(s.end(), {static_cast<std::uint64_t>(type.dtype), type.shape.size()});
    for (const auto size : type.shape) s.push_back(static_cast<std::uint64_t>(size));
  }
  void addNode(Signature& s, NodeId id) {
    const graph::Node& node = m.graph().node(id);
    const Trimmings& trimmings = m.trimmings(id);
    s.insert(s.end(),
             {100, static_cast<std::uint64_t>(node.kind), node.op.raw(), intern(trimmings.tail), node.args.size()});
    for (const graph::Argument& argument : node.args) std::visit(ArgumentTokens{s, intern}, argument);
    for (const ValueId result : node.results) addType(s, result);
    for (const ValueId docked : trimmings.docked) addType(s, docked);
    for (const ValueId hub : trimmings.hubs) s.push_back(hub.raw());
  }

  const GraphModel& m;
  Interner intern;
  std::map<Signature, std::uint32_t> m_ids;
};

}  // namespace

void GraphModelBuilder::makeTemplates() {
  std::vector<ModuleId> order;
  for (const ModuleId id : idRange<ModuleId>(m.m_modules.size())) order.push_back(id);
  std::stable_sort(order.begin(), order.end(),
                   [&](ModuleId a, ModuleId b) { return m.module(a).depth > m.module(b).depth; });
  TemplateMaker maker(m);
  for (const ModuleId id : order) m.m_modules[id.index()].templateId = maker.idOf(m.module(id));
}

}  // namespace cleave::views
