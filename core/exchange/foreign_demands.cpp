#include "base/edit_distance.h"
#include "base/wildcard.h"
#include "exchange/foreign_plan.h"
#include "exchange/modules.h"
#include "exchange/styles.h"
#include "graph/layers.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <deque>
#include <map>
#include <set>

namespace cleave::exchange {
namespace {

using graph::Graph;
using graph::LayerKind;
using graph::NodeId;
using graph::ValueId;
using rules::Strategy;

std::vector<std::string_view> partsOf(std::string_view name) {
  std::vector<std::string_view> parts;
  while (true) {
    const auto dot = name.find('.');
    parts.push_back(name.substr(0, dot));
    if (dot == std::string_view::npos) return parts;
    name.remove_prefix(dot + 1);
  }
}

/// "layers.*.mlp" of "model.layers.*.mlp"; empty: the name has one part.
std::string_view afterBase(std::string_view name) {
  const auto dot = name.find('.');
  return dot == std::string_view::npos ? std::string_view() : name.substr(dot + 1);
}

/// transformers compares with the name whose numbers are `*`. Names below the base model's prefix match any first part.
/// parallelize_module matches part by part.
bool covers(Library library, const ForeignEntry& entry, std::string_view name) {
  const std::string_view pattern = entry.name;
  const auto wanted = partsOf(pattern), parts = partsOf(name);
  if (library == Library::Transformers) {
    const std::string asNamed = wildcardName(std::string(name));
    return asNamed == pattern || (entry.isBelowBase && afterBase(asNamed) == pattern);
  }
  return wanted.size() == parts.size() &&
         std::equal(wanted.begin(), wanted.end(), parts.begin(),
                    [](std::string_view w, std::string_view p) { return matchesWildcard(w, p); });
}

struct Named {
  std::string name;  ///< name of the layer, as in checkpoints
  NodeId node;
  graph::LayerShape shape;
  StyleKind kind = StyleKind::Whole;
  std::string style;  ///< "colwise"; empty: not listed
};

class DemandMaker {
 public:
  DemandMaker(const ForeignPlan& foreign, const Graph& graph, const std::string& modelType)
      : m_foreign(foreign), m_graph(graph), m_modelType(modelType), m_layerOf(graph.nodes.size()) {
    for (NodeId node : idRange<NodeId>(graph.nodes.size())) {
      const auto shape = graph::layerShape(graph, node);
      if (!shape || shape->kind == LayerKind::CrossEntropy) continue;
      m_layerOf[node.index()] = m_layers.size() + 1;
      m_layers.push_back({graph::layerName(graph, node), node, *shape});
    }
  }

  bool namesAnything(const ForeignEntry& entry) const {
    return namesModule(entry) || namesParameter(entry) ||
           std::any_of(m_layers.begin(), m_layers.end(), [&](const Named& layer) { return isMeant(entry, layer); });
  }

  ForeignDemands make() && {
    for (const ForeignEntry& entry : m_foreign.entries) take(entry);
    for (Named& layer : m_layers) settle(layer);
    for (const Named& layer : m_layers) check(layer);
    for (const ForeignEntry& entry : m_foreign.entries) checkHelper(entry);
    noteUnnamed();
    if (!m_demands.problems.empty()) return std::move(m_demands);
    demandAll();
    return std::move(m_demands);
  }

 private:
  void noteUnnamed() {
    if (m_foreign.library != Library::Transformers || m_foreign.isOwn || m_demands.namedLayers == m_demands.layers)
      return;
    addOnce(m_demands.notes,
            fmt::format("{}: layers that it does not list are replicated here, but transformers adds the model's own "
                        "plan to it. List such layers as replicate if that plan splits them.",
                        m_foreign.where));
  }

  static void addOnce(std::vector<std::string>& all, std::string sentence) {
    if (std::find(all.begin(), all.end(), sentence) == all.end()) all.push_back(std::move(sentence));
  }
  void problem(std::string sentence) { addOnce(m_demands.problems, std::move(sentence)); }

  /// Tries both names that transformers has used for a module.
  bool isMeant(const ForeignEntry& entry, const std::string& name) const {
    return covers(m_foreign.library, entry, name) || covers(m_foreign.library, entry, moduleName(m_modelType, name));
  }

  /// An entry may name a layer, or a parameter of one ("experts.gate_up_proj", "experts.*.w1").
  bool isMeant(const ForeignEntry& entry, const Named& layer) const {
    if (isMeant(entry, layer.name)) return true;
    if (layer.shape.kind != LayerKind::Experts) {
      return isMeant(entry, layer.name + ".weight") || isMeant(entry, layer.name + ".bias");
    }
    const auto parts = partsOf(entry.name);
    for (const std::size_t cut : {std::size_t{1}, std::size_t{2}}) {
      if (parts.size() <= cut || (cut == 2 && parts[parts.size() - 2] != "*")) continue;
      const auto end = static_cast<std::size_t>(parts[parts.size() - cut].data() - entry.name.data()) - 1;
      if (isMeant({entry.name.substr(0, end), {}, {}, entry.isBelowBase}, layer.name)) return true;
    }
    return false;
  }

  void take(const ForeignEntry& entry) {
    bool isUsed = false;
    for (Named& layer : m_layers) {
      if (!isMeant(entry, layer)) continue;
      isUsed = true;
      if (entry.kind) applyStyle(layer, entry);
    }
    if (isOfFourAlone(entry.style)) {
      addOnce(m_demands.notes, fmt::format("{}: {} is a style of transformers 4, which transformers 5 refuses.",
                                           m_foreign.where, entry.style));
    }
    if (!entry.kind) {
      problem(fmt::format("{}: `{}` has the style {}, which Cleave does not know.", m_foreign.where, entry.name,
                          entry.style));
    } else if (!isUsed) {
      applyOutsideLayers(entry);
    }
  }

  static bool isOfFourAlone(std::string_view style) {
    return style == "gather" || style == "ep_router" || style == "local" || style == "local_colwise" ||
           style == "local_rowwise" || style == "local_packed_rowwise";
  }

  static bool splits(StyleKind kind) { return kind < StyleKind::Whole; }

  /// An entry that matches no layer.
  void applyOutsideLayers(const ForeignEntry& entry) {
    if (namesModule(entry)) {
      if (!splits(*entry.kind)) return;
      problem(fmt::format("`{}` is {}, but it is not a Linear, an Embedding or experts, so it cannot be split.",
                          entry.name, entry.style));
    } else if (!namesParameter(entry)) {
      unknown(entry);
    }
  }

  /// transformers' own plans list modules that only other sizes of a model have, and it skips these. It rejects any
  /// other unknown name.
  void unknown(const ForeignEntry& entry) {
    constexpr std::size_t kSlip = 2;  // number of letters
    const std::string sentence = fmt::format("{}: `{}` names no module of this model", m_foreign.where, entry.name);
    const bool mayBeItsOwn = m_foreign.library == Library::Transformers && near(entry, kSlip).empty() &&
                             entry.name == wildcardName(entry.name) && isOfKnownBlock(entry);
    if (!mayBeItsOwn) return problem(sentence + near(entry, std::max<std::size_t>(3, entry.name.size() / 4) - 1) + ".");
    addOnce(
        m_demands.notes,
        sentence + ". transformers skips it if its own plan of this architecture has it, and rejects it otherwise.");
  }

  /// True if "model.layers.*.mlp" of "model.layers.*.mlp.shared_experts.up_proj" exists.
  bool isOfKnownBlock(const ForeignEntry& entry) const {
    constexpr std::string_view kStack = ".*.";
    const auto stack = entry.name.find(kStack);
    if (stack == std::string::npos) return false;
    const auto end = entry.name.find('.', stack + kStack.size());
    const std::string block = entry.name.substr(0, end);
    return end != std::string::npos &&
           std::any_of(m_graph.scopes.begin(), m_graph.scopes.end(), [&](const graph::Scope& scope) {
             return isMeant({block, {}, {}, entry.isBelowBase}, scope.path);
           });
  }

  void applyStyle(Named& layer, const ForeignEntry& entry) {
    // One parameter of the experts decides how all of them are split. A "replicate" for their module does not undo it.
    const bool isExperts = layer.shape.kind == LayerKind::Experts;
    if (isExperts && *entry.kind == StyleKind::Whole && layer.kind != StyleKind::Whole) return;
    if (!splits(*entry.kind) && *entry.kind != StyleKind::Whole) return helpLayer(layer, entry);
    const bool isParameter = entry.name.ends_with(".weight") || entry.name.ends_with(".bias");
    if (isParameter && !isExperts && splits(*entry.kind) && m_foreign.library == Library::Transformers) {
      problem(
          fmt::format("`{}` is {}, but it is a parameter, and its module would not know that it is split. List the "
                      "module instead.",
                      entry.name, entry.style));
    }
    const StyleKind before = layer.kind;
    const bool splitsInside = *entry.kind != StyleKind::Whole && *entry.kind != StyleKind::ByExpert;
    layer.kind = isExperts && splitsInside ? StyleKind::InExpert : *entry.kind;
    if (!isExperts && !layer.style.empty() && layer.kind != before)
      problem(fmt::format("`{}` is listed twice, as {} and as {}.", shown(layer), layer.style, entry.style));
    layer.style = entry.style;
  }

  /// A layer with a helper's style stays replicated, if the helper supports layers.
  void helpLayer(Named& layer, const ForeignEntry& entry) {
    const bool isLatent = entry.style != "mla_kv_a_proj" || layer.name.find("kv_a") != std::string::npos;
    if (*entry.kind == StyleKind::HelpsNoLayer || !isLatent)
      problem(fmt::format("`{}` is {}, which is for another kind of module.", shown(layer), entry.style));
    if (*entry.kind == StyleKind::Sum) sumsWhole(shown(layer), entry);
    if (layer.style.empty()) layer.style = entry.style;
  }

  void sumsWhole(const std::string& name, const ForeignEntry& entry) {
    problem(fmt::format("`{}` is {}, but its result is replicated, so the sum would count it once per rank.", name,
                        entry.style));
  }

  /// Checks helpers of modules, after all layers have their styles.
  void checkHelper(const ForeignEntry& entry) {
    if (!entry.kind) return;
    const bool sumsGradient = *entry.kind == StyleKind::SumGradient || entry.style == "sequence_parallel";
    if (*entry.kind != StyleKind::Sum && !sumsGradient) return;
    for (const graph::Scope& scope : m_graph.scopes) {
      if (!isMeant(entry, scope.path)) continue;
      if (sumsGradient) checkGradient(scope.path, entry);
      const bool leavesParts = std::any_of(m_layers.begin(), m_layers.end(), [&](const Named& layer) {
        return layer.name.starts_with(scope.path + ".") && layer.style.starts_with("local");
      });
      if (*entry.kind == StyleKind::Sum && !leavesParts) sumsWhole(wildcardName(scope.path), entry);
    }
  }

  /// A gradient that is summed must be a part on each rank: the module must read the results of
  /// column-split layers.
  void checkGradient(const std::string& module, const ForeignEntry& entry) {
    for (const graph::Value& value : m_graph.values) {
      if (!value.name.starts_with(module + ".") || value.name.find('.', module.size() + 1) != std::string::npos)
        continue;
      if (m_graph.node(value.producer).kind != graph::NodeKind::Parameter) continue;
      for (const NodeId user : value.users) {
        for (const Named* maker : nextTo(user, false)) {
          if (maker->kind == StyleKind::Column) continue;
          return addOnce(m_demands.notes,
                         fmt::format("`{}` is {}, but `{}` ({}) before it gives a replicated result. In training its "
                                     "gradient would be summed once per rank.",
                                     wildcardName(module), entry.style, shown(*maker), styleText(*maker)));
        }
      }
    }
  }

  bool namesModule(const ForeignEntry& entry) const {
    return std::any_of(m_graph.scopes.begin(), m_graph.scopes.end(),
                       [&](const graph::Scope& scope) { return isMeant(entry, scope.path); });
  }

  bool namesParameter(const ForeignEntry& entry) const {
    return std::any_of(m_graph.values.begin(), m_graph.values.end(), [&](const graph::Value& value) {
      return m_graph.node(value.producer).kind == graph::NodeKind::Parameter && isMeant(entry, value.name);
    });
  }

  /// "; the closest name is `model.layers.*.mlp.up_proj`", within this many letters; empty: no name is that close.
  std::string near(const ForeignEntry& entry, std::size_t most) const {
    std::string best;
    std::size_t least = most + 1;
    for (const Named& layer : m_layers) {
      std::string known = wildcardName(moduleName(m_modelType, layer.name));
      if (entry.isBelowBase && !afterBase(known).empty()) known.erase(0, known.find('.') + 1);
      if (const std::size_t distance = editDistance(entry.name, known, least); distance < least) {
        least = distance;
        best = known;
      }
    }
    return best.empty() ? "" : fmt::format("; the closest name is `{}`", best);
  }

  /// Resolves a style for this kind of layer.
  void settle(Named& layer) {
    ++m_demands.layers;
    if (layer.style.empty()) return;
    ++m_demands.namedLayers;
    const bool isEmbedding = layer.shape.kind == LayerKind::Embedding;
    const bool readsRows = layer.kind == StyleKind::Row || layer.kind == StyleKind::RowSplitInput;
    if (isEmbedding && readsRows) layer.kind = StyleKind::Vocab;
    const bool isColumn = layer.kind == StyleKind::Column || layer.kind == StyleKind::ColumnGather;
    if ((isEmbedding && isColumn) || (!isEmbedding && layer.kind == StyleKind::Vocab)) {
      problem(fmt::format("`{}` is {}, which Cleave cannot price for {}.", shown(layer), layer.style,
                          isEmbedding ? "an embedding" : "a layer other than an embedding"));
    }
  }

  std::string shown(const Named& layer) const { return wildcardName(layer.name); }

  /// The nearest layers after a node (`after`) or before it, across nodes that are not layers.
  std::vector<const Named*> nextTo(NodeId from, bool after) const {
    std::vector<const Named*> found;
    std::vector<bool> isSeen(m_graph.nodes.size());
    std::deque<NodeId> queue;
    const auto visit = [&](NodeId node) {
      if (isSeen[node.index()]) return;
      isSeen[node.index()] = true;
      if (const std::size_t number = m_layerOf[node.index()]) {
        found.push_back(&m_layers[number - 1]);
      } else {
        queue.push_back(node);
      }
    };
    const auto visitNeighbours = [&](NodeId node) {
      if (after) {
        for (const ValueId result : m_graph.node(node).results) {
          for (const NodeId user : m_graph.value(result).users) visit(user);
        }
      } else {
        graph::forEachOperand(m_graph.node(node), [&](ValueId value) { visit(m_graph.value(value).producer); });
      }
    };
    visitNeighbours(from);
    while (!queue.empty()) {
      const NodeId node = queue.front();
      queue.pop_front();
      visitNeighbours(node);
    }
    return found;
  }

  /// The layers whose results it reads, besides its weight.
  std::vector<const Named*> makersOf(const Named& layer) const {
    const NodeId producer = m_graph.value(layer.shape.input).producer;
    if (const std::size_t number = m_layerOf[producer.index()]) return {&m_layers[number - 1]};
    return nextTo(producer, false);
  }

  /// The parts of a column must go to rows, and rows must read parts of columns.
  void check(const Named& layer) {
    if (layer.kind == StyleKind::Column) {
      const auto readers = nextTo(layer.node, true);
      for (const Named* reader : readers) {
        if (reader->kind == StyleKind::Row) continue;
        problem(
            fmt::format("`{}` is {} without a rowwise layer after it: its result is split, but `{}` ({}) expects a "
                        "replicated input.",
                        shown(layer), layer.style, shown(*reader), styleText(*reader)));
        break;  // the layers after it read a mixture
      }
      if (readers.empty()) {
        problem(
            fmt::format("`{}` is {}, but its result is an output of the model, so each rank would return only "
                        "its part.",
                        shown(layer), layer.style));
      }
    } else if (layer.kind == StyleKind::Row) {
      for (const Named* maker : makersOf(layer)) {
        if (maker->kind == StyleKind::Column) continue;
        problem(fmt::format("`{}` is {} and expects split input, but `{}` ({}) before it gives a replicated result.",
                            shown(layer), layer.style, shown(*maker), styleText(*maker)));
        break;
      }
    }
  }

  static std::string styleText(const Named& layer) { return layer.style.empty() ? "not listed" : layer.style; }

  /// Layers of a stack with the same style share one pin.
  void demandAll() {
    std::set<std::string> pinned;
    for (const Named& layer : m_layers) {
      const Strategy strategy = strategyOf(layer);
      if (layer.kind == StyleKind::RowSplitInput)
        m_demands.redistributable.push_back(m_graph.value(layer.shape.input).name);
      const std::string pattern = wildcardName(layer.name);
      const bool isShared = std::all_of(m_layers.begin(), m_layers.end(), [&](const Named& other) {
        return !matchesWildcard(pattern, other.name) || strategyOf(other) == strategy;
      });
      if (isShared && !pinned.insert(pattern).second) continue;
      if (auto pin = solve::Pin::parse(solve::demandFor(isShared ? pattern : layer.name, strategy)))
        m_demands.pins.push_back(*std::move(pin));
    }
  }

  static Strategy strategyOf(const Named& layer) {
    switch (layer.kind) {
      case StyleKind::Column: return Strategy::Column;
      case StyleKind::ColumnGather: return Strategy::ColumnGather;
      case StyleKind::Row:
      case StyleKind::RowSplitInput: return Strategy::Row;
      case StyleKind::Vocab: return Strategy::Vocab;
      case StyleKind::InExpert: return Strategy::InExpert;
      case StyleKind::ByExpert: return Strategy::ByExpert;
      case StyleKind::Whole:
      case StyleKind::Helper:
      case StyleKind::SumGradient:
      case StyleKind::Sum:
      case StyleKind::HelpsNoLayer: break;
    }
    return Strategy::Replicated;
  }

  const ForeignPlan& m_foreign;
  const Graph& m_graph;
  const std::string& m_modelType;
  std::vector<Named> m_layers;
  std::vector<std::size_t> m_layerOf;  ///< by NodeId: the layer's number from 1; 0: not a layer
  ForeignDemands m_demands;
};

}  // namespace

std::string problemsText(const ForeignDemands& demands, std::string_view separator) {
  constexpr std::size_t kMostShown = 20;
  const auto& all = demands.problems;
  std::string text =
      fmt::format("{}", fmt::join(all.begin(), all.begin() + std::min(all.size(), kMostShown), separator));
  if (all.size() > kMostShown) text += fmt::format("{}(and {} more)", separator, all.size() - kMostShown);
  return text;
}

ForeignDemands demandsOf(const ForeignPlan& foreign, const graph::Graph& graph, const std::string& modelType) {
  if (!foreign.isBare) return DemandMaker(foreign, graph, modelType).make();
  // A tp_plan may list modules that this size of the model lacks. They are interpreted like the modules it has.
  ForeignPlan named = foreign;
  const DemandMaker known(foreign, graph, modelType);
  bool isBelowBase = false;
  for (ForeignEntry& entry : named.entries) {
    if (known.namesAnything(entry)) continue;
    entry.isBelowBase = true;
    isBelowBase = isBelowBase || known.namesAnything(entry);
  }
  ForeignDemands demands = DemandMaker(isBelowBase ? named : foreign, graph, modelType).make();
  if (isBelowBase) {
    demands.notes.push_back(
        fmt::format("{}: names are read without the base model's prefix, as in a config's base_model_tp_plan. As a "
                    "tp_plan, transformers would not find them.",
                    foreign.where));
  }
  return demands;
}

std::vector<std::string> differencesOf(const plan::Plan& plan) {
  std::vector<std::string> sentences;
  const auto say = [&](std::string sentence) {
    if (std::find(sentences.begin(), sentences.end(), sentence) == sentences.end())
      sentences.push_back(std::move(sentence));
  };
  for (const Layer& layer : layerTable(plan).layers) {
    if (layer.kind == LayerKind::Experts && layer.strategy == Strategy::InExpert) {
      if (const std::string why = whyNotGrouped(plan, layer); !why.empty())
        say(fmt::format("`{}`: {}. In transformers, {}.", wildcardName(layer.name), why, kInsteadOfGrouped));
    }
    const bool isPacked = layer.kind == LayerKind::Experts && layer.cut == Cut::Blocks;  // libraries support these
    if (isPacked || (layer.cut != Cut::Blocks && layer.cut != Cut::Copied)) continue;
    say(fmt::format("`{}` is priced as {}, {}. An even split, which libraries use, would not fit the layers after it.",
                    wildcardName(layer.name), layer.placement.text(),
                    layer.cut == Cut::Blocks ? "a part of each of its blocks" : "parts that ranks share"));
  }
  return sentences;
}

}  // namespace cleave::exchange
