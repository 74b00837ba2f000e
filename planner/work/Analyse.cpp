//===- Analyse.cpp - from a joint graph to its work -----------------------===//
//
// A block is what the module paths number ("layers.3"); the ops before the
// first are the embedding, those after the last the head. Backward ops belong
// to their forward op's block. Equal blocks are one kind.
//
//===----------------------------------------------------------------------===//
#include "core/registry/Rule.h"
#include "planner/work/KernelGroups.h"
#include "planner/work/Work.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <set>

namespace monarch::planner {

double Extent::at(const BlockSplit &split) const {
  double value = size;
  if (with & Rows)
    value *= split.rows / split.context;
  if (with & Tensor)
    value /= split.tensor;
  if ((with & Sequence) && split.isSequenceParallel)
    value /= split.tensor;
  if (with & Expert)
    value /= split.expert;
  if (with & PerExpert)
    value *= split.expert;
  return value;
}

double ModelWork::parameterCount() const {
  const BlockSplit whole;
  double count = embedding.parameters(whole) + head.parameters(whole);
  for (int kind : layers)
    count += kinds[kind].parameters(whole);
  return count;
}

namespace {

constexpr int BeforeBlocks = -1;

/// "model.layers.3.mlp" -> 3; nullopt: no number in the path.
std::optional<int> blockNumber(const std::string &module) {
  for (size_t begin = 0; begin < module.size();) {
    size_t end = std::min(module.find('.', begin), module.size());
    bool isNumber = end > begin && end - begin <= 6;
    for (size_t i = begin; i < end; ++i)
      isNumber &= std::isdigit(static_cast<unsigned char>(module[i])) != 0;
    if (isNumber)
      return std::stoi(module.substr(begin, end - begin));
    begin = end + 1;
  }
  return std::nullopt;
}

class Analyser {
public:
  Analyser(const Graph &graph, const KernelStyle &style)
      : graph(graph), classes(graph, style.hasOwnModules),
        groups(graph, classes, style), hasOwnModules(style.hasOwnModules) {}

  Expected<ModelWork> run(const std::vector<int64_t> &repeats) {
    assignBlocks();
    if (blockCount == 0)
      return Error{"MP3201", ExitCode::Unsupported,
                   "the graph has no repeated blocks", "",
                   "modules of the layers are numbered, as \"layers.0\""};
    std::vector<BlockWork> blocks(blockCount + 2);
    for (size_t id = 0; id < graph.ops.size(); ++id)
      addOp(blocks, static_cast<OpId>(id));
    addParameters(blocks);
    addSaved(blocks);
    return assemble(std::move(blocks), repeats);
  }

private:
  /// Index into the blocks: 0 before, 1 .. n the numbered ones, n + 1 after.
  int blockOf(OpId op) const { return block[op]; }
  void assignBlocks();
  void addOp(std::vector<BlockWork> &blocks, OpId id);
  void addProduct(PhaseWork &work, OpId id);
  static bool merge(Product &into, const Product &from);
  int sourceNumber(OpId id);
  double groupedShare(ValueId keys) const;
  void addAttention(PhaseWork &work, const Op &op);
  void addParameters(std::vector<BlockWork> &blocks);
  void addSaved(std::vector<BlockWork> &blocks);
  ModelWork assemble(std::vector<BlockWork> blocks,
                     const std::vector<int64_t> &repeats);

  uint8_t withOf(ValueId value) const {
    if (classes.of(value) == ValueClass::Split)
      return Extent::Rows | Extent::Tensor;
    return classes.of(value) == ValueClass::Residual
               ? Extent::Rows | Extent::Sequence
               : 0;
  }
  /// Per row.
  double perRow(ValueId value, double amount) const {
    return classes.hasRows(value) ? amount / rowsOf(value) : amount;
  }
  double rowsOf(ValueId) const { return static_cast<double>(graph.unitRows); }
  bool isRowsDim(ValueId value, size_t dim) const {
    return graph.value(value).batch[dim] != 0;
  }
  static void add(std::vector<Extent> &list, double size, uint8_t with) {
    if (size == 0)
      return;
    for (Extent &entry : list)
      if (entry.with == with) {
        entry.size += size;
        return;
      }
    list.push_back({size, with});
    std::sort(list.begin(), list.end(),
              [](const Extent &a, const Extent &b) { return a.with < b.with; });
  }

  const Graph &graph;
  ValueClasses classes;
  KernelGroups groups;
  const bool hasOwnModules;
  std::vector<int> block;
  int blockCount = 0;
  /// Activations that a block has gathered already, by (block, phase, value).
  std::set<std::tuple<int, Phase, ValueId>> gathered;
  std::map<int, std::map<ValueId, int>> sources;
};

void Analyser::assignBlocks() {
  std::map<int, int> numbers;
  block.assign(graph.ops.size(), BeforeBlocks);
  OpId first = None;
  std::vector<std::optional<int>> own(graph.ops.size());
  for (size_t id = 0; id < graph.ops.size(); ++id)
    if (graph.ops[id].phase == Phase::Forward)
      if ((own[id] = blockNumber(graph.ops[id].module))) {
        numbers.try_emplace(*own[id], 0);
        if (first == None)
          first = static_cast<OpId>(id);
      }
  for (auto &[number, index] : numbers)
    index = ++blockCount;
  for (size_t id = 0; id < graph.ops.size(); ++id) {
    const Op &op = graph.ops[id];
    if (op.phase == Phase::Forward) {
      block[id] = own[id]
                      ? numbers[*own[id]]
                      : (static_cast<OpId>(id) < first ? 0 : blockCount + 1);
    } else if (op.forward != None) {
      block[id] = block[op.forward];
    } else {
      // A sum of cotangents: where its newest part comes from.
      OpId latest = 0;
      for (ValueId operand : op.operands)
        latest = std::max(latest, graph.value(operand).producer);
      block[id] = block[latest];
    }
  }
}

void Analyser::addProduct(PhaseWork &work, OpId id) {
  const Op &op = graph.op(id);
  const ValueId left = op.operands[leftOperand(op)];
  const ValueId right = op.operands[leftOperand(op) + 1];
  const ValueId result = op.results[0];
  const size_t rank = graph.value(left).shape.size();
  const WeightSplit split = classes.weightSplit(id);
  Product product;
  auto extent = [&](ValueId value, size_t dim) -> Extent {
    double size = static_cast<double>(graph.value(value).shape[dim]);
    if (!isRowsDim(value, dim))
      return {size, 0};
    return {size / rowsOf(value), Extent::Rows};
  };
  product.m = extent(left, rank - 2);
  product.k = extent(left, rank - 1);
  product.n = extent(right, rank - 1);
  product.batch = rank == 3 ? extent(left, 0) : Extent{1, 0};
  product.isExpert = split == WeightSplit::Expert;
  bool sumsRows = product.k.with & Extent::Rows;
  product.kind = sumsRows                      ? ProductKind::WeightGradient
                 : op.phase == Phase::Backward ? ProductKind::InputGradient
                                               : ProductKind::Forward;
  const bool leftSplit = classes.of(left) == ValueClass::Split;
  const bool rightSplit = classes.of(right) == ValueClass::Split;
  if (product.isExpert) {
    product.batch.with |= Extent::Expert;
    Extent &rows = sumsRows ? product.k : product.m;
    rows.with |= Extent::Rows | Extent::PerExpert | Extent::Sequence;
  } else if (rank == 3) {
    if (leftSplit || rightSplit)
      product.batch.with |= Extent::Tensor;
  } else if (sumsRows) {
    if (leftSplit)
      product.m.with |= Extent::Tensor;
    else if (rightSplit)
      product.n.with |= Extent::Tensor;
  } else if (leftSplit) {
    product.k.with |= Extent::Tensor;
    double bytes = static_cast<double>(byteCount(graph.value(result)));
    bool isColumns = split == WeightSplit::Columns;
    ValueId source =
        isColumns && op.phase == Phase::Backward ? classes.source(id) : result;
    // Gradients of one activation are added first, then reduced once.
    if (gathered.emplace(blockOf(id), Phase::Backward, source).second ||
        op.phase == Phase::Forward)
      work.reductions.push_back({perRow(result, bytes), Extent::Rows});
  } else if (classes.of(result) == ValueClass::Split) {
    product.n.with |= Extent::Tensor;
    if (gathered
            .emplace(blockOf(id),
                     op.phase == Phase::Forward ? Phase::Forward
                                                : Phase::Backward,
                     classes.root(left))
            .second)
      work.gathers.push_back(
          {perRow(left, static_cast<double>(byteCount(graph.value(left)))),
           Extent::Rows});
  }
  product.source = sourceNumber(id);
  if (hasOwnModules && rank == 2)
    for (Product &other : work.products)
      if (other.source == product.source && merge(other, product))
        return;
  work.products.push_back(product);
}

/// One product for two weights side by side.
bool Analyser::merge(Product &into, const Product &from) {
  if (into.kind != from.kind || into.isExpert || from.isExpert)
    return false;
  bool sameM = into.m == from.m, sameN = into.n == from.n,
       sameK = into.k == from.k;
  auto widen = [](Extent &a, const Extent &b) {
    if (a.with != b.with)
      return false;
    a.size += b.size;
    return true;
  };
  switch (into.kind) {
  case ProductKind::Forward:
    return sameM && sameK && widen(into.n, from.n);
  case ProductKind::InputGradient:
    return sameM && sameN && widen(into.k, from.k);
  case ProductKind::WeightGradient:
    // The weights' columns are the rows of a transposed gradient.
    if (sameN && sameK)
      return widen(into.m, from.m);
    return sameM && sameK && widen(into.n, from.n);
  }
  return false;
}

int Analyser::sourceNumber(OpId id) {
  std::map<ValueId, int> &numbers = sources[blockOf(id)];
  return numbers
      .try_emplace(classes.source(id), static_cast<int>(numbers.size()))
      .first->second;
}

/// Of repeated heads, how many are different.
double Analyser::groupedShare(ValueId keys) const {
  ValueId source = classes.root(keys);
  const OpId producer = graph.value(source).producer;
  if (producer != None && graph.op(producer).name == "aten::clone")
    source = classes.root(graph.op(producer).operands[0]);
  return std::min(1.0,
                  static_cast<double>(elementCount(graph.value(source))) /
                      static_cast<double>(elementCount(graph.value(keys))));
}

void Analyser::addAttention(PhaseWork &work, const Op &op) {
  const bool isBackward = op.name == "monarch::attention_backward";
  const size_t first = isBackward ? 1 : 0;
  const auto &q = graph.value(op.operands[first]).shape;
  const auto &k = graph.value(op.operands[first + 1]).shape;
  const auto &v = graph.value(op.operands[first + 2]).shape;
  AttentionWork attention;
  attention.heads = {static_cast<double>(q[1] * q[0]) / graph.unitRows,
                     Extent::Rows};
  if (classes.of(op.operands[first]) == ValueClass::Split)
    attention.heads.with |= Extent::Tensor;
  attention.kvHeads =
      static_cast<double>(k[1]) * groupedShare(op.operands[first + 1]);
  attention.queryDim = static_cast<double>(q[3]);
  attention.valueDim = static_cast<double>(v[3]);
  attention.sequence = static_cast<double>(q[2]);
  attention.keySequence = static_cast<double>(k[2]);
  // With a mask as well: what masks rule out is data, but for the triangle.
  attention.isCausal = true;
  work.attentions.push_back(attention);
}

void Analyser::addOp(std::vector<BlockWork> &blocks, OpId id) {
  const Op &op = graph.op(id);
  BlockWork &own = blocks[blockOf(id)];
  PhaseWork &work = op.phase == Phase::Forward ? own.forward : own.backward;
  if (groups.group(id) == id && !classes.isMergedAway(id))
    ++work.launches;
  if (isProduct(op))
    return addProduct(work, id);
  if (op.name == "monarch::attention" ||
      op.name == "monarch::attention_backward")
    return addAttention(work, op);
  if (!groups.isKernel(id) || groups.group(id) != id)
    return;
  bool hasRows = false;
  for (OpId member : groups.members(id)) {
    for (ValueId value : graph.op(member).operands)
      hasRows |= classes.hasRows(value);
    for (ValueId value : graph.op(member).results)
      hasRows |= value != None && classes.hasRows(value);
  }
  if (!hasRows)
    return;
  ++work.kernels;
  for (const KernelGroups::Access &access : groups.accesses(id))
    if (classes.hasRows(access.value))
      add(work.traffic, perRow(access.value, static_cast<double>(access.bytes)),
          withOf(access.value));
  if (op.name == "aten::index_select" && op.phase == Phase::Forward &&
      classes.hasRows(op.operands[0])) {
    double bytes = static_cast<double>(byteCount(graph.value(op.results[0])));
    Extent moved{perRow(op.results[0], bytes), Extent::Rows | Extent::Sequence};
    own.forward.dispatches.push_back(moved);
    own.backward.dispatches.push_back(moved);
  }
}

void Analyser::addParameters(std::vector<BlockWork> &blocks) {
  // Where a parameter is first read, and how that op splits it.
  std::map<ValueId, std::pair<int, WeightSplit>> home;
  for (size_t id = 0; id < graph.ops.size(); ++id) {
    const Op &op = graph.ops[id];
    if (op.phase != Phase::Forward || isViewCall(op.name))
      continue;
    for (size_t i = 0; i < op.operands.size(); ++i) {
      ValueId parameter = classes.weightOf(op.operands[i]);
      if (parameter == None)
        continue;
      WeightSplit split = classes.weightSplit(static_cast<OpId>(id));
      // The bias of a row-split product is added once, after the sum.
      if (isProduct(op) && i < leftOperand(op) && split == WeightSplit::RowsOf)
        split = WeightSplit::None;
      home.try_emplace(parameter, blockOf(static_cast<OpId>(id)), split);
    }
  }
  for (const Parameter &parameter : graph.parameters) {
    auto found = home.find(parameter.value);
    if (found == home.end())
      continue;
    BlockWork &own = blocks[found->second.first];
    double count =
        static_cast<double>(elementCount(graph.value(parameter.value)));
    switch (found->second.second) {
    case WeightSplit::None:
      own.wholeParameters += count;
      break;
    case WeightSplit::Expert:
      own.expertParameters += count;
      break;
    default:
      own.tensorParameters += count;
    }
  }
}

void Analyser::addSaved(std::vector<BlockWork> &blocks) {
  std::set<std::pair<int, ValueId>> saved;
  auto keep = [&](int home, ValueId value) {
    if (classes.hasRows(value))
      saved.emplace(home, value);
  };
  for (size_t id = 0; id < graph.ops.size(); ++id) {
    const Op &op = graph.ops[id];
    if (op.phase != Phase::Backward)
      continue;
    for (ValueId operand : op.operands) {
      ValueId value = classes.root(operand);
      OpId producer = graph.value(value).producer;
      if (producer == None || graph.op(producer).phase == Phase::Backward)
        continue;
      int home = blockOf(static_cast<OpId>(id));
      // What a fused kernel makes on its way is made again from its inputs,
      // but for masks, which are drawn once.
      if (groups.isMadeAgain(value))
        for (ValueId input : groups.inputs(groups.group(producer)))
          keep(home, input);
      else
        keep(home, value);
    }
  }
  for (auto [home, value] : saved)
    add(blocks[home].saved,
        perRow(value, static_cast<double>(byteCount(graph.value(value)))),
        withOf(value));
}

ModelWork Analyser::assemble(std::vector<BlockWork> blocks,
                             const std::vector<int64_t> &repeats) {
  ModelWork model;
  // What enters the first block: the residual stream.
  double width = 0;
  for (size_t id = 0; id < graph.ops.size() && width == 0; ++id)
    if (graph.ops[id].name == "aten::embedding" &&
        classes.hasRows(graph.ops[id].operands[1])) {
      const ValueId x = graph.ops[id].results[0];
      width = perRow(x, static_cast<double>(byteCount(graph.value(x))));
      model.vocabulary =
          static_cast<double>(graph.value(graph.ops[id].operands[0]).shape[0]);
      model.sequence = perRow(x, static_cast<double>(elementCount(
                                     graph.value(graph.ops[id].operands[1]))));
    }
  for (BlockWork &own : blocks)
    own.boundary = {width, Extent::Rows | Extent::Sequence};
  model.embedding = std::move(blocks.front());
  model.head = std::move(blocks.back());
  for (int number = 0; number < blockCount; ++number) {
    BlockWork &own = blocks[number + 1];
    auto same = std::find(model.kinds.begin(), model.kinds.end(), own);
    int kind = static_cast<int>(same - model.kinds.begin());
    if (same == model.kinds.end())
      model.kinds.push_back(std::move(own));
    int64_t times = repeats.empty() ? 1 : repeats.at(number);
    model.layers.insert(model.layers.end(), static_cast<size_t>(times), kind);
  }
  model.isTied = model.head.tensorParameters == 0;
  return model;
}

} // namespace

Expected<ModelWork> workOf(const Graph &graph, const KernelStyle &style,
                           const std::vector<int64_t> &repeats) {
  return Analyser(graph, style).run(repeats);
}

} // namespace monarch::planner
