// A value under a layout, at a stage, in a segment: from the cheapest copy
// there, else from its leaf, its clone or its home stage.
#include "planner/resolve/Resolver.h"
#include "planner/resolve/WriteMoves.h"

#include <algorithm>

namespace monarch::planner {
namespace {

bool usable(const Copy &copy, SegmentKind segment, bool reuseGathered) {
  if (copy.everywhere || copy.segment == segment)
    return true;
  return segment == SegmentKind::Backward &&
         copy.segment == SegmentKind::Forward && (copy.home || reuseGathered);
}

int64_t costOf(const std::vector<Move> &moves, const TensorStructure &structure,
               const Mesh &mesh, const OffsetTables &tables) {
  int64_t bytes = 0;
  for (const Move &move : moves)
    if (isCollective(move.kind))
      for (int64_t rank = 0; rank < mesh.size(); ++rank)
        bytes +=
            bytesSent(move, structure, mesh, tables, mesh.coordinates(rank), 1);
  return bytes;
}

} // namespace

const Copy *Resolver::findUsable(ValueId value, const Layout &layout, int stage,
                                 SegmentKind segment, bool reuseGathered) {
  const auto it = stages[stage].copies.find(value);
  if (it == stages[stage].copies.end())
    return nullptr;
  for (const Copy &copy : it->second)
    if (copy.layout == layout && usable(copy, segment, reuseGathered))
      return &copy;
  return nullptr;
}

Local Resolver::fetch(ValueId value, const Layout &layout, int stage,
                      SegmentKind segment, bool reuseGathered) {
  if (const Copy *copy =
          findUsable(value, layout, stage, segment, reuseGathered))
    return copy->local;

  const auto anyUsable = [&] {
    const std::vector<Copy> &copies = stages[stage].copies[value];
    return std::any_of(copies.begin(), copies.end(), [&](const Copy &copy) {
      return usable(copy, segment, reuseGathered);
    });
  };
  if (!anyUsable() || graph.values[value].kind == ValueKind::Input)
    materialize(value, layout, stage, segment);
  if (const Copy *copy =
          findUsable(value, layout, stage, segment, reuseGathered))
    return copy->local;

  const TensorStructure &structure = space.structure(value);
  const std::vector<Copy> copies = stages[stage].copies[value];
  const Copy *source = nullptr;
  std::vector<Move> moves;
  int64_t cost = 0;
  for (const Copy &copy : copies) {
    if (!usable(copy, segment, reuseGathered))
      continue;
    std::vector<Move> candidate = reshards.get(structure, copy.layout, layout);
    const int64_t candidateCost =
        copies.size() == 1
            ? 0
            : costOf(candidate, structure, mesh, decisions.tables);
    if (source && candidateCost >= cost)
      continue;
    source = &copy;
    moves = std::move(candidate);
    cost = candidateCost;
  }
  assert(source && "a value is fetched before it is made");

  ResolvedStep moved;
  moved.kind = ResolvedStep::Kind::Reshard;
  moved.segment = segment;
  moved.value = value;
  moved.from = source->layout;
  moved.to = layout;
  const Local from = source->local;
  open(stage, segment, None);
  const Local local = step(stage, std::move(moved), [&] {
    return writeMoves(stages[stage].writer, mesh, structure, moves, from);
  });
  stages[stage].steps.back().made = {local.value};
  stages[stage].copies[value].push_back({layout, local, segment, false, false});
  return local;
}

void Resolver::materialize(ValueId value, const Layout &layout, int stage,
                           SegmentKind segment) {
  const OpId producer = graph.values[value].producer;
  if (producer == None)
    return materializeLeaf(value, layout, stage, segment);
  if (space.isCloned(producer))
    return lowerOp(producer, stage, segment);
  transfer(value, stage, segment);
}

void Resolver::materializeLeaf(ValueId value, const Layout &layout, int stage,
                               SegmentKind segment) {
  const Value &leaf = graph.values[value];
  Role &role = program.roles[stage];
  RoleWriter &writer = stages[stage].writer;
  const Layout whole = Layout::replicated(mesh.axes.size());
  const auto shape = [&](const Layout &under) {
    return localShape(writer, space.structure(value), under);
  };
  const auto keep = [&](const Layout &under, Local local, bool everywhere) {
    stages[stage].copies[value].push_back(
        {under, local, segment, true, everywhere});
  };

  switch (leaf.kind) {
  case ValueKind::Parameter: {
    for (size_t p = 0; p < graph.parameters.size(); ++p)
      if (graph.parameters[p].value == value)
        keep(derived.home[value], parameterAt(p, stage), true);
    return;
  }
  case ValueKind::Buffer:
  case ValueKind::Constant: {
    ProgramBuffer buffer;
    buffer.constant = leaf.kind == ValueKind::Constant;
    buffer.names = {leaf.name};
    buffer.structure = space.structure(value);
    for (const Buffer &entry : graph.buffers)
      if (entry.value == value) {
        buffer.names = entry.names;
        buffer.storage = entry.storage;
      }
    for (size_t c = 0; c < graph.constants.size(); ++c)
      if (graph.constants[c] == value)
        buffer.storage = graph.constantStorage[c];
    const Local local =
        writer.make(leaf.type, shape(whole), leaf.name, Lifetime::Persistent);
    buffer.value = local.value;
    role.buffers.push_back(std::move(buffer));
    return keep(whole, local, true);
  }
  case ValueKind::Input: {
    // Read as it is wanted, straight from the batch; partial means zeros.
    Layout read = layout;
    for (AxisState &state : read.states)
      if (state.isPartial())
        state = AxisState::replicated();
    read = canonical(std::move(read));
    if (findUsable(value, read, stage, segment, true))
      return;
    Local &local = stages[stage].inputs[{value, read}];
    if (!local.defined()) {
      local = writer.make(leaf.type, shape(read), leaf.name);
      ProgramInput input;
      input.value = local.value;
      input.name = leaf.name;
      input.structure = space.structure(value);
      input.layout = read;
      input.rowDim = -1;
      for (size_t d = 0; d < leaf.shape.size(); ++d)
        if (graph.dynamicBatch ? leaf.batch[d] != 0
                               : d == 0 && leaf.shape[0] == graph.unitRows)
          input.rowDim = static_cast<int>(d);
      input.bound = syntheticBound(value);
      role.inputs.push_back(std::move(input));
    }
    return keep(read, local, false);
  }
  case ValueKind::Random: {
    Local random{role.scalars.random};
    if (!random.defined()) {
      random =
          writer.make(leaf.type, shape(whole), "random", Lifetime::Carried);
      role.scalars.random = random.value;
    }
    return keep(whole, random, true);
  }
  case ValueKind::Seed: {
    Local seed{role.scalars.seed};
    if (!seed.defined()) {
      seed = writer.make(leaf.type, shape(whole), "seed", Lifetime::Persistent);
      role.scalars.seed = seed.value;
    }
    return keep(whole, seed, true);
  }
  case ValueKind::InverseCount:
    // Made in Begin by writeCounts, at every stage that reads it.
    for (size_t c = 0; c < graph.counts.size(); ++c)
      if (graph.counts[c].inverseCount == value)
        keep(whole, inverseCounts.at({stage, c}), true);
    return;
  case ValueKind::Result:
    break;
  }
  assert(false && "not a leaf");
}

Local Resolver::parameterAt(size_t parameter, int stage) {
  Local &local = parameterLocals[stage][parameter];
  if (local.defined())
    return local;
  const Parameter &entry = graph.parameters[parameter];
  const Value &leaf = graph.values[entry.value];
  RoleWriter &writer = stages[stage].writer;
  ProgramParameter made;
  made.names = entry.names;
  made.storage = entry.storage;
  made.structure = space.structure(entry.value);
  made.layout = derived.home[entry.value];
  made.trainable = entry.trainable;
  made.owner = owner[parameter] == stage;
  local =
      writer.make(leaf.type, localShape(writer, made.structure, made.layout),
                  leaf.name, Lifetime::Persistent);
  made.value = local.value;
  program.roles[stage].parameters.push_back(std::move(made));
  return local;
}

Local Resolver::sendReceive(Local local, int from, int to,
                            SegmentKind segment) {
  RoleWriter &sender = stages[from].writer;
  RoleWriter &receiver = stages[to].writer;
  open(from, segment, None);
  const Local packed = contiguous(sender, local);
  Instruction send;
  send.kind = InstructionKind::Send;
  send.operands = {packed.value};
  send.peerStage = to;
  send.tag = nextTag;
  sender.append(send);

  // Sizes are expressions over the role's own shard table.
  std::vector<Expr> shape;
  for (const Expr &size : sender[packed].shape) {
    Expr translated = size;
    for (Expr::Term &term : translated.terms)
      for (ShardRef &ref : term.sizes) {
        const ShardRef own =
            receiver.shard(program.roles[from].shards[ref.shard]);
        ref.shard = own.shard;
      }
    shape.push_back(Expr() + translated);
  }
  open(to, segment, None);
  const Local arrived = receiver.make(sender[packed].type, shape);
  Instruction receive;
  receive.kind = InstructionKind::Receive;
  receive.results = {arrived.value};
  receive.peerStage = from;
  receive.tag = nextTag++;
  receiver.append(receive);
  return arrived;
}

// A forward value goes on in Forward, also when only a later stage's backward
// reads it (it arrives there before); one that an earlier stage's backward
// reads goes in Backward, like gradients.
void Resolver::transfer(ValueId value, int stage, SegmentKind segment) {
  const int home = derived.homeStage[value];
  const Op &producer = graph.ops[graph.values[value].producer];
  SegmentKind sent = segment;
  if (producer.phase == Phase::Forward && home < stage)
    sent = SegmentKind::Forward;
  const Copy *source = findUsable(value, derived.home[value], home, sent, true);
  assert(source && "a value is sent before it is made");
  const Local local = source->local;

  ResolvedStep moved;
  moved.kind = ResolvedStep::Kind::Transfer;
  moved.segment = sent;
  moved.value = value;
  moved.from = moved.to = derived.home[value];
  moved.peerStage = stage;
  ResolvedStep received = moved;
  received.peerStage = home;
  const Local arrived = step(home, std::move(moved), [&] {
    return step(stage, std::move(received),
                [&] { return sendReceive(local, home, stage, sent); });
  });
  stages[stage].steps.back().made = {arrived.value};
  stages[stage].copies[value].push_back(
      {derived.home[value], arrived, sent, true, false});
}

namespace {

/// Ops whose result holds the integers of an operand, moved or replaced here
/// and there: what they index stays in bounds. Sums and products do not.
bool carriesIntegers(const std::string &name) {
  static const std::set<std::string> names = {"aten::view",
                                              "aten::_unsafe_view",
                                              "aten::reshape",
                                              "aten::unsqueeze",
                                              "aten::squeeze",
                                              "aten::squeeze.dim",
                                              "aten::squeeze.dims",
                                              "aten::transpose.int",
                                              "aten::permute",
                                              "aten::t",
                                              "aten::expand",
                                              "aten::slice.Tensor",
                                              "aten::select.int",
                                              "aten::unbind.int",
                                              "aten::clone",
                                              "aten::_to_copy",
                                              "aten::copy",
                                              "aten::cat",
                                              "aten::constant_pad_nd",
                                              "aten::slice_scatter",
                                              "aten::where.self",
                                              "aten::select_scatter",
                                              "aten::split.Tensor",
                                              "aten::masked_fill.Scalar",
                                              "aten::masked_fill.Tensor",
                                              "aten::split_with_sizes"};
  return names.count(name) != 0;
}

} // namespace

// What an integer input indexes into, found by following it through views,
// slices and shifts.
int64_t Resolver::syntheticBound(ValueId input) const {
  std::set<ValueId> carries{input};
  for (const Op &op : graph.ops) {
    if (op.phase != Phase::Forward)
      break;
    const bool reads =
        std::any_of(op.operands.begin(), op.operands.end(), [&](ValueId v) {
          return v != None && carries.count(v) != 0;
        });
    if (!reads)
      continue;
    // Ids, not where bags begin.
    if (op.name == "monarch::embedding_bag" && carries.count(op.operands[1]))
      return graph.values[op.operands[0]].shape[0];
    if (op.name == "aten::embedding")
      return graph.values[op.operands[0]].shape[0];
    if (op.name == "aten::nll_loss_forward")
      return graph.values[op.operands[0]].shape.back();
    if (carriesIntegers(op.name))
      for (ValueId result : op.results)
        if (result != None && !isFloating(graph.values[result].type) &&
            graph.values[result].type != DType::Bool)
          carries.insert(result);
  }
  return 0;
}

} // namespace monarch::planner
