//===- Normalize.cpp - identities, sizes, dead ops ------------------------===//
//
// Three steps in this order: an op that gives its operand back is dropped, with
// its backward; arguments that are sizes of results become references to them;
// what no root needs is left out and ids are made dense, leaves first.
//
//===----------------------------------------------------------------------===//
#include "compiler/import/Normalize.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>

namespace monarch {

namespace {

//===- Identities ---------------------------------------------------------===//

bool sameType(const Graph &graph, ValueId a, ValueId b) {
  return graph.value(a).shape == graph.value(b).shape &&
         graph.value(a).type == graph.value(b).type;
}

const std::map<std::string, int> &identityOperands() {
  static const std::map<std::string, int> operands = {
      {"aten::detach", 0},         {"aten::alias", 0},
      {"aten::lift_fresh", 0},     {"aten::expand", 0},
      {"aten::view", 0},           {"aten::_unsafe_view", 0},
      {"aten::copy", 1},           {"aten::slice.Tensor", 0},
      {"aten::slice_backward", 0}, {"aten::slice_scatter", 1}};
  return operands;
}

/// The operand that the op gives back, None if it does something. Views of
/// equal shape, and copies into a tensor of the same shape and type, give it
/// back; of a slice that is true when nothing is cut off.
ValueId identityOf(const Graph &graph, const Op &op) {
  auto found = identityOperands().find(op.name);
  if (found == identityOperands().end() ||
      op.operands.size() <= static_cast<size_t>(found->second) ||
      op.results.size() != 1 || op.results[0] == None)
    return None;
  ValueId operand = op.operands[found->second];
  return sameType(graph, operand, op.results[0]) ? operand : None;
}

class Identities {
public:
  explicit Identities(Graph &graph) : graph(graph) {}

  void drop() {
    target.resize(graph.values.size());
    std::iota(target.begin(), target.end(), 0);
    std::vector<bool> isIdentity(graph.ops.size());
    for (size_t id = 0; id < graph.ops.size(); ++id)
      isIdentity[id] = identityOf(graph, graph.ops[id]) != None;
    // A backward op that stays keeps its forward op.
    for (size_t id = 0; id < graph.ops.size(); ++id)
      if (OpId forward = graph.ops[id].forward;
          forward != None && !isIdentity[id])
        isIdentity[forward] = false;
    for (size_t id = 0; id < graph.ops.size(); ++id) {
      Op &op = graph.ops[id];
      replace(op.operands);
      if (!isIdentity[id])
        continue;
      ValueId operand = identityOf(graph, op), result = op.results[0];
      target[result] = operand;
      // A gradient that is passed on is the gradient of both ends.
      auto &cotangents = graph.values[operand].cotangentOf;
      const auto &more = graph.value(result).cotangentOf;
      cotangents.insert(cotangents.end(), more.begin(), more.end());
    }
    for (Value &value : graph.values) {
      replace(value.cotangentOf);
      std::sort(value.cotangentOf.begin(), value.cotangentOf.end());
      value.cotangentOf.erase(
          std::unique(value.cotangentOf.begin(), value.cotangentOf.end()),
          value.cotangentOf.end());
    }
    for (Parameter &parameter : graph.parameters)
      replace(parameter.gradients);
    for (Buffer &buffer : graph.buffers)
      replace(buffer.updated);
    for (LossCount &count : graph.counts)
      replace(count.target);
    replace(graph.outputs);
    replace(graph.loss);
  }

private:
  void replace(ValueId &id) const {
    if (id != None)
      id = target[id];
  }
  void replace(std::vector<ValueId> &ids) const {
    for (ValueId &id : ids)
      replace(id);
  }

  Graph &graph;
  /// What stands for each value; ops are in order, so one step is enough.
  std::vector<ValueId> target;
};

//===- Sizes --------------------------------------------------------------===//

/// Which argument is every size of result 0.
const std::map<std::string, size_t> &sizeArguments() {
  static const std::map<std::string, size_t> arguments = {
      {"aten::view", 1},
      {"aten::reshape", 1},
      {"aten::expand", 1},
      {"aten::new_zeros", 1},
      {"aten::new_ones", 1},
      {"aten::new_full", 1},
      {"aten::new_empty", 1},
      {"aten::zeros", 0},
      {"aten::ones", 0},
      {"aten::full", 0},
      {"aten::empty.memory_format", 0},
      {"aten::slice_backward", 1},
      {"aten::select_backward", 1},
      {"aten::unfold_backward", 1},
      {"aten::diagonal_backward", 1},
      {"aten::upsample_nearest1d_backward", 2},
      {"aten::upsample_nearest2d_backward", 2},
      {"aten::upsample_bilinear2d_backward", 2},
      {"aten::upsample_bicubic2d_backward", 2}};
  return arguments;
}

/// Which argument of a factory is the type: with none it is LibTorch's default
/// at the time, which the graph must not depend on.
const std::map<std::string, size_t> &typeArguments() {
  static const std::map<std::string, size_t> arguments = {
      {"aten::arange", 1},
      {"aten::arange.start", 2},
      {"aten::arange.start_step", 3},
      {"aten::empty.memory_format", 1},
      {"aten::eye", 1},
      {"aten::eye.m", 2},
      {"aten::full", 2},
      {"aten::linspace", 3},
      {"aten::ones", 1},
      {"aten::scalar_tensor", 1},
      {"aten::zeros", 1}};
  return arguments;
}

/// Bounds of slices counted from the start, as slicing does. An end that cuts
/// nothing off stays open, whatever the size of the dim, which may be the
/// batch.
void clampSlice(const Graph &graph, Op &op, ValueId whole, size_t dimArg) {
  const auto *dim = std::get_if<int64_t>(&op.args[dimArg]);
  auto rank = static_cast<int64_t>(graph.value(whole).shape.size());
  if (dim == nullptr || rank == 0)
    return;
  int64_t axis = *dim < 0 ? *dim + rank : *dim;
  int64_t size = graph.value(whole).shape[axis];
  auto bound = [&](const Arg &arg, int64_t absent) {
    const auto *value = std::get_if<int64_t>(&arg);
    int64_t at = value != nullptr ? *value : absent;
    return std::clamp<int64_t>(at < 0 ? at + size : at, 0, size);
  };
  op.args[dimArg] = axis;
  op.args[dimArg + 1] = bound(op.args[dimArg + 1], 0);
  const int64_t end = bound(op.args[dimArg + 2], size);
  op.args[dimArg + 2] = end == size ? std::numeric_limits<int64_t>::max() : end;
}

void nameSizes(const Graph &graph, Op &op) {
  if (op.name == "aten::_unsafe_view")
    op.name = "aten::view";
  if (op.name == "aten::_reshape_alias") {
    op.name = "aten::view";
    op.args.pop_back();
  }
  // Conjugated at once: no value of the graph has a sign to be applied later.
  if (op.name == "aten::_conj")
    op.name = "aten::_conj_physical";
  if (op.name == "aten::lift_fresh_copy") {
    op.name = "aten::clone";
    op.args.push_back(std::monostate{});
  }
  // What nobody writes would differ from rank to rank.
  if (op.name == "aten::empty_like")
    op.name = "aten::zeros_like";
  if (op.name == "aten::new_empty")
    op.name = "aten::new_zeros";
  if (op.name == "aten::empty.memory_format") {
    op.name = "aten::zeros";
    op.args.pop_back();
  }
  if (op.name == "aten::split.Tensor" || op.name == "aten::unsafe_split.Tensor")
    op.name = "aten::split_with_sizes";

  if (auto found = sizeArguments().find(op.name);
      found != sizeArguments().end())
    op.args[found->second] = ResultSizes{0};
  if (auto found = typeArguments().find(op.name);
      found != typeArguments().end())
    op.args[found->second] = graph.value(op.results[0]).type;
  if (op.name == "aten::split_with_sizes") {
    int64_t dim = std::get<int64_t>(op.args[2]);
    if (dim < 0)
      dim += static_cast<int64_t>(graph.value(op.operands[0]).shape.size());
    op.args[1] = ResultsSizes{static_cast<int>(dim)};
    op.args[2] = dim;
  }
  if (op.name == "aten::embedding_dense_backward")
    op.args[2] = ResultSize{0, 0};
  if (op.name == "aten::_embedding_bag_dense_backward")
    op.args[5] = ResultSize{0, 0};
  if (op.name == "monarch::embedding_bag_backward" && op.results[0] != None)
    op.args[8] = ResultSize{0, 0};
  if (op.name == "aten::convolution_backward") {
    if (op.results[2] != None)
      op.args[3] = ResultSizes{2};
    else
      op.args[3] = std::monostate{};
  }
  if (op.name == "aten::arange")
    op.args[0] = ResultSize{0, 0};
  if (op.name == "aten::slice.Tensor")
    clampSlice(graph, op, op.operands[0], 1);
  if (op.name == "aten::slice_backward" || op.name == "aten::slice_scatter")
    clampSlice(graph, op, op.results[0], 2);
}

//===- Dead ops and dense ids ---------------------------------------------===//

class Compaction {
public:
  explicit Compaction(Graph graph) : old(std::move(graph)) {}

  Graph run() {
    markLive();
    Graph result;
    result.unitRows = old.unitRows;
    ids.assign(old.values.size(), None);
    for (size_t id = 0; id < old.values.size(); ++id)
      if (old.values[id].kind != ValueKind::Result && isKeptLeaf(id))
        keep(static_cast<ValueId>(id), result);
    std::vector<OpId> opIds(old.ops.size(), None);
    for (size_t id = 0; id < old.ops.size(); ++id) {
      if (!isLive[id])
        continue;
      opIds[id] = static_cast<OpId>(result.ops.size());
      Op op = std::move(old.ops[id]);
      translate(op.operands);
      for (ValueId &value : op.results) {
        if (value == None)
          continue;
        keep(value, result);
        value = ids[value];
        result.values[value].producer = opIds[id];
      }
      if (op.forward != None)
        op.forward = opIds[op.forward];
      result.ops.push_back(std::move(op));
    }
    for (Value &value : result.values)
      translateKnown(value.cotangentOf);
    fillTables(result);
    return result;
  }

private:
  void markLive() {
    isLive.assign(old.ops.size(), false);
    isUsed.assign(old.values.size(), false);
    std::vector<ValueId> open = old.outputs;
    open.push_back(old.loss);
    for (const Parameter &parameter : old.parameters)
      open.insert(open.end(), parameter.gradients.begin(),
                  parameter.gradients.end());
    for (const Buffer &buffer : old.buffers)
      open.push_back(buffer.updated);
    mark(std::move(open));
    // A mean's count is asked for by its use in the loss alone.
    for (const LossCount &count : old.counts)
      if (isUsed[count.inverseCount])
        mark({count.target});
  }

  void mark(std::vector<ValueId> open) {
    while (!open.empty()) {
      ValueId id = open.back();
      open.pop_back();
      if (id == None || isUsed[id])
        continue;
      isUsed[id] = true;
      OpId producer = old.value(id).producer;
      if (producer == None || isLive[producer])
        continue;
      isLive[producer] = true;
      const Op &op = old.op(producer);
      open.insert(open.end(), op.operands.begin(), op.operands.end());
      // The forward op of a backward op that computes from other values.
      if (op.forward != None)
        for (ValueId result : old.op(op.forward).results)
          open.push_back(result);
    }
  }

  /// Parameters, inputs and what is saved with the model stay, used or not.
  bool isKeptLeaf(size_t id) const {
    if (isUsed[id])
      return true;
    ValueKind kind = old.values[id].kind;
    if (kind == ValueKind::Buffer)
      return std::any_of(old.buffers.begin(), old.buffers.end(),
                         [&](const Buffer &buffer) {
                           return buffer.value == static_cast<ValueId>(id) &&
                                  buffer.persistent;
                         });
    return kind == ValueKind::Parameter || kind == ValueKind::Input;
  }

  void keep(ValueId id, Graph &result) {
    ids[id] = static_cast<ValueId>(result.values.size());
    result.values.push_back(old.values[id]);
  }
  ValueId newId(ValueId id) const { return id == None ? None : ids[id]; }
  void translate(std::vector<ValueId> &list) const {
    for (ValueId &id : list)
      id = newId(id);
  }
  void translateKnown(std::vector<ValueId> &list) const {
    translate(list);
    list.erase(std::remove(list.begin(), list.end(), None), list.end());
    std::sort(list.begin(), list.end());
  }

  void fillTables(Graph &result) {
    for (Parameter &parameter : old.parameters) {
      parameter.value = newId(parameter.value);
      translate(parameter.gradients);
      result.parameters.push_back(std::move(parameter));
    }
    for (Buffer &buffer : old.buffers) {
      if (ids[buffer.value] == None)
        continue;
      buffer.value = newId(buffer.value);
      buffer.updated = newId(buffer.updated);
      result.buffers.push_back(std::move(buffer));
    }
    for (Input &input : old.inputs)
      result.inputs.push_back({newId(input.value), std::move(input.name)});
    for (size_t i = 0; i < old.constants.size(); ++i) {
      if (ids[old.constants[i]] == None)
        continue;
      result.constants.push_back(ids[old.constants[i]]);
      result.constantStorage.push_back(std::move(old.constantStorage[i]));
    }
    for (LossCount count : old.counts) {
      if (ids[count.inverseCount] == None)
        continue;
      count.inverseCount = newId(count.inverseCount);
      count.target = newId(count.target);
      result.counts.push_back(count);
    }
    result.loss = newId(old.loss);
    result.outputs = std::move(old.outputs);
    translate(result.outputs);
  }

  Graph old;
  std::vector<bool> isLive, isUsed;
  std::vector<ValueId> ids;
};

} // namespace

Graph normalize(Graph raw) {
  Identities(raw).drop();
  for (Op &op : raw.ops)
    nameSizes(raw, op);
  return Compaction(std::move(raw)).run();
}

} // namespace monarch
