//===- LengthenRepeats.cpp - the whole graph from four blocks -------------===//
//
// Each op of the captured graph belongs to a block, by the tag of its node, or
// to what lies before or after them; its backward ops go with it. The second
// block is written once for each block left out, its operands counted from the
// block that is written.
//
//===----------------------------------------------------------------------===//
#include "compiler/import/RepeatedNodes.h"

#include <algorithm>
#include <array>

namespace monarch {

namespace {

constexpr int Kept = static_cast<int>(ShortProgram::KeptBlocks);
constexpr int LastKept = Kept - 1;
constexpr int Before = -1; // of the first block
constexpr int After = Kept;

/// Where a value comes from: a result of the `index`-th op of a block, a leaf
/// of a block, or (block == None) neither.
struct Origin {
  int block = None;
  Phase phase = Phase::Forward;
  int index = 0;
  int result = 0;
  int slot = None;
  auto operator<=>(const Origin &) const = default;
};

class Lengthening {
public:
  Lengthening(const Graph &graph, const ShortProgram &shortened,
              const ExportedProgram &whole)
      : graph(graph), shortened(shortened), whole(whole) {}

  std::optional<Graph> run() {
    if (!divide() || !findLeaves())
      return std::nullopt;
    findOrigins();
    if (!blocksAreAlike() || !readsReachNeighbours())
      return std::nullopt;
    result.unitRows = graph.unitRows;
    result.dynamicBatch = graph.dynamicBatch;
    result.separable = graph.separable;
    writeLeaves();
    writeOps();
    writeTables();
    return std::move(result);
  }

private:
  using Ops = std::array<std::vector<OpId>, Kept>;
  static size_t at(Phase phase) { return phase == Phase::Forward ? 0 : 1; }

  //===- What belongs where -----------------------------------------------===//

  int blockOfNode(int node) const {
    if (node == None)
      return After; // the loss
    const auto index = static_cast<size_t>(node);
    if (index < shortened.begin)
      return Before;
    const size_t block = (index - shortened.begin) / shortened.period;
    if (block >= shortened.count)
      return After;
    return block + 1 == shortened.count ? LastKept : static_cast<int>(block);
  }

  /// Forward ops run through the blocks upwards, backward ops downwards; sums
  /// of cotangents go with the op before them.
  bool divide() {
    blocks.resize(graph.ops.size());
    int current = Before;
    bool isBackward = false;
    for (size_t id = 0; id < graph.ops.size(); ++id) {
      const Op &op = graph.ops[id];
      if (op.phase == Phase::Backward && !isBackward) {
        isBackward = true;
        current = After;
      }
      int block = current;
      if (!isBackward)
        block = blockOfNode(nodeOfTag(op.source));
      else if (op.forward != None)
        block = blocks[op.forward];
      if (isBackward ? block > current : block < current)
        return false;
      current = blocks[id] = block;
      if (block != Before && block != After)
        ops[at(op.phase)][block].push_back(static_cast<OpId>(id));
    }
    return true;
  }

  bool findLeaves() {
    std::map<std::pair<ValueKind, std::string>, ValueId> byName;
    for (size_t id = 0; id < graph.values.size(); ++id)
      if (const Value &value = graph.values[id];
          value.kind != ValueKind::Result)
        byName[{value.kind, value.name}] = static_cast<ValueId>(id);
    captured.assign(whole.leaves.size(), None);
    leafIn.assign(shortened.count, {});
    for (size_t leaf = 0; leaf < whole.leaves.size(); ++leaf) {
      const auto &place = shortened.leaves[leaf];
      if (place.block != None)
        leafIn[place.block][place.slot] = leaf;
      auto found = byName.find(
          {whole.leaves[leaf].kind, whole.leaves[leaf].names.front()});
      if (found != byName.end())
        captured[leaf] = found->second;
    }
    // A leaf that nothing reads may have been dropped; then everywhere.
    for (size_t leaf = 0; leaf < whole.leaves.size(); ++leaf) {
      const auto &place = shortened.leaves[leaf];
      if (place.block == None)
        continue;
      const ValueId second = captured[leafIn[1].at(place.slot)];
      const bool isKept = place.block < LastKept ||
                          place.block + 1 == static_cast<int>(shortened.count);
      if (isKept && (captured[leaf] == None) != (second == None))
        return false;
    }
    return true;
  }

  void findOrigins() {
    origins.assign(graph.values.size(), {});
    for (size_t phase = 0; phase < 2; ++phase)
      for (int block = 0; block < Kept; ++block)
        for (size_t i = 0; i < ops[phase][block].size(); ++i) {
          const Op &op = graph.op(ops[phase][block][i]);
          for (size_t k = 0; k < op.results.size(); ++k)
            if (op.results[k] != None)
              origins[op.results[k]] = {block, op.phase, static_cast<int>(i),
                                        static_cast<int>(k), None};
        }
    for (size_t leaf = 0; leaf < whole.leaves.size(); ++leaf)
      if (const auto &place = shortened.leaves[leaf];
          place.block != None && captured[leaf] != None)
        origins[captured[leaf]] = {place.block < LastKept ? place.block
                                                          : LastKept,
                                   Phase::Forward, 0, 0, place.slot};
  }

  //===- The step from block to block -------------------------------------===//

  /// The number of a stream follows the operand that holds the randomness.
  bool isStream(const Op &op, size_t argument) const {
    const auto *before = argument == 0
                             ? nullptr
                             : std::get_if<OperandArg>(&op.args[argument - 1]);
    return before && std::holds_alternative<int64_t>(op.args[argument]) &&
           graph.value(op.operands[before->index]).kind == ValueKind::Random;
  }

  bool sameArgs(const Op &a, const Op &b) {
    if (a.args.size() != b.args.size())
      return false;
    for (size_t i = 0; i < a.args.size(); ++i) {
      if (isStream(a, i) && isStream(b, i)) {
        const int64_t step =
            std::get<int64_t>(b.args[i]) - std::get<int64_t>(a.args[i]);
        if (streams && *streams != step)
          return false;
        streams = step;
      } else if (!(a.args[i] == b.args[i])) {
        return false;
      }
    }
    return true;
  }

  bool sameType(ValueId a, ValueId b) const {
    const Value &left = graph.value(a), &right = graph.value(b);
    return left.kind == right.kind && left.type == right.type &&
           left.shape == right.shape && left.batch == right.batch;
  }

  /// What block 1 reads and what block 2 reads in its place.
  bool sameStep(ValueId a, ValueId b) const {
    if (a == None || b == None)
      return a == b;
    Origin next = origins[a];
    if (next.block == None)
      return a == b;
    ++next.block;
    return next == origins[b] && sameType(a, b);
  }
  bool sameStep(const std::vector<ValueId> &a,
                const std::vector<ValueId> &b) const {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                      [&](ValueId x, ValueId y) { return sameStep(x, y); });
  }

  /// Ops of neighbours may be referred to by their number: these agree.
  bool sameList(Phase phase, int a, int b) {
    const auto &left = ops[at(phase)][a], &right = ops[at(phase)][b];
    return std::equal(left.begin(), left.end(), right.begin(), right.end(),
                      [&](OpId x, OpId y) {
                        return graph.op(x).name == graph.op(y).name &&
                               sameArgs(graph.op(x), graph.op(y));
                      });
  }

  bool sameWiring(Phase phase) {
    const auto &left = ops[at(phase)][1], &right = ops[at(phase)][2];
    for (size_t i = 0; i < left.size(); ++i) {
      const Op &a = graph.op(left[i]), &b = graph.op(right[i]);
      if (!sameStep(a.operands, b.operands) || !sameStep(a.results, b.results))
        return false;
      for (size_t k = 0; k < a.results.size(); ++k)
        if (a.results[k] != None &&
            !sameStep(graph.value(a.results[k]).cotangentOf,
                      graph.value(b.results[k]).cotangentOf))
          return false;
      if (a.forward != None &&
          !sameStep(graph.op(a.forward).results, graph.op(b.forward).results))
        return false;
    }
    return true;
  }

  bool blocksAreAlike() {
    // The backward of the first block ends where no gradient is needed.
    if (!sameList(Phase::Forward, 0, 1) || !sameList(Phase::Forward, 1, 2) ||
        !sameList(Phase::Forward, 2, 3) || !sameList(Phase::Backward, 1, 2) ||
        !sameList(Phase::Backward, 2, 3) || !sameWiring(Phase::Forward) ||
        !sameWiring(Phase::Backward))
      return false;
    // Parameters: uses in their own block alone, or outside of all.
    for (const Parameter &parameter : graph.parameters)
      for (ValueId gradient : parameter.gradients)
        if (origins[gradient].block != origins[parameter.value].block)
          return false;
    for (const Buffer &buffer : graph.buffers)
      if (buffer.updated != None &&
          origins[buffer.updated].block != origins[buffer.value].block)
        return false;
    return true;
  }

  /// Blocks read their neighbours, what is around them the nearest block.
  bool readsReachNeighbours() const {
    const auto reaches = [&](int block, ValueId value) {
      if (value == None || origins[value].block == None)
        return true;
      const int other = origins[value].block;
      return block == Before  ? other == 0
             : block == After ? other == LastKept
                              : std::abs(block - other) <= 1;
    };
    for (size_t id = 0; id < graph.ops.size(); ++id) {
      const Op &op = graph.ops[id];
      for (ValueId operand : op.operands)
        if (!reaches(blocks[id], operand))
          return false;
      for (ValueId value : op.results)
        if (value != None)
          for (ValueId primal : graph.value(value).cotangentOf)
            if (!reaches(blocks[id], primal))
              return false;
    }
    return std::all_of(graph.outputs.begin(), graph.outputs.end(),
                       [&](ValueId value) { return reaches(After, value); });
  }

  //===- Writing ----------------------------------------------------------===//

  /// An op is written for a block of the whole; None: it lies in none.
  struct Written {
    OpId op;
    int block; // kept
    int target;
  };

  int64_t leftOut() const {
    return static_cast<int64_t>(shortened.count) - Kept;
  }
  int lastCopy() const { return static_cast<int>(shortened.count) - 3; }
  /// The captured block that stands for this block of the whole.
  int sourceOf(int target) const {
    const int count = static_cast<int>(shortened.count);
    return target < 2            ? target
           : target >= count - 2 ? target - count + Kept
                                 : 1;
  }
  int targetOf(int kept) const {
    return static_cast<int>(shortened.keptBlock(static_cast<size_t>(kept)));
  }

  ValueId translate(ValueId value, int block, int target) const {
    if (value == None)
      return None;
    const Origin &origin = origins[value];
    if (origin.block == None)
      return newIds.at({value, None});
    // Seen from around the blocks, the nearest one is meant.
    const int from = block == Before || block == After
                         ? targetOf(origin.block)
                         : target + origin.block - block;
    if (origin.slot != None)
      return newLeaves.at(leafIn[from].at(origin.slot));
    const Op &op =
        graph.op(ops[at(origin.phase)][sourceOf(from)][origin.index]);
    return newIds.at({op.results[origin.result], from});
  }
  std::vector<ValueId> translate(const std::vector<ValueId> &values, int block,
                                 int target) const {
    std::vector<ValueId> list;
    for (ValueId value : values)
      list.push_back(translate(value, block, target));
    return list;
  }

  ValueId addValue(const Value &value) {
    result.values.push_back(value);
    return static_cast<ValueId>(result.values.size() - 1);
  }

  void addLeaf(size_t leaf) {
    const auto &place = shortened.leaves[leaf];
    ValueId origin = captured[leaf];
    if (origin == None && place.block != None)
      origin = captured[leafIn[1].at(place.slot)];
    if (origin == None)
      return;
    Value value = graph.value(origin);
    value.name = whole.leaves[leaf].names.front();
    const ValueId id = addValue(value);
    newLeaves[leaf] = id;
    if (place.block == None)
      newIds[{origin, None}] = id;
  }

  /// In the order of the file; what capture added stays before or behind.
  void writeLeaves() {
    std::map<ValueId, size_t> known;
    for (size_t leaf = 0; leaf < captured.size(); ++leaf)
      if (captured[leaf] != None)
        known[captured[leaf]] = leaf;
    bool isWritten = false;
    for (size_t id = 0; id < graph.values.size(); ++id) {
      const auto value = static_cast<ValueId>(id);
      if (graph.values[id].kind == ValueKind::Result)
        continue;
      if (known.count(value) == 0) {
        newIds[{value, None}] = addValue(graph.values[id]);
      } else if (!isWritten) {
        isWritten = true;
        for (size_t leaf = 0; leaf < whole.leaves.size(); ++leaf)
          addLeaf(leaf);
      }
    }
  }

  void writeOps() {
    std::vector<Written> order;
    const auto addRun = [&](size_t &id, int block, Phase phase) {
      for (; id < graph.ops.size() && blocks[id] == block &&
             graph.ops[id].phase == phase;
           ++id)
        order.push_back(
            {static_cast<OpId>(id), block,
             block == Before || block == After ? None : targetOf(block)});
    };
    const auto addCopy = [&](Phase phase, int target) {
      for (OpId op : ops[at(phase)][1])
        order.push_back({op, 1, target});
    };
    size_t id = 0;
    for (int block = Before; block <= After; ++block) {
      addRun(id, block, Phase::Forward);
      for (int target = 2; block == 1 && target <= lastCopy(); ++target)
        addCopy(Phase::Forward, target);
    }
    for (int block = After; block >= Before; --block) {
      for (int target = lastCopy(); block == 1 && target >= 2; --target)
        addCopy(Phase::Backward, target);
      addRun(id, block, Phase::Backward);
    }
    for (const Written &written : order)
      writeOp(written);
    writeCotangents(order);
  }

  /// They name forward values, all of which are known now; the seed has one.
  void writeCotangents(const std::vector<Written> &order) {
    const auto write = [&](ValueId value, int block, int target) {
      auto &primals = result.values[newIds.at({value, target})].cotangentOf;
      primals = translate(graph.value(value).cotangentOf, block, target);
      std::sort(primals.begin(), primals.end());
    };
    for (const Written &written : order)
      for (ValueId value : graph.op(written.op).results)
        if (value != None)
          write(value, written.block, written.target);
    for (size_t id = 0; id < graph.values.size(); ++id)
      if (const Value &value = graph.values[id];
          value.kind != ValueKind::Result && !value.cotangentOf.empty())
        write(static_cast<ValueId>(id), After, None);
  }

  void writeOp(const Written &written) {
    const auto [id, block, target] = written;
    Op op = graph.op(id);
    op.operands = translate(op.operands, block, target);
    const OpId newOp = static_cast<OpId>(result.ops.size());
    for (ValueId &value : op.results) {
      if (value == None)
        continue;
      const ValueId newId = addValue(graph.value(value));
      newIds[{value, target}] = newId;
      value = newId;
      result.values[newId].producer = newOp;
    }
    if (op.forward != None)
      op.forward = newOps.at({op.forward, target});
    for (size_t i = 0; i < op.args.size(); ++i)
      if (isStream(graph.op(id), i))
        std::get<int64_t>(op.args[i]) +=
            streams.value_or(0) * streamSteps(block, target);
    if (int node = nodeOfTag(op.source); node != None) {
      if (target != None)
        node = static_cast<int>(shortened.begin) +
               target * static_cast<int>(shortened.period) +
               (node - static_cast<int>(shortened.begin)) %
                   static_cast<int>(shortened.period);
      op.module = whole.graph.nodes[node].module;
      op.source = whole.graph.nodes[node].source;
    }
    newOps[{id, target}] = newOp;
    result.ops.push_back(std::move(op));
  }

  /// Blocks between where an op was captured and where it is written.
  int64_t streamSteps(int block, int target) const {
    return block == Before ? 0 : block == After ? leftOut() : target - block;
  }

  void writeTables() {
    std::map<ValueId, const Parameter *> parameters;
    for (const Parameter &parameter : graph.parameters)
      parameters[parameter.value] = &parameter;
    std::map<ValueId, const Buffer *> buffers;
    for (const Buffer &buffer : graph.buffers)
      buffers[buffer.value] = &buffer;
    for (const auto &[leaf, id] : newLeaves) {
      const ExportedLeaf &from = whole.leaves[leaf];
      const auto &place = shortened.leaves[leaf];
      const int target = place.block;
      const int block = target == None ? After : sourceOf(target);
      const ValueId origin =
          target == None ? captured[leaf]
                         : captured[leafIn[sourceBlock(target)].at(place.slot)];
      if (from.kind == ValueKind::Parameter) {
        const Parameter &parameter = *parameters.at(origin);
        result.parameters.push_back(
            {id, from.names, parameter.trainable, from.storage,
             translate(parameter.gradients, block, target)});
      } else if (from.kind == ValueKind::Buffer) {
        const Buffer &buffer = *buffers.at(origin);
        result.buffers.push_back({id, from.names, from.storage,
                                  translate(buffer.updated, block, target),
                                  from.persistent});
      } else if (from.kind == ValueKind::Constant) {
        result.constants.push_back(id);
        result.constantStorage.push_back(from.storage);
      }
    }
    for (const Input &input : graph.inputs)
      result.inputs.push_back(
          {translate(input.value, After, None), input.name});
    for (LossCount count : graph.counts) {
      count.inverseCount = translate(count.inverseCount, After, None);
      count.target = translate(count.target, After, None);
      result.counts.push_back(count);
    }
    result.loss = translate(graph.loss, After, None);
    result.outputs = translate(graph.outputs, After, None);
  }

  /// The block of the whole whose leaves were captured for this one.
  int sourceBlock(int target) const {
    const int kept = sourceOf(target);
    return kept < LastKept ? kept : static_cast<int>(shortened.count) - 1;
  }

  const Graph &graph;
  const ShortProgram &shortened;
  const ExportedProgram &whole;
  Graph result;
  /// Per op: Before, a kept block, After.
  std::vector<int> blocks;
  std::array<Ops, 2> ops;
  std::vector<Origin> origins;
  /// Per leaf of the whole its value in the captured graph.
  std::vector<ValueId> captured;
  /// Per block of the whole: slot -> leaf.
  std::vector<std::map<int, size_t>> leafIn;
  /// From one block to the next the streams' numbers grow by this.
  std::optional<int64_t> streams;
  /// By the captured value or op, and the block of the whole.
  std::map<std::pair<ValueId, int>, ValueId> newIds;
  std::map<std::pair<OpId, int>, OpId> newOps;
  std::map<size_t, ValueId> newLeaves;
};

} // namespace

std::optional<Graph> lengthenRepeats(const Graph &graph,
                                     const ShortProgram &shortened,
                                     const ExportedProgram &whole) {
  return Lengthening(graph, shortened, whole).run();
}

} // namespace monarch
