//===- Programs.cpp - hand-written programs -------------------------------===//
//
// See Programs.h.
//
//===----------------------------------------------------------------------===//
#include "test/unit/runtime/Programs.h"

#include <map>
#include <set>

namespace monarch::test {

namespace {

constexpr int dataAxis = 0;
constexpr int tensorAxis = 1;

/// Writes one role; values are made where they are written.
struct Writer {
  Program &program;
  Role &role;
  DType type;
  std::vector<Instruction> *target = nullptr;

  Expr sizeOf(const DimStructure &structure, int dim, const Layout &layout) {
    Shard shard = shardOf(structure, dim, layout);
    for (size_t i = 0; i < role.shards.size(); ++i)
      if (role.shards[i] == shard)
        return Expr::size({static_cast<int>(i)});
    role.shards.push_back(shard);
    return Expr::size({static_cast<int>(role.shards.size()) - 1});
  }
  std::vector<Expr> shapeOf(const TensorStructure &structure,
                            const Layout &layout) {
    std::vector<Expr> shape;
    for (size_t dim = 0; dim < structure.size(); ++dim)
      shape.push_back(sizeOf(structure[dim], static_cast<int>(dim), layout));
    return shape;
  }
  int32_t make(std::vector<Expr> shape, std::string name,
               Lifetime lifetime = Lifetime::Local, int32_t aliasOf = None) {
    role.values.push_back(
        {type, std::move(shape), lifetime, aliasOf, std::move(name)});
    return static_cast<int32_t>(role.values.size()) - 1;
  }
  const std::vector<Expr> &shape(int32_t id) const {
    return role.values[id].shape;
  }

  int32_t call(std::string op, std::vector<int32_t> operands,
               std::vector<CallArg> args, std::vector<Expr> shape,
               std::string name, Lifetime lifetime = Lifetime::Local,
               int32_t aliasOf = None) {
    int32_t result = make(std::move(shape), std::move(name), lifetime, aliasOf);
    append(InstructionKind::Call, std::move(op), std::move(operands), {result},
           std::move(args));
    return result;
  }
  void callInPlace(std::string op, std::vector<int32_t> operands,
                   std::vector<CallArg> args) {
    append(InstructionKind::Call, std::move(op), std::move(operands), {None},
           std::move(args));
  }
  Instruction &append(InstructionKind kind, std::string name,
                      std::vector<int32_t> operands,
                      std::vector<int32_t> results,
                      std::vector<CallArg> args = {}) {
    Instruction instruction;
    instruction.kind = kind;
    instruction.name = std::move(name);
    instruction.operands = std::move(operands);
    instruction.results = std::move(results);
    instruction.args = std::move(args);
    target->push_back(std::move(instruction));
    return target->back();
  }
  int32_t transposed(int32_t matrix) {
    return call("aten::t", {matrix}, {OperandArg{0}},
                {shape(matrix)[1], shape(matrix)[0]}, "transposed",
                Lifetime::Local, matrix);
  }
  int32_t product(int32_t a, int32_t b, std::string name,
                  Lifetime lifetime = Lifetime::Local) {
    return call("aten::mm", {a, b}, {OperandArg{0}, OperandArg{1}},
                {shape(a)[0], shape(b)[1]}, std::move(name), lifetime);
  }
  void addTo(int32_t sum, int32_t term) {
    callInPlace("aten::add_.Tensor", {sum, term},
                {OperandArg{0}, OperandArg{1}, Expr::constant(1)});
  }
  int32_t sumOfSquares(int32_t tensor, std::string name) {
    int32_t squares =
        call("aten::mul.Tensor", {tensor, tensor},
             {OperandArg{0}, OperandArg{1}}, shape(tensor), "squares");
    return call("aten::sum", {squares}, {OperandArg{0}, std::monostate()}, {},
                std::move(name));
  }
  void allReduce(int32_t tensor, std::vector<int> axes) {
    std::erase_if(axes,
                  [&](int axis) { return program.mesh.axes[axis].size == 1; });
    if (!axes.empty())
      append(InstructionKind::AllReduce, "sum", {tensor}, {}).axes = axes;
  }
  void send(int32_t tensor, int stage, int64_t tag) {
    Instruction &send = append(InstructionKind::Send, "", {tensor}, {});
    send.peerStage = stage;
    send.tag = tag;
  }
  int32_t receive(std::vector<Expr> shape, int stage, int64_t tag,
                  std::string name, Lifetime lifetime = Lifetime::Local) {
    int32_t result = make(std::move(shape), std::move(name), lifetime);
    Instruction &receive = append(InstructionKind::Receive, "", {}, {result});
    receive.peerStage = stage;
    receive.tag = tag;
    return result;
  }
  /// Elements of each member's block of w1 along the data axis.
  std::vector<Expr> blockSizes(const TensorStructure &structure,
                               const Layout &layout) {
    std::vector<Expr> sizes;
    std::vector<Expr> shape = shapeOf(structure, layout);
    for (int64_t peer = 0; peer < program.mesh.axes[dataAxis].size; ++peer) {
      ShardRef rows = shape[0].terms[0].sizes[0];
      rows.peerAxis = dataAxis;
      rows.peer = peer;
      sizes.push_back(Expr::size(rows) * shape[1]);
    }
    return sizes;
  }
};

/// Frees each value after the last instruction that reads it: local ones (and
/// inputs) in each segment, saved ones with the unit.
void insertFrees(Role &role) {
  using Place = std::pair<size_t, size_t>;
  std::map<Place, std::set<int32_t>> freedAfter;
  std::map<int32_t, Place> lastOfUnit;
  for (size_t s = 0; s < role.segments.size(); ++s) {
    std::map<int32_t, size_t> lastHere;
    const auto &instructions = role.segments[s].instructions;
    for (size_t i = 0; i < instructions.size(); ++i) {
      auto see = [&](int32_t id) {
        if (id == None)
          return;
        lastHere[id] = i;
        lastOfUnit[id] = {s, i};
      };
      for (int32_t id : instructions[i].operands)
        see(id);
      for (int32_t id : instructions[i].results)
        see(id);
    }
    for (auto [id, i] : lastHere)
      if (role.values[id].lifetime == Lifetime::Local)
        freedAfter[{s, i}].insert(id);
  }
  for (auto [id, place] : lastOfUnit)
    if (role.values[id].lifetime == Lifetime::Saved)
      freedAfter[place].insert(id);
  for (size_t s = 0; s < role.segments.size(); ++s) {
    std::vector<Instruction> instructions;
    for (size_t i = 0; i < role.segments[s].instructions.size(); ++i) {
      instructions.push_back(role.segments[s].instructions[i]);
      auto freed = freedAfter.find({s, i});
      if (freed == freedAfter.end())
        continue;
      Instruction free;
      free.kind = InstructionKind::Free;
      free.operands.assign(freed->second.begin(), freed->second.end());
      instructions.push_back(free);
    }
    role.segments[s].instructions = instructions;
  }
}

/// Warm-up forwards, then one forward and one backward in turn.
std::vector<Slot> oneForwardOneBackward(int stage, int stages, int64_t units) {
  std::vector<Slot> slots;
  int64_t warmUp = std::min<int64_t>(stages - 1 - stage, units);
  int64_t forward = 0, backward = 0;
  while (forward < warmUp)
    slots.push_back({SegmentKind::Forward, forward++});
  while (backward < units) {
    if (forward < units)
      slots.push_back({SegmentKind::Forward, forward++});
    slots.push_back({SegmentKind::Backward, backward++});
  }
  slots.push_back({SegmentKind::Step, -1});
  return slots;
}

struct Layouts {
  Layout replicated, columns, rows, restOfW1;
};

Layouts layoutsOf(const TwoLayers &options, const Mesh &mesh) {
  Layouts layouts;
  layouts.replicated = Layout::replicated(mesh.axes.size());
  layouts.columns = layouts.rows = layouts.replicated;
  if (options.tensor > 1) {
    layouts.columns.states[tensorAxis] = AxisState::split(1, {0});
    layouts.rows.states[tensorAxis] = AxisState::split(0, {0});
  }
  layouts.restOfW1 = layouts.columns;
  if (options.sharded)
    layouts.restOfW1.states[dataAxis] = AxisState::split(0, {0});
  return layouts;
}

void writeRole(Program &program, Role &role, const TwoLayers &options) {
  Writer w{program, role, options.type};
  Layouts layouts = layoutsOf(options, program.mesh);
  bool hasFirst = role.stage == 0;
  bool hasSecond = role.stage == options.stages - 1;
  DimStructure rows = plainDim(options.unitRows);
  TensorStructure w1 = {plainDim(options.inner), plainDim(options.hidden)};
  TensorStructure w2 = {plainDim(options.hidden), plainDim(options.outer)};
  TensorStructure hidden = {rows, plainDim(options.hidden)};

  int32_t x = None, first = None, second = None;
  int32_t gradient1 = None, gradient2 = None;
  int32_t squaredNorm = w.make({}, "norm", Lifetime::Carried);
  role.zeroed.push_back(squaredNorm);
  role.scalars.squaredNorm = squaredNorm;
  if (hasFirst) {
    TensorStructure input = {rows, plainDim(options.inner)};
    x = w.make(w.shapeOf(input, layouts.replicated), "x");
    role.inputs.push_back({x, "x", input, layouts.replicated, 0, 0});
    first = w.make(w.shapeOf(w1, layouts.restOfW1), "w1", Lifetime::Persistent);
    gradient1 =
        w.make(w.shapeOf(w1, layouts.columns), "grad w1", Lifetime::Carried);
    role.zeroed.push_back(gradient1);
    role.parameters.push_back(
        {first, {"w1"}, {}, w1, layouts.restOfW1, true, true, gradient1});
  }
  if (hasSecond) {
    second = w.make(w.shapeOf(w2, layouts.rows), "w2", Lifetime::Persistent);
    gradient2 =
        w.make(w.shapeOf(w2, layouts.rows), "grad w2", Lifetime::Carried);
    role.scalars.loss = w.make({}, "loss", Lifetime::Carried);
    role.zeroed.push_back(gradient2);
    role.zeroed.push_back(role.scalars.loss);
    role.parameters.push_back(
        {second, {"w2"}, {}, w2, layouts.rows, true, true, gradient2});
  }

  role.segments.push_back({SegmentKind::Forward, {}});
  role.segments.push_back({SegmentKind::Backward, {}});
  role.segments.push_back({SegmentKind::Step, {}});
  w.target = &role.segments[0].instructions;
  int32_t h = None, y = None;
  if (hasFirst) {
    int32_t used = first;
    if (options.sharded) {
      std::vector<Expr> shape = w.shapeOf(w1, layouts.columns);
      int32_t flat = w.make({shape[0] * shape[1]}, "w1 gathered");
      Instruction &gather =
          w.append(InstructionKind::AllGather, "", {first}, {flat});
      gather.axes = {dataAxis};
      gather.receiveSizes = w.blockSizes(w1, layouts.restOfW1);
      used = w.call("aten::view", {flat}, {OperandArg{0}, shape}, shape,
                    "w1 whole", Lifetime::Local, flat);
    }
    h = w.product(x, used, "h", hasSecond ? Lifetime::Saved : Lifetime::Local);
    if (!hasSecond)
      w.send(h, 1, 1);
  }
  if (hasSecond) {
    if (!hasFirst)
      h = w.receive(w.shapeOf(hidden, layouts.columns), 0, 1, "h",
                    Lifetime::Saved);
    y = w.product(h, second, "y", Lifetime::Saved);
    w.allReduce(y, {tensorAxis});
    int32_t sum = w.sumOfSquares(y, "loss of unit");
    int32_t half =
        w.call("aten::mul.Scalar", {sum}, {OperandArg{0}, 0.5}, {}, "half");
    w.addTo(role.scalars.loss, half);
  }

  w.target = &role.segments[1].instructions;
  int32_t hiddenGradient = None;
  if (hasSecond) {
    w.addTo(gradient2, w.product(w.transposed(h), y, "grad w2 of unit"));
    hiddenGradient = w.product(y, w.transposed(second), "grad h");
    if (!hasFirst)
      w.send(hiddenGradient, 0, 2);
  }
  if (hasFirst) {
    if (!hasSecond)
      hiddenGradient =
          w.receive(w.shapeOf(hidden, layouts.columns), 1, 2, "grad h");
    w.addTo(gradient1,
            w.product(w.transposed(x), hiddenGradient, "grad w1 of unit"));
  }

  w.target = &role.segments[2].instructions;
  if (hasFirst) {
    int32_t reduced = gradient1;
    if (options.sharded) {
      std::vector<Expr> shape = w.shapeOf(w1, layouts.restOfW1);
      int32_t flat = w.make({shape[0] * shape[1]}, "grad w1 block");
      Instruction &scatter =
          w.append(InstructionKind::ReduceScatter, "sum", {gradient1}, {flat});
      scatter.axes = {dataAxis};
      scatter.sendSizes = w.blockSizes(w1, layouts.restOfW1);
      reduced = w.call("aten::view", {flat}, {OperandArg{0}, shape}, shape,
                       "grad w1 at rest", Lifetime::Local, flat);
      role.parameters[0].gradient = reduced;
    } else {
      w.allReduce(gradient1, {dataAxis});
    }
    int32_t squares = w.sumOfSquares(reduced, "squares of w1");
    w.allReduce(squares, options.sharded ? std::vector{dataAxis, tensorAxis}
                                         : std::vector{tensorAxis});
    w.addTo(squaredNorm, squares);
    gradient1 = reduced;
  }
  if (hasSecond) {
    w.allReduce(gradient2, {dataAxis});
    w.allReduce(role.scalars.loss, {dataAxis});
    int32_t squares = w.sumOfSquares(gradient2, "squares of w2");
    w.allReduce(squares, {tensorAxis});
    w.addTo(squaredNorm, squares);
  }
  if (options.stages == 2) {
    int peer = 1 - role.stage;
    int32_t own = w.call("aten::clone", {squaredNorm},
                         {OperandArg{0}, std::monostate()}, {}, "own norm");
    w.send(own, peer, 3 + role.stage);
    w.addTo(squaredNorm, w.receive({}, peer, 3 + peer, "norm of the others"));
  }
  if (hasFirst)
    w.append(InstructionKind::Update, "", {first, gradient1}, {});
  if (hasSecond)
    w.append(InstructionKind::Update, "", {second, gradient2}, {});
  insertFrees(role);
  role.schedule = oneForwardOneBackward(role.stage, options.stages,
                                        options.unitsPerReplica);
}

} // namespace

Program twoLayerProgram(const TwoLayers &options) {
  Program program;
  program.modelDigest = "two layers";
  program.planDigest = "by hand";
  program.mesh.axes = {{"dp", options.data, AxisRole::Data},
                       {"tp", options.tensor, AxisRole::Tensor}};
  program.optimizer = options.optimizer;
  program.unitRows = options.unitRows;
  program.unitsPerReplica = options.unitsPerReplica;
  program.globalRows =
      options.unitRows * options.unitsPerReplica * options.data;
  program.roles.resize(options.stages);
  for (int stage = 0; stage < options.stages; ++stage) {
    program.roles[stage].stage = stage;
    writeRole(program, program.roles[stage], options);
  }
  return program;
}

} // namespace monarch::test
