#include "formats/exported_places.h"

#include <algorithm>

namespace cleave::formats {
namespace {

constexpr int kNowhere = -1;
constexpr std::ptrdiff_t kNever = -1;

/// Modules by path; module 0 is the model itself.
class Places {
 public:
  struct Place {
    std::string path, className;
    int parent = kNowhere;
    int depth = 0;
    bool isNumbered = false;
    std::ptrdiff_t first = kNever, last = kNever;  ///< calls that read a parameter of it, or of a module inside it
    bool hasReadersInside = false;                 ///< some of these calls are in a module inside it
    bool isListOfBlocks = false;                   ///< its members contain modules
  };

  const Place& operator[](int id) const { return m_places[static_cast<std::size_t>(id)]; }
  Place& operator[](int id) { return m_places[static_cast<std::size_t>(id)]; }
  int count() const { return static_cast<int>(m_places.size()); }

  /// "layers.0.fc" of "layers.0.fc.weight"; kNowhere: the name is not a path.
  int ofParameter(const std::string& name) {
    const std::size_t dot = name.rfind('.');
    if (dot == std::string::npos) return 0;
    if (name.size() > kLongestModulePath || std::count(name.begin(), name.end(), '.') > kDeepestModule) return kNowhere;
    return of(name.substr(0, dot));
  }

  int ofModules(const ExportedModules& modules) {
    int place = 0;
    for (const ExportedModule& module : modules) {
      place = of(module.path);
      if ((*this)[place].className.empty()) (*this)[place].className = module.className;
    }
    return place;
  }

  int common(int a, int b) const {
    while (a != b) {
      if ((*this)[a].depth >= (*this)[b].depth)
        a = (*this)[a].parent;
      else
        b = (*this)[b].parent;
    }
    return a;
  }
  bool isAround(int outer, int inner) const { return outer != inner && common(outer, inner) == outer; }
  /// The module of a call that reads parameters of both: the inner one, or the nearest around both.
  int joined(int a, int b) const { return isAround(a, b) ? b : isAround(b, a) ? a : common(a, b); }

 private:
  int of(const std::string& path) {
    if (const auto known = m_ids.find(path); known != m_ids.end()) return known->second;
    const std::size_t dot = path.rfind('.');
    const int parent = dot == std::string::npos ? 0 : of(path.substr(0, dot));
    const std::string_view name = std::string_view(path).substr(dot == std::string::npos ? 0 : dot + 1);
    const bool isNumbered = !name.empty() && name.find_first_not_of("0123456789") == std::string_view::npos;
    m_places.push_back({path, {}, parent, (*this)[parent].depth + 1, isNumbered});
    m_ids.emplace(path, count() - 1);
    return count() - 1;
  }

  std::vector<Place> m_places{Place{}};
  std::map<std::string, int> m_ids{{"", 0}};
};

template <class Visit>
void forEachRead(const ExportedNode& node, Visit visit) {
  const auto visitValid = [&](ExportedId id) {
    if (id.isValid()) visit(id);
  };
  for (const auto& [name, argument] : node.arguments) {
    if (const auto* id = std::get_if<ExportedId>(&argument)) visitValid(*id);
    if (const auto* ids = std::get_if<std::vector<ExportedId>>(&argument)) std::ranges::for_each(*ids, visitValid);
    if (const auto* numbers = std::get_if<std::vector<ExportedNumber>>(&argument)) {
      for (const ExportedNumber& number : *numbers)
        if (const auto* id = std::get_if<ExportedId>(&number)) visitValid(*id);
    }
  }
}

template <class Visit>
void forEachResult(const ExportedNode& node, Visit visit) {
  for (const auto& result : node.results) {
    if (const auto* id = std::get_if<ExportedId>(&result); id && id->isValid()) visit(*id);
    if (const auto* ids = std::get_if<std::vector<ExportedId>>(&result)) {
      for (const ExportedId id : *ids)
        if (id.isValid()) visit(id);
    }
  }
}

/// Placeholder for a call without a module in the archive: even the model itself has a class.
bool isUnnamed(const ExportedModules& modules) { return modules.size() == 1 && modules.front().className.empty(); }

template <class List>
auto& at(List& list, std::ptrdiff_t index) {
  return list[static_cast<std::size_t>(index)];
}

class Placer {
 public:
  explicit Placer(ExportedProgram& program)
      : m_program(program),
        m_calls(std::ssize(program.nodes)),
        m_anchor(program.nodes.size(), kNowhere),
        m_home(program.nodes.size(), 0),
        m_lastRead(program.values.size(), kNever),
        m_isMade(program.values.size(), false) {}

  void run() {
    findAnchors();
    findReads();
    placeBetween();
    for (const std::vector<int>& members : listsOfBlocks()) placeList(members);
    write();
  }

 private:
  /// The names of one stored tensor, and the calls that read it.
  struct Tied {
    std::vector<int> places;
    std::vector<std::ptrdiff_t> readers;
  };

  /// The name by call. If tied parameters have as many readers as names, the first reader gets the first name (an
  /// embedding), and so on. The program itself has only one of the names.
  std::map<std::ptrdiff_t, int> placesOfTied() {
    std::map<std::string, Tied> all;
    std::unordered_map<std::uint32_t, Tied*> tiedOf;  // by value
    for (const ExportedInput& input : m_program.inputs) {
      const auto stored = m_program.tensors.find(input.name);
      if (input.kind != ExportedInputKind::Parameter || stored == m_program.tensors.end()) continue;
      const WeightSource& source = stored->second;
      if (source.bytes == 0) continue;
      Tied& tied = all[fmt::format("{} {} {}", source.offset, graph::toText(source.type),
                                   graph::toText(graph::Shape(source.strides)))];
      tied.places.push_back(m_places.ofParameter(input.name));
      tiedOf[input.value.raw()] = &tied;
    }
    for (std::ptrdiff_t call = 0; call < m_calls; ++call) {
      forEachRead(nodeOf(call), [&](ExportedId id) {
        if (const auto tied = tiedOf.find(id.raw()); tied != tiedOf.end()) tied->second->readers.push_back(call);
      });
    }
    std::map<std::ptrdiff_t, int> places;
    for (const auto& [bytes, tied] : all) {
      if (tied.places.size() < 2 || tied.places.size() != tied.readers.size()) continue;
      for (std::size_t i = 0; i < tied.places.size(); ++i) places.emplace(tied.readers[i], tied.places[i]);
    }
    return places;
  }

  void findAnchors() {
    std::vector<int> madeOf(m_program.values.size(), kNowhere);
    for (const ExportedInput& input : m_program.inputs)
      if (input.kind == ExportedInputKind::Parameter) madeOf[input.value.index()] = m_places.ofParameter(input.name);
    const auto tied = placesOfTied();
    for (std::ptrdiff_t call = 0; call < m_calls; ++call) {
      int place = kNowhere, reads = 0;
      forEachRead(nodeOf(call), [&](ExportedId id) {
        const int read = madeOf[id.index()];
        if (read != kNowhere) place = place == kNowhere ? read : m_places.joined(place, read);
        ++reads;
      });
      if (const auto own = tied.find(call); own != tied.end()) place = own->second;
      if (isNamed(call)) anchor(call, m_places.ofModules(modulesOf(call)));
      if (place == kNowhere) continue;
      if (!isNamed(call)) anchor(call, place);
      if (reads == 1) forEachResult(nodeOf(call), [&](ExportedId id) { madeOf[id.index()] = place; });
    }
  }

  void anchor(std::ptrdiff_t call, int place) {
    at(m_anchor, call) = at(m_home, call) = place;
    for (int around = place; around != kNowhere; around = m_places[around].parent) {
      Places::Place& each = m_places[around];
      if (each.first == kNever) each.first = call;
      each.last = call;
      if (around == place) continue;
      each.hasReadersInside = true;
      if (each.isNumbered) m_places[each.parent].isListOfBlocks = true;
    }
  }

  void findReads() {
    for (std::ptrdiff_t call = 0; call < m_calls; ++call) {
      if (nodeOf(call).results.empty()) continue;  // assertions have no effect on results
      forEachRead(nodeOf(call), [&](ExportedId id) { m_lastRead[id.index()] = call; });
      forEachResult(nodeOf(call), [&](ExportedId id) { m_isMade[id.index()] = true; });
    }
    for (const ExportedId output : m_program.outputs) m_lastRead[output.index()] = m_calls;
  }

  void placeBetween() {
    const auto buffers = buffersOf();
    std::vector<int> next(m_program.nodes.size(), 0);
    for (std::ptrdiff_t call = m_calls, place = 0; call-- > 0;) {
      if (at(m_anchor, call) != kNowhere) place = at(m_anchor, call);
      at(next, call) = static_cast<int>(place);
    }
    int before = 0;
    for (std::ptrdiff_t call = 0; call < m_calls; ++call) {
      if (at(m_anchor, call) != kNowhere) {
        before = at(m_anchor, call);
        continue;
      }
      int& home = at(m_home, call) = m_places.common(before, at(next, call));
      while (m_places[home].isListOfBlocks && home != 0) home = m_places[home].parent;
      forEachRead(nodeOf(call), [&](ExportedId id) {
        const int buffer = buffers[id.index()];
        if (buffer != kNowhere && m_places.isAround(home, buffer)) home = buffer;
      });
    }
  }

  std::vector<int> buffersOf() {
    std::vector<int> places(m_program.values.size(), kNowhere);
    for (const ExportedInput& input : m_program.inputs)
      if (input.kind == ExportedInputKind::Buffer) places[input.value.index()] = m_places.ofParameter(input.name);
    return places;
  }

  /// Lists whose members run one after the other, outer lists first; members are in the program's order.
  std::vector<std::vector<int>> listsOfBlocks() const {
    std::map<std::pair<int, int>, std::vector<int>> byList;  // by depth and id of the list
    for (int id = 0; id < m_places.count(); ++id) {
      const Places::Place& place = m_places[id];
      if (place.isNumbered && place.hasReadersInside)
        byList[{m_places[place.parent].depth, place.parent}].push_back(id);
    }
    std::vector<std::vector<int>> lists;
    for (auto& [list, members] : byList) {
      std::ranges::sort(members, {}, [&](int id) { return m_places[id].first; });
      const auto overlap =
          std::ranges::adjacent_find(members, [&](int a, int b) { return m_places[a].last >= m_places[b].first; });
      if (members.size() > 1 && overlap == members.end()) lists.push_back(std::move(members));
    }
    return lists;
  }

  using Calls = std::vector<std::ptrdiff_t>;
  using Range = std::pair<std::ptrdiff_t, std::ptrdiff_t>;  ///< first call, and the one after the last

  void placeList(const std::vector<int>& members) {
    Calls beginning, end;  // first and last operators of a member at a border between two members
    for (std::size_t i = 0; i + 1 < members.size(); ++i) {
      const Range between = callsAfter(m_places[members[i]].last);
      if (between.second != m_places[members[i + 1]].first) continue;
      const Calls calls = withResults(between);
      const auto cut = calls.begin() + static_cast<std::ptrdiff_t>(cutOf(calls));
      const Calls ending(calls.begin(), cut), starting(cut, calls.end());
      put(ending, members[i]);
      put(starting, members[i + 1]);
      if (i == 0) beginning = starting;
      end = ending;
    }
    placeEnds(members, beginning, end);
  }

  /// Extends the first member backwards and the last one forwards, as far as the operators match those between members.
  void placeEnds(const std::vector<int>& members, const Calls& beginning, const Calls& end) {
    const Calls before = withResults(callsBefore(m_places[members.front()].first));
    const Calls after = withResults(callsAfter(m_places[members.back()].last));
    const auto isSame = [&](std::ptrdiff_t a, std::ptrdiff_t b) { return nodeOf(a).target == nodeOf(b).target; };
    if (after.size() >= end.size() && std::equal(end.begin(), end.end(), after.begin(), isSame))
      put({after.begin(), after.begin() + std::ssize(end)}, members.back());
    if (before.size() >= beginning.size() && std::equal(beginning.rbegin(), beginning.rend(), before.rbegin(), isSame))
      put({before.end() - std::ssize(beginning), before.end()}, members.front());
  }

  /// Number of calls between two members that belong to the first. It minimises the values passed on; the last of
  /// several equal cuts wins.
  std::size_t cutOf(const Calls& calls) const {
    std::size_t cut = 0;
    std::ptrdiff_t live = 0, fewest = 0;  // preference over the values passed before them
    for (std::size_t i = 0; i < calls.size(); ++i) {
      std::vector<ExportedId> ended;
      forEachRead(nodeOf(calls[i]), [&](ExportedId id) {
        const bool ends = m_isMade[id.index()] && m_lastRead[id.index()] == calls[i];
        if (ends && std::ranges::find(ended, id) == ended.end()) ended.push_back(id);
      });
      live -= std::ssize(ended);
      forEachResult(nodeOf(calls[i]), [&](ExportedId id) { live += m_lastRead[id.index()] > calls[i]; });
      if (live <= fewest) fewest = live, cut = i + 1;
    }
    return cut;
  }

  /// The calls up to the next one with a certain module.
  Range callsAfter(std::ptrdiff_t call) const {
    std::ptrdiff_t end = call + 1;
    while (end < m_calls && at(m_anchor, end) == kNowhere) ++end;
    return {call + 1, end};
  }
  Range callsBefore(std::ptrdiff_t call) const {
    std::ptrdiff_t begin = call;
    while (begin > 0 && at(m_anchor, begin - 1) == kNowhere) --begin;
    return {begin, call};
  }
  Calls withResults(const Range& range) const {
    Calls calls;
    for (std::ptrdiff_t call = range.first; call < range.second; ++call)
      if (!nodeOf(call).results.empty()) calls.push_back(call);
    return calls;
  }

  void put(const Calls& calls, int place) {
    for (const std::ptrdiff_t call : calls)
      if (m_places.isAround(at(m_home, call), place)) at(m_home, call) = place;
  }

  void write() {
    constexpr auto kUnwritten = static_cast<std::uint32_t>(-1);
    std::vector<std::uint32_t> indices(static_cast<std::size_t>(m_places.count()), kUnwritten);
    for (std::ptrdiff_t call = 0; call < m_calls; ++call) {
      const int home = at(m_home, call);
      if (isNamed(call)) continue;
      std::uint32_t& index = indices[static_cast<std::size_t>(home)];
      if (index == kUnwritten) {
        index = static_cast<std::uint32_t>(m_program.modules.size());
        m_program.modules.push_back(modulesTo(home));
      }
      m_program.nodes[static_cast<std::size_t>(call)].module = index;
    }
  }

  ExportedModules modulesTo(int place) const {
    ExportedModules modules;
    for (; place != kNowhere; place = m_places[place].parent)
      modules.push_back({m_places[place].path, m_places[place].className});
    std::ranges::reverse(modules);
    return modules;
  }

  const ExportedModules& modulesOf(std::ptrdiff_t call) const { return m_program.modules[nodeOf(call).module]; }
  /// The archive gives its module.
  bool isNamed(std::ptrdiff_t call) const { return !isUnnamed(modulesOf(call)); }
  const ExportedNode& nodeOf(std::ptrdiff_t call) const { return at(m_program.nodes, call); }

  ExportedProgram& m_program;
  Places m_places;
  const std::ptrdiff_t m_calls;
  std::vector<int> m_anchor;               ///< by call: the module of the parameters that it reads
  std::vector<int> m_home;                 ///< by call: its module
  std::vector<std::ptrdiff_t> m_lastRead;  ///< by value
  std::vector<bool> m_isMade;              ///< by value: passed on by a call
};

}  // namespace

void placeByParameters(ExportedProgram& program) {
  const auto isSomewhere = [&](const ExportedNode& node) { return !isUnnamed(program.modules[node.module]); };
  if (!std::ranges::all_of(program.nodes, isSomewhere)) Placer(program).run();
}

}  // namespace cleave::formats
