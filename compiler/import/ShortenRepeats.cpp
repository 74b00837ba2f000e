//===- ShortenRepeats.cpp - find equal blocks of nodes, leave some out ----===//
//
// Hashes of nodes without names find the period; then every name is followed
// from each block to the next.
//
//===----------------------------------------------------------------------===//
#include "compiler/import/RepeatedNodes.h"

#include <algorithm>
#include <charconv>
#include <set>

namespace monarch {

namespace {

/// Fewer blocks are captured as they are.
constexpr size_t FewestBlocks = 6;
/// Distances between equal nodes that are tried as the period.
constexpr size_t PeriodsTried = 8;

//===- Names --------------------------------------------------------------===//

/// Calls `visit` with each name in an argument; false from it ends the walk.
/// Nested graphs have names of their own: they end it, too.
template <typename Argument, typename Visit>
bool eachName(Argument &argument, const Visit &visit) {
  if (auto *tensor = std::get_if<TensorName>(&argument))
    return tensor->name.empty() || visit(tensor->name);
  if (auto *symbol = std::get_if<SymbolName>(&argument))
    return visit(symbol->name);
  if (auto *tensors = std::get_if<std::vector<TensorName>>(&argument))
    return std::all_of(tensors->begin(), tensors->end(), [&](auto &tensor) {
      return tensor.name.empty() || visit(tensor.name);
    });
  if (auto *ints = std::get_if<std::vector<ExportedInt>>(&argument))
    return std::all_of(ints->begin(), ints->end(), [&](auto &element) {
      auto *symbol = std::get_if<SymbolName>(&element);
      return symbol == nullptr || visit(symbol->name);
    });
  return !std::holds_alternative<std::shared_ptr<ExportedGraph>>(argument);
}

template <typename Visit>
bool eachInput(const ExportedNode &node, const Visit &visit) {
  return std::all_of(
      node.inputs.begin(), node.inputs.end(),
      [&](const auto &input) { return eachName(input.second, visit); });
}

std::vector<std::string> outputNames(const ExportedNode &node) {
  std::vector<std::string> names;
  for (const ExportedArgument &output : node.outputs)
    eachName(output, [&](const std::string &name) {
      names.push_back(name);
      return true;
    });
  return names;
}

//===- Nodes without names ------------------------------------------------===//

/// The argument as text, each name as "%".
struct Text {
  std::string operator()(std::monostate) const { return "none"; }
  std::string operator()(const TensorName &tensor) const {
    return tensor.name.empty() ? "none" : "%";
  }
  std::string operator()(const SymbolName &) const { return "%"; }
  std::string operator()(const std::vector<TensorName> &tensors) const {
    return list(tensors, *this);
  }
  std::string operator()(const std::vector<ExportedInt> &ints) const {
    return list(ints, [&](const ExportedInt &element) {
      return std::visit(*this, element);
    });
  }
  std::string operator()(bool value) const { return value ? "true" : "false"; }
  std::string operator()(int64_t value) const { return std::to_string(value); }
  std::string operator()(double value) const {
    // Exact, unlike std::to_string.
    char text[32];
    return std::string(text, std::to_chars(text, text + 32, value).ptr) + "f";
  }
  std::string operator()(const std::string &text) const {
    return "'" + text + "'";
  }
  std::string operator()(const std::vector<double> &reals) const {
    return list(reals, *this);
  }
  std::string operator()(const std::vector<bool> &bools) const {
    return list(bools, [](bool value) { return value ? "true" : "false"; });
  }
  std::string operator()(DType type) const {
    return std::string(toString(type));
  }
  std::string operator()(MemoryFormat format) const {
    return "m" + std::to_string(static_cast<int>(format));
  }
  std::string operator()(DeviceArgument) const { return "device"; }
  std::string operator()(LayoutArgument) const { return "layout"; }
  std::string operator()(const std::shared_ptr<ExportedGraph> &) const {
    return "graph";
  }
  template <typename List, typename Write>
  static std::string list(const List &elements, const Write &write) {
    std::string text = "[";
    for (const auto &element : elements) {
      text += write(element);
      text += ',';
    }
    return text + "]";
  }
};

std::string typeText(const ExportedTensor &tensor) {
  std::string text(toString(tensor.type));
  for (const ExportedSize &size : tensor.sizes) {
    text += "," + std::to_string(size.hint);
    for (const std::string &symbol : size.symbols)
      text += symbol;
  }
  return text + (tensor.requiresGrad ? "g" : "");
}

/// What a node is, but for the names that it reads and makes.
std::string describe(const ExportedGraph &graph, const ExportedNode &node) {
  std::string text = node.target;
  for (const auto &[name, argument] : node.inputs)
    text += "|" + name + "=" + std::visit(Text(), argument);
  for (const ExportedArgument &output : node.outputs)
    text += "|" + std::visit(Text(), output);
  for (const std::string &name : outputNames(node))
    if (auto found = graph.tensors.find(name); found != graph.tensors.end())
      text += "|" + typeText(found->second);
  return text;
}

//===- The period ---------------------------------------------------------===//

struct Run {
  size_t begin = 0;
  size_t period = 0;
  size_t count = 0;
};

/// The longest stretch that repeats with this period.
Run longestRun(const std::vector<int> &kinds, size_t period) {
  Run best{0, period, 0};
  for (size_t i = 0; i + period < kinds.size();) {
    size_t length = 0;
    while (i + length + period < kinds.size() &&
           kinds[i + length] == kinds[i + length + period])
      ++length;
    if (size_t count = length / period + 1; count > best.count)
      best = {i, period, count};
    i += length + 1;
  }
  return best;
}

/// The run that leaves most nodes out.
std::optional<Run> findRun(const ExportedGraph &graph) {
  std::map<std::string, int> known;
  std::vector<int> kinds;
  std::vector<size_t> last;
  std::map<size_t, size_t> distances;
  for (const ExportedNode &node : graph.nodes) {
    const int kind =
        known.try_emplace(describe(graph, node), static_cast<int>(known.size()))
            .first->second;
    if (static_cast<size_t>(kind) == last.size())
      last.push_back(kinds.size());
    else
      ++distances[kinds.size() - last[kind]];
    last[kind] = kinds.size();
    kinds.push_back(kind);
  }
  std::vector<std::pair<size_t, size_t>> byCount; // how often, distance
  for (const auto &[distance, count] : distances)
    byCount.push_back({count, distance});
  std::sort(byCount.rbegin(), byCount.rend());
  byCount.resize(std::min(byCount.size(), PeriodsTried));
  std::optional<Run> best;
  const auto left = [](const Run &run) {
    return run.period * (run.count - ShortProgram::KeptBlocks);
  };
  for (const auto &[count, period] : byCount)
    if (Run run = longestRun(kinds, period);
        run.count >= FewestBlocks && (!best || left(run) > left(*best)))
      best = run;
  return best;
}

//===- Names from block to block ------------------------------------------===//

class Shortening {
public:
  Shortening(const ExportedProgram &whole, Run run) : whole(whole) {
    result.begin = run.begin;
    result.period = run.period;
    result.count = run.count;
    result.leaves.resize(whole.leaves.size());
    for (size_t leaf = 0; leaf < whole.leaves.size(); ++leaf)
      for (const std::string &placeholder : whole.leaves[leaf].placeholders)
        leafOf[placeholder] = leaf;
    for (size_t i = 0; i < whole.graph.nodes.size(); ++i) {
      const auto names = outputNames(whole.graph.nodes[i]);
      for (size_t k = 0; k < names.size(); ++k)
        makers[names[k]] = {i, k};
    }
  }

  std::optional<ShortProgram> run() {
    for (size_t block = 0; block + 1 < result.count; ++block)
      for (size_t offset = 0; offset < result.period; ++offset)
        if (!matches(block, offset))
          return std::nullopt;
    if (!othersReadTheLastBlock() || !leavesStayInTheirBlock())
      return std::nullopt;
    write();
    return std::move(result);
  }

private:
  struct Maker {
    size_t node = 0;
    size_t output = 0;
  };

  size_t nodeAt(size_t block, size_t offset) const {
    return result.begin + block * result.period + offset;
  }
  size_t end() const { return nodeAt(result.count, 0); }
  /// The block that makes a name.
  std::optional<size_t> blockOf(const std::string &name) const {
    auto maker = makers.find(name);
    if (maker == makers.end() || maker->second.node < result.begin ||
        maker->second.node >= end())
      return std::nullopt;
    return (maker->second.node - result.begin) / result.period;
  }

  /// A node against the same of the next block, name by name.
  bool matches(size_t block, size_t offset) {
    const auto &nodes = whole.graph.nodes;
    std::vector<std::string> mine, next;
    const auto collect = [](std::vector<std::string> &names) {
      return [&names](const std::string &name) {
        names.push_back(name);
        return true;
      };
    };
    if (!eachInput(nodes[nodeAt(block, offset)], collect(mine)) ||
        !eachInput(nodes[nodeAt(block + 1, offset)], collect(next)) ||
        mine.size() != next.size())
      return false;
    for (size_t i = 0; i < mine.size(); ++i)
      if (!matches(block, mine[i], next[i]))
        return false;
    return true;
  }

  bool matches(size_t block, const std::string &mine, const std::string &next) {
    const auto from = blockOf(mine), to = blockOf(next);
    if (!from && !to)
      return mine == next || matchesLeaf(block, mine, next);
    if (!from)
      // What comes into the first block from before it.
      return block == 0 && *to == 0;
    if (!to || *to != *from + 1 || *from > block || *from + 1 < block)
      return false;
    const Maker &a = makers.at(mine), &b = makers.at(next);
    return b.node - a.node == result.period && a.output == b.output;
  }

  bool matchesLeaf(size_t block, const std::string &mine,
                   const std::string &next) {
    auto a = leafOf.find(mine), b = leafOf.find(next);
    if (a == leafOf.end() || b == leafOf.end() ||
        !sameLeaf(whole.leaves[a->second], whole.leaves[b->second]))
      return false;
    ShortProgram::Place &from = result.leaves[a->second],
                        &to = result.leaves[b->second];
    if (from.slot == None && block == 0)
      from = {slots++, 0};
    if (from.slot == None || from.block != static_cast<int>(block))
      return false;
    const ShortProgram::Place wanted{from.slot, from.block + 1};
    if (to.slot == None)
      to = wanted;
    return to.slot == wanted.slot && to.block == wanted.block;
  }

  bool sameLeaf(const ExportedLeaf &a, const ExportedLeaf &b) const {
    const auto &tensors = whole.graph.tensors;
    return a.kind == b.kind && a.persistent == b.persistent &&
           a.trainable == b.trainable && a.kind != ValueKind::Input &&
           typeText(tensors.at(a.placeholders.front())) ==
               typeText(tensors.at(b.placeholders.front()));
  }

  /// Outside of the blocks only what the last one makes may be read.
  bool othersReadTheLastBlock() const {
    const auto isLast = [&](const std::string &name) {
      const auto block = blockOf(name);
      return !block || *block + 1 == result.count;
    };
    for (size_t i = end(); i < whole.graph.nodes.size(); ++i)
      if (!eachInput(whole.graph.nodes[i], isLast))
        return false;
    return std::all_of(whole.graph.outputs.begin(), whole.graph.outputs.end(),
                       [&](const ExportedArgument &output) {
                         return eachName(output, isLast);
                       });
  }

  /// A block's leaf is read by no other block, and by nothing else.
  bool leavesStayInTheirBlock() const {
    const auto &nodes = whole.graph.nodes;
    for (size_t i = 0; i < nodes.size(); ++i) {
      const bool isInside = i >= result.begin && i < end();
      const int block =
          isInside ? static_cast<int>((i - result.begin) / result.period)
                   : None;
      const bool fits = eachInput(nodes[i], [&](const std::string &name) {
        auto leaf = leafOf.find(name);
        return leaf == leafOf.end() ||
               result.leaves[leaf->second].slot == None ||
               result.leaves[leaf->second].block == block;
      });
      // Nested graphs outside of the blocks are nobody's business here.
      if (!fits && (isInside || readsBlockLeaf(nodes[i])))
        return false;
    }
    return true;
  }
  bool readsBlockLeaf(const ExportedNode &node) const {
    bool reads = false;
    for (const auto &[name, argument] : node.inputs)
      eachName(argument, [&](const std::string &operand) {
        auto leaf = leafOf.find(operand);
        reads |=
            leaf != leafOf.end() && result.leaves[leaf->second].slot != None;
        return true;
      });
    return reads;
  }

  bool isKept(size_t block) const {
    return block + 1 < ShortProgram::KeptBlocks || block + 1 == result.count;
  }

  void write() {
    ExportedProgram &program = result.program;
    program.outputNames = whole.outputNames;
    program.graph.inputs = whole.graph.inputs;
    program.graph.outputs = whole.graph.outputs;
    program.graph.tensors = whole.graph.tensors;
    for (size_t leaf = 0; leaf < whole.leaves.size(); ++leaf)
      if (result.leaves[leaf].block == None ||
          isKept(static_cast<size_t>(result.leaves[leaf].block)))
        program.leaves.push_back(whole.leaves[leaf]);
    for (size_t i = 0; i < whole.graph.nodes.size(); ++i) {
      const bool isInside = i >= result.begin && i < end();
      const size_t block = isInside ? (i - result.begin) / result.period : 0;
      if (isInside && !isKept(block))
        continue;
      ExportedNode node = whole.graph.nodes[i];
      node.source = nodeTag(i);
      if (isInside && block + 1 == result.count)
        readBlockTwo(node);
      program.graph.nodes.push_back(std::move(node));
    }
  }

  /// The last block follows block 2.
  void readBlockTwo(ExportedNode &node) const {
    for (auto &[argument, value] : node.inputs)
      eachName(value, [&](std::string &name) {
        if (const auto block = blockOf(name);
            block && *block + 2 == result.count) {
          const Maker &maker = makers.at(name);
          const size_t back =
              (*block + 2 - ShortProgram::KeptBlocks) * result.period;
          name =
              outputNames(whole.graph.nodes[maker.node - back])[maker.output];
        }
        return true;
      });
  }

  const ExportedProgram &whole;
  ShortProgram result;
  int slots = 0;
  std::map<std::string, size_t> leafOf;
  std::map<std::string, Maker> makers;
};

} // namespace

std::string nodeTag(size_t node) { return "#" + std::to_string(node); }

int nodeOfTag(const std::string &source) {
  int node = None;
  if (source.size() > 1 && source[0] == '#')
    std::from_chars(source.data() + 1, source.data() + source.size(), node);
  return node;
}

std::optional<ShortProgram> shortenRepeats(const ExportedProgram &program) {
  const auto run = findRun(program.graph);
  if (!run)
    return std::nullopt;
  return Shortening(program, *run).run();
}

} // namespace monarch
