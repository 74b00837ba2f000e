//===- SampleProgram.cpp - two stages of two ranks, by hand ---------------===//
//
// The program of `sampleProgram`; see ProgramBuilder.h for what it computes.
//
//===----------------------------------------------------------------------===//
#include "test/support/ProgramBuilder.h"

namespace monarch::test {

namespace {

constexpr int64_t Rows = 2, In = 4, Hidden = 5;
constexpr int64_t ForwardTag = 7, BackwardTag = 8;

Layout splitBy(int dim) {
  Layout layout = Layout::replicated(1);
  layout.states[0] = AxisState::split(dim, {0});
  return layout;
}

Expr number(int64_t value) { return Expr::constant(value); }

/// The hidden dim of this rank, or of a peer.
Expr hidden(ShardRef shard, int64_t peer = -1) {
  if (peer >= 0) {
    shard.peerAxis = 0;
    shard.peer = peer;
  }
  return Expr::size(shard);
}

ProgramParameter parameter(int32_t value, const std::string &name,
                           TensorStructure structure, Layout layout,
                           int32_t gradient) {
  ProgramParameter made;
  made.value = value;
  made.names = {name, name + ".tied"};
  made.storage = {"data/weights/" + name, 64, {structure[1].size, 1}};
  made.structure = std::move(structure);
  made.layout = std::move(layout);
  made.gradient = gradient;
  return made;
}

ProgramInput input(int32_t value) {
  ProgramInput made;
  made.value = value;
  made.name = "x";
  made.structure = {plainDim(Rows), plainDim(In)};
  made.layout = Layout::replicated(1);
  return made;
}

/// gradient += a^T b in Backward.
void accumulate(RoleBuilder &builder, int32_t a, int32_t b, int32_t gradient) {
  const auto &shapeOfA = builder.role.values[a].shape;
  int32_t transposed =
      builder.call("aten::t", {a},
                   builder.value("transposed", {shapeOfA[1], shapeOfA[0]},
                                 Lifetime::Local, DType::Float32, a));
  int32_t product = builder.call(
      "aten::mm", {transposed, b},
      builder.value("product", builder.role.values[gradient].shape));
  builder.free({transposed});
  builder.callInPlace("aten::add_.Tensor", {gradient, product}, {number(1)});
  builder.free({product});
}

/// squared_norm += sum(gradient^2) over the axis, then the update.
void finish(RoleBuilder &builder, int32_t weight, int32_t gradient,
            int32_t norm) {
  builder.in(SegmentKind::Step);
  int32_t square = builder.call(
      "aten::mul.Tensor", {gradient, gradient},
      builder.value("square", builder.role.values[gradient].shape));
  int32_t sum = builder.call("aten::sum", {square}, builder.value("sum", {}),
                             {std::monostate()});
  builder.free({square});
  builder.callInPlace("aten::add_.Tensor", {norm, sum}, {number(1)});
  builder.free({sum});
  builder.add(InstructionKind::AllReduce, {norm}, {}, {0}).name = "sum";
  builder.add(InstructionKind::Update, {weight, gradient}, {});
}

void writeFirstStage(Role &role) {
  RoleBuilder b(role);
  ShardRef s = b.shard(shardOf(plainDim(Hidden), 1, splitBy(1)));
  Expr rows = number(Rows), in = number(In), flat = rows * hidden(s);
  int32_t weight = b.value("w0", {in, hidden(s)}, Lifetime::Persistent);
  int32_t gradient = b.value("w0.grad", {in, hidden(s)}, Lifetime::Carried);
  int32_t norm = b.value("norm", {}, Lifetime::Carried);
  int32_t random =
      b.value("random", {number(3)}, Lifetime::Carried, DType::Int64);
  int32_t columns =
      b.value("columns", {hidden(s)}, Lifetime::Persistent, DType::Int64);
  role.parameters = {parameter(weight, "w0", {plainDim(In), plainDim(Hidden)},
                               splitBy(1), gradient)};
  int32_t x = b.value("x", {rows, in});
  role.inputs = {input(x)};
  role.indices = {{columns, {{s}, {}}}};
  role.zeroed = {gradient, norm};
  role.scalars.random = random;
  role.scalars.squaredNorm = norm;

  b.in(SegmentKind::Forward);
  int32_t h = b.call("aten::mm", {x, weight}, b.value("h", {rows, hidden(s)}));
  int32_t g = b.call("aten::relu", {h},
                     b.value("g", {rows, hidden(s)}, Lifetime::Saved));
  b.free({x, h});
  int32_t flatG =
      b.call("aten::view", {g},
             b.value("flat", {flat}, Lifetime::Local, DType::Float32, g),
             {std::vector<Expr>{flat}});
  std::vector<Expr> blocks = {rows * hidden(s, 0), rows * hidden(s, 1)};
  Expr whole = blocks[0] + blocks[1];
  int32_t all = b.value("all", {whole});
  b.add(InstructionKind::AllGather, {flatG}, {all}, {0}).receiveSizes = blocks;
  b.free({flatG});
  int32_t back = b.value("back", {flat});
  Instruction &scatter =
      b.add(InstructionKind::ReduceScatter, {all}, {back}, {0});
  scatter.name = "sum";
  scatter.sendSizes = blocks;
  int32_t exchanged = b.value("exchanged", {flat + flat});
  Instruction &exchange =
      b.add(InstructionKind::AllToAll, {all}, {exchanged}, {0});
  exchange.sendSizes = blocks;
  exchange.receiveSizes = {flat, flat};
  b.free({all, back, exchanged});
  Instruction &send = b.add(InstructionKind::Send, {g}, {});
  send.peerStage = 1;
  send.tag = ForwardTag;

  b.in(SegmentKind::Backward);
  int32_t dg = b.value("dg", {rows, hidden(s)});
  Instruction &receive = b.add(InstructionKind::Receive, {}, {dg});
  receive.peerStage = 1;
  receive.tag = BackwardTag;
  int32_t dh = b.call("aten::threshold_backward", {dg, g},
                      b.value("dh", {rows, hidden(s)}), {number(0)});
  b.free({dg, g});
  accumulate(b, x, dh, gradient);
  b.free({x, dh});
  finish(b, weight, gradient, norm);

  role.schedule = {{SegmentKind::Forward, 0},
                   {SegmentKind::Forward, 1},
                   {SegmentKind::Backward, 0},
                   {SegmentKind::Backward, 1},
                   {SegmentKind::Step, -1}};
}

void writeSecondStage(Role &role) {
  RoleBuilder b(role);
  ShardRef s = b.shard(shardOf(plainDim(Hidden), 0, splitBy(0)));
  Expr rows = number(Rows), out = number(In);
  int32_t weight = b.value("w1", {hidden(s), out}, Lifetime::Persistent);
  int32_t gradient = b.value("w1.grad", {hidden(s), out}, Lifetime::Carried);
  int32_t norm = b.value("norm", {}, Lifetime::Carried);
  int32_t loss = b.value("loss", {}, Lifetime::Carried);
  int32_t count = b.value("count", {}, Lifetime::Carried);
  int32_t inverse = b.value("inverse", {}, Lifetime::Carried);
  int32_t seed = b.value("seed", {}, Lifetime::Persistent);
  int32_t labels = b.value("labels", {rows, out});
  role.parameters = {parameter(weight, "w1", {plainDim(Hidden), plainDim(In)},
                               splitBy(0), gradient)};
  role.inputs = {input(labels)};
  role.zeroed = {gradient, norm, loss, count};
  role.scalars.squaredNorm = norm;
  role.scalars.loss = loss;
  role.scalars.seed = seed;

  b.in(SegmentKind::Count);
  int32_t counted =
      b.call("aten::sum", {labels}, b.value("counted", {}), {std::monostate()});
  b.free({labels});
  b.callInPlace("aten::add_.Tensor", {count, counted}, {number(1)});
  b.free({counted});

  b.in(SegmentKind::Begin);
  b.call("aten::reciprocal", {count}, inverse);

  b.in(SegmentKind::Forward);
  int32_t g = b.value("g", {rows, hidden(s)}, Lifetime::Saved);
  Instruction &receive = b.add(InstructionKind::Receive, {}, {g});
  receive.peerStage = 0;
  receive.tag = ForwardTag;
  int32_t y = b.call("aten::mm", {g, weight}, b.value("y", {rows, out}));
  b.add(InstructionKind::AllReduce, {y}, {}, {0}).name = "sum";
  int32_t sum =
      b.call("aten::sum", {y}, b.value("sum", {}), {std::monostate()});
  b.free({y});
  int32_t scaled =
      b.call("aten::mul.Tensor", {sum, inverse}, b.value("scaled", {}));
  b.callInPlace("aten::add_.Tensor", {loss, scaled}, {number(1)});
  b.free({sum, scaled});

  b.in(SegmentKind::Backward);
  int32_t dsum =
      b.call("aten::mul.Tensor", {seed, inverse}, b.value("dsum", {}));
  int32_t dy =
      b.call("aten::expand", {dsum},
             b.value("dy", {rows, out}, Lifetime::Local, DType::Float32, dsum),
             {std::vector<Expr>{rows, out}, false});
  int32_t transposed = b.call("aten::t", {weight},
                              b.value("w1.t", {out, hidden(s)}, Lifetime::Local,
                                      DType::Float32, weight));
  int32_t dg =
      b.call("aten::mm", {dy, transposed}, b.value("dg", {rows, hidden(s)}));
  int32_t kept = b.value("dg.zero", {rows, hidden(s)}, Lifetime::Local,
                         DType::Float32, dg);
  b.add(InstructionKind::Zero, {dg}, {kept}, {0});
  b.free({transposed});
  Instruction &send = b.add(InstructionKind::Send, {kept}, {});
  send.peerStage = 0;
  send.tag = BackwardTag;
  b.free({dg, kept});
  accumulate(b, g, dy, gradient);
  b.free({g, dsum, dy});
  finish(b, weight, gradient, norm);

  role.schedule = {{SegmentKind::Count, 0},    {SegmentKind::Count, 1},
                   {SegmentKind::Begin, -1},   {SegmentKind::Forward, 0},
                   {SegmentKind::Backward, 0}, {SegmentKind::Forward, 1},
                   {SegmentKind::Backward, 1}, {SegmentKind::Step, -1}};
}

} // namespace

Program sampleProgram() {
  Program program;
  program.modelDigest = std::string(64, 'a');
  program.planDigest = std::string(64, 'b');
  program.mesh.axes = {{"tp", 2, AxisRole::Tensor}};
  program.tables.set(Hidden, 2, {0, 3, 5});
  program.optimizer = OptimizerKind::AdamW;
  program.globalRows = 2 * Rows;
  program.unitRows = Rows;
  program.unitsPerReplica = 2;
  program.roles.resize(2);
  program.roles[1].stage = 1;
  writeFirstStage(program.roles[0]);
  writeSecondStage(program.roles[1]);
  return program;
}

} // namespace monarch::test
