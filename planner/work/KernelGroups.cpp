//===- KernelGroups.cpp - which ops run as one kernel ---------------------===//
#include "planner/work/KernelGroups.h"

#include "core/registry/Rule.h"

#include <algorithm>
#include <map>
#include <set>

namespace monarch::planner {

namespace {

bool isAttention(const Op &op) {
  return op.name == "monarch::attention" ||
         op.name == "monarch::attention_backward";
}

/// One kernel of a library each, which only a compiler takes apart.
bool isLibraryKernel(const std::string &name) {
  static const std::set<std::string> names = {
      "aten::native_layer_norm", "aten::native_layer_norm_backward",
      "aten::_softmax",          "aten::_softmax_backward_data",
      "aten::_log_softmax",      "aten::_log_softmax_backward_data",
      "aten::nll_loss_forward",  "aten::nll_loss_backward"};
  return names.count(name) > 0;
}

/// Reads or writes by index, or sums over rows: never part of a group.
bool isAlone(const Op &op) {
  static const std::set<std::string> names = {
      "aten::embedding", "aten::embedding_dense_backward", "aten::index_select",
      "aten::gather", "aten::index.Tensor"};
  return isProduct(op) || isAttention(op) || names.count(op.name) > 0;
}

} // namespace

bool KernelGroups::isKernel(OpId id) const {
  const Op &op = graph.op(id);
  return !isViewCall(op.name) && op.name != "aten::arange" &&
         !classes.isMergedAway(id);
}

KernelGroups::KernelGroups(const Graph &graph, const ValueClasses &classes,
                           const KernelStyle &style)
    : graph(graph), classes(classes), fusion(style.fusion),
      leader(graph.ops.size()), groups(graph.ops.size()),
      hasOwnModules(style.hasOwnModules), readers(graph.values.size()) {
  for (const Op &op : graph.ops)
    if (op.phase == Phase::Forward && op.name == "aten::rsqrt" &&
        !op.module.empty())
      norms.insert(op.module);
  const size_t count = graph.ops.size();
  // Products on the longest path to each op: groups stay within one depth.
  std::vector<int> depth(count, 0);
  for (size_t id = 0; id < count; ++id) {
    leader[id] = static_cast<OpId>(id);
    const Op &op = graph.ops[id];
    for (ValueId operand : op.operands) {
      ValueId root = classes.root(operand);
      if (isKernel(static_cast<OpId>(id)))
        readers[root].push_back(static_cast<OpId>(id));
      OpId producer = graph.value(operand).producer;
      if (producer != None)
        depth[id] = std::max(
            depth[id], depth[producer] + (isAlone(graph.op(producer)) ? 1 : 0));
    }
  }
  if (fusion != Fusion::None || hasOwnModules)
    for (size_t id = 0; id < count; ++id) {
      const OpId op = static_cast<OpId>(id);
      if (!isKernel(op))
        continue;
      for (ValueId operand : graph.op(op).operands) {
        ValueId root = classes.root(operand);
        OpId producer = graph.value(root).producer;
        if (producer != None && isOneNorm(producer, op))
          join(producer, op);
        if (producer == None || !mayFuse(op) || !mayFuse(producer) ||
            graph.op(producer).phase != graph.op(op).phase ||
            depth[producer] != depth[op])
          continue;
        if (fusion == Fusion::None)
          continue;
        if (fusion == Fusion::Compiled || staysInside(producer, op, root))
          join(producer, op);
      }
    }
  joinSiblings(depth);
  for (size_t id = 0; id < count; ++id) {
    leader[id] = find(static_cast<OpId>(id));
    groups[leader[id]].push_back(static_cast<OpId>(id));
  }
}

/// Kernels of one module that read the same tensor read it once.
void KernelGroups::joinSiblings(const std::vector<int> &depth) {
  if (fusion == Fusion::None || !(hasOwnModules || fusion == Fusion::Compiled))
    return;
  for (const std::vector<OpId> &list : readers)
    for (size_t i = 1; i < list.size(); ++i)
      for (size_t j = 0; j < i; ++j) {
        const OpId a = list[j], b = list[i];
        if (mayFuse(a) && mayFuse(b) && depth[a] == depth[b] &&
            graph.op(a).phase == graph.op(b).phase && isWide(a) && isWide(b) &&
            homeModule(a) == homeModule(b) && !homeModule(a).empty())
          join(a, b);
      }
}

/// The module whose forward, or its gradient, this op is part of.
std::string KernelGroups::homeModule(OpId id) const {
  const Op &op = graph.op(id);
  return op.forward == None ? op.module : graph.op(op.forward).module;
}

/// Both are parts of one norm, which the target runs as one kernel.
bool KernelGroups::isOneNorm(OpId producer, OpId id) const {
  const Op &op = graph.op(id), &from = graph.op(producer);
  if (!hasOwnModules || !isKernel(producer) || op.phase != from.phase)
    return false;
  auto home = [&](OpId each) {
    std::string module = homeModule(each);
    return norms.count(module) ? module : std::string();
  };
  // A sum of gradients belongs to the norm if all of its parts do.
  if (op.phase == Phase::Backward && op.forward == None) {
    std::string common = home(producer);
    for (ValueId operand : op.operands) {
      OpId other = graph.value(classes.root(operand)).producer;
      if (other == None || home(other) != common ||
          graph.op(other).phase != op.phase)
        return false;
    }
    return !common.empty();
  }
  return !home(id).empty() && home(id) == home(producer);
}

/// A hand-fused kernel keeps nothing that one of another module wants.
bool KernelGroups::staysInside(OpId producer, OpId reader,
                               ValueId value) const {
  const Op &own = graph.op(producer);
  for (OpId other : readers[value]) {
    const Op &op = graph.op(other);
    bool isSame = !own.module.empty() && op.module == own.module;
    if (other != reader && op.phase == own.phase && !isSame)
      return false;
  }
  return true;
}

OpId KernelGroups::find(OpId op) const {
  while (leader[op] != op)
    op = leader[op];
  return op;
}

void KernelGroups::join(OpId a, OpId b) {
  a = find(a);
  b = find(b);
  leader[std::max(a, b)] = std::min(a, b);
}

bool KernelGroups::isWide(OpId op) const {
  for (ValueId result : graph.op(op).results)
    if (result != None && classes.hasRows(result))
      return true;
  return false;
}

bool KernelGroups::mayFuse(OpId id) const {
  const Op &op = graph.op(id);
  if (!isKernel(id) || isAlone(op))
    return false;
  // Sums over rows (gradients of biases and norms) are kernels of their own
  // but under a compiler.
  if (fusion == Fusion::Local && (isLibraryKernel(op.name) || !isWide(id)))
    return false;
  return true;
}

std::vector<KernelGroups::Access> KernelGroups::accesses(OpId first) const {
  std::vector<Access> found;
  const std::vector<OpId> &ops = groups[first];
  if (ops.size() == 1) {
    // The registry knows what a single op reads: lookups touch few rows.
    const Op &op = graph.op(first);
    if (op.name == "aten::embedding" || op.name == "aten::index_select" ||
        op.name == "aten::gather") {
      found.push_back(
          {op.results[0], 2 * byteCount(graph.value(op.results[0]))});
      return found;
    }
  }
  std::map<ValueId, int64_t> read;
  std::set<ValueId> written;
  std::set<OpId> own(ops.begin(), ops.end());
  for (OpId id : ops) {
    for (ValueId operand : graph.op(id).operands) {
      ValueId root = classes.root(operand);
      OpId producer = graph.value(root).producer;
      if (producer != None && own.count(producer))
        continue;
      if (graph.op(id).phase == Phase::Backward && isMadeAgain(root)) {
        for (ValueId input : inputs(leader[producer]))
          read.try_emplace(input, byteCount(graph.value(input)));
        continue;
      }
      // A broadcast operand is read once, a slice only where it lies.
      int64_t bytes = std::min(byteCount(graph.value(operand)),
                               byteCount(graph.value(root)));
      // The gradients of scale and shift take a pass of their own.
      if (graph.op(id).name == "aten::native_layer_norm_backward")
        bytes *= 2;
      int64_t &most = read[root];
      most = ops.size() == 1 ? most + bytes : std::max(most, bytes);
    }
    for (ValueId result : graph.op(id).results) {
      if (result == None)
        continue;
      bool isSeen = readers[result].empty() || !isMadeAgain(result);
      for (OpId reader : readers[result])
        isSeen |=
            !own.count(reader) && graph.op(reader).phase == graph.op(id).phase;
      // What only its own group reads.
      if (isSeen && !readers[result].empty() && !isMadeAgain(result)) {
        isSeen = false;
        for (OpId reader : readers[result])
          isSeen |= !own.count(reader);
      }
      if (isSeen || ops.size() == 1)
        written.insert(result);
    }
  }
  for (auto [value, bytes] : read)
    found.push_back({value, bytes});
  for (ValueId value : written)
    found.push_back({value, byteCount(graph.value(value))});
  return found;
}

std::vector<ValueId> KernelGroups::inputs(OpId first) const {
  std::set<ValueId> found;
  std::set<OpId> own(groups[first].begin(), groups[first].end());
  for (OpId id : groups[first])
    for (ValueId operand : graph.op(id).operands) {
      ValueId root = classes.root(operand);
      OpId producer = graph.value(root).producer;
      if (producer == None || !own.count(producer))
        found.insert(root);
    }
  return {found.begin(), found.end()};
}

bool KernelGroups::isMadeAgain(ValueId value) const {
  return isInternal(value) && graph.value(value).type != DType::Bool;
}

bool KernelGroups::isInternal(ValueId value) const {
  OpId producer = graph.value(value).producer;
  if (producer == None || graph.op(producer).phase == Phase::Backward ||
      groups[leader[producer]].size() < 2)
    return false;
  for (OpId reader : readers[value])
    if (graph.op(reader).phase == Phase::Forward &&
        leader[reader] != leader[producer])
      return false;
  return true;
}

} // namespace monarch::planner
