// What stands around the units: counts and their reciprocals before the first
// forward, sums of gradients, norm, updates and refreshed copies after the last
// backward.
#include "planner/resolve/Resolver.h"
#include "planner/resolve/WriteMoves.h"

#include <algorithm>

namespace monarch::planner {
namespace {

std::vector<int> dataAxes(const Mesh &mesh) {
  std::vector<int> axes;
  for (size_t t = 0; t < mesh.axes.size(); ++t)
    if (mesh.axes[t].role == AxisRole::Data)
      axes.push_back(static_cast<int>(t));
  return axes;
}

Local scalarCall(RoleWriter &writer, const std::string &name, Local operand,
                 std::vector<CallArg> args, DType type) {
  args.insert(args.begin(), OperandArg{0});
  return writer.call(name, {operand}, std::move(args), type, {});
}

Local cast(RoleWriter &writer, Local tensor, DType type,
           CallArg memoryFormat = std::monostate()) {
  return writer.call("aten::_to_copy", {tensor},
                     {OperandArg{0}, type, std::monostate(), std::monostate(),
                      std::monostate(), false, std::move(memoryFormat)},
                     type, writer[tensor].shape);
}

Local add(RoleWriter &writer, Local a, Local b) {
  return writer.call("aten::add.Tensor", {a, b},
                     {OperandArg{0}, OperandArg{1}, Expr::constant(1)},
                     writer[a].type, writer[a].shape);
}

} // namespace

Layout Resolver::partialOverUnits(Layout layout) const {
  for (int axis : dataAxes(mesh))
    layout.states[axis] = AxisState::partial();
  return canonical(std::move(layout));
}

bool Resolver::hasMaster(size_t parameter) const {
  const Parameter &entry = graph.parameters[parameter];
  return decisions.masterWeights && entry.trainable &&
         mayHaveMaster(graph.values[entry.value].type);
}

Local Resolver::carriedZeros(int stage, ValueId like, const Layout &layout,
                             const std::string &name, DType type) {
  RoleWriter &writer = stages[stage].writer;
  const Local zeros =
      writer.make(type, localShape(writer, space.structure(like), layout), name,
                  Lifetime::Carried);
  program.roles[stage].zeroed.push_back(zeros.value);
  return zeros;
}

void Resolver::addInPlace(int stage, Local sum, Local summand) {
  Instruction instruction;
  instruction.name = "aten::add_.Tensor";
  instruction.operands = {sum.value, summand.value};
  instruction.results = {None};
  instruction.args = {OperandArg{0}, OperandArg{1}, Expr::constant(1)};
  stages[stage].writer.append(std::move(instruction));
}

void Resolver::copyInto(int stage, Local held, Local fresh) {
  Instruction copy;
  copy.name = "aten::copy_";
  copy.operands = {held.value, fresh.value};
  copy.results = {None};
  copy.args = {OperandArg{0}, OperandArg{1}, false};
  stages[stage].writer.append(std::move(copy));
}

// At every stage that reads the reciprocal: the rows that each unit counts,
// added over units, then over the ranks that saw different rows.
void Resolver::writeCounts() {
  for (size_t c = 0; c < graph.counts.size(); ++c) {
    const LossCount &count = graph.counts[c];
    const Value &leaf = graph.values[count.inverseCount];
    std::set<int> readers;
    for (OpId id = 0; id < static_cast<OpId>(graph.ops.size()); ++id)
      for (ValueId operand : graph.ops[id].operands)
        if (operand == count.inverseCount) {
          if (derived.stage[id] != None)
            readers.insert(derived.stage[id]);
          else // a clone runs wherever it is used
            for (int s = 0; s < decisions.stages; ++s)
              readers.insert(s);
        }

    for (int stage : readers) {
      RoleWriter &writer = stages[stage].writer;
      ResolvedStep begin;
      begin.kind = ResolvedStep::Kind::Finish;
      begin.segment = SegmentKind::Begin;
      begin.value = count.inverseCount;
      begin.to = Layout::replicated(mesh.axes.size());
      Local inverse;
      if (count.target == None) {
        const int64_t units = decisions.globalRows / decisions.unitRows;
        open(stage, SegmentKind::Begin, None);
        inverse = step(stage, begin, [&] {
          return writer.call("aten::full", {},
                             {std::vector<Expr>(),
                              1.0 / static_cast<double>(count.perUnit * units),
                              leaf.type, std::monostate(), std::monostate(),
                              std::monostate()},
                             leaf.type, {});
        });
      } else {
        Layout layout = derived.home[count.target];
        std::vector<int> axes = dataAxes(mesh);
        for (size_t t = 0; t < mesh.axes.size(); ++t) {
          if (layout.states[t].isPartial())
            layout.states[t] = AxisState::replicated();
          if (layout.states[t].isSplit())
            axes.push_back(static_cast<int>(t));
        }
        layout = canonical(std::move(layout));
        std::sort(axes.begin(), axes.end());
        const Local target =
            fetch(count.target, layout, stage, SegmentKind::Count);
        open(stage, SegmentKind::Count, None);
        ResolvedStep counted;
        counted.kind = ResolvedStep::Kind::Finish;
        counted.segment = SegmentKind::Count;
        counted.value = count.inverseCount;
        const Local total =
            writer.make(DType::Int64, {}, "count", Lifetime::Carried);
        program.roles[stage].zeroed.push_back(total.value);
        step(stage, counted, [&] {
          const Local counts =
              writer.call("aten::ne.Scalar", {target},
                          {OperandArg{0}, Expr::constant(count.ignoreIndex)},
                          DType::Bool, writer[target].shape);
          addInPlace(stage, total,
                     scalarCall(writer, "aten::sum", counts, {std::monostate()},
                                DType::Int64));
          return 0;
        });
        open(stage, SegmentKind::Begin, None);
        inverse = step(stage, begin, [&] {
          writer.allReduce(total, axes, "sum");
          const Local number = cast(writer, total, leaf.type);
          return scalarCall(writer, "aten::reciprocal", number, {}, leaf.type);
        });
      }
      stages[stage].steps.back().made = {inverse.value};
      program.roles[stage].values[inverse.value].lifetime = Lifetime::Carried;
      inverseCounts[{stage, c}] = inverse;
    }
  }
}

void Resolver::accumulate(size_t parameter, ValueId gradient) {
  const int stage = derived.homeStage[gradient];
  const Layout &home = derived.home[gradient];
  const Local local = fetch(gradient, home, stage, SegmentKind::Backward);
  const Layout left = partialOverUnits(home);
  // Uses at one stage that lie alike share an accumulator.
  Local sum;
  for (const Accumulator &accumulator : accumulators[parameter])
    if (accumulator.stage == stage && accumulator.layout == left)
      sum = accumulator.local;
  if (!sum.defined()) {
    sum = carriedZeros(
        stage, gradient, home, graph.parameters[parameter].names[0] + ".grad",
        hasMaster(parameter) ? DType::Float32 : graph.values[gradient].type);
    accumulators[parameter].push_back({stage, left, sum});
  }
  ResolvedStep added;
  added.kind = ResolvedStep::Kind::Finish;
  added.segment = SegmentKind::Backward;
  added.value = gradient;
  added.from = home;
  open(stage, SegmentKind::Backward, None);
  step(stage, added, [&] {
    RoleWriter &writer = stages[stage].writer;
    const DType type = writer[sum].type;
    // Contiguous, as the accumulator is, whatever view the gradient is.
    addInPlace(stage, sum,
               writer[local].type == type
                   ? local
                   : cast(writer, local, type, Expr::constant(0)));
    return 0;
  });
}

void Resolver::accumulateLoss() {
  if (graph.loss == None || graph.values[graph.loss].producer == None)
    return;
  const int stage = derived.homeStage[graph.loss];
  const Layout &home = derived.home[graph.loss];
  const Local local = fetch(graph.loss, home, stage, SegmentKind::Forward);
  const Local sum = carriedZeros(stage, graph.loss, home, "loss",
                                 graph.values[graph.loss].type);
  ResolvedStep added;
  added.kind = ResolvedStep::Kind::Finish;
  added.segment = SegmentKind::Forward;
  added.value = graph.loss;
  added.from = home;
  open(stage, SegmentKind::Forward, None);
  step(stage, added, [&] {
    addInPlace(stage, sum, local);
    return 0;
  });
  loss = Accumulator{stage, partialOverUnits(home), sum};
}

void Resolver::finishStep() {
  if (loss) {
    RoleWriter &writer = stages[loss->stage].writer;
    open(loss->stage, SegmentKind::Step, None);
    const TensorStructure &structure = space.structure(graph.loss);
    ResolvedStep reduced;
    reduced.kind = ResolvedStep::Kind::Finish;
    reduced.segment = SegmentKind::Step;
    reduced.value = graph.loss;
    const Local whole = step(loss->stage, reduced, [&] {
      return writeMoves(writer, mesh, structure,
                        reshards.get(structure, loss->layout,
                                     Layout::replicated(mesh.axes.size())),
                        loss->local, /*mayOverwrite=*/true);
    });
    Role &role = program.roles[loss->stage];
    role.values[whole.value].lifetime = Lifetime::Carried;
    role.scalars.loss = whole.value;
  }
  for (size_t p = 0; p < graph.parameters.size(); ++p) {
    parameterAt(p, owner[p]);
    if (!accumulators[p].empty())
      reduceGradient(p);
  }
  const bool trains = std::any_of(gradients.begin(), gradients.end(),
                                  [](Local g) { return g.defined(); });
  if (!trains)
    return;
  writeSquaredNorm();
  writeUpdates();
}

// Each accumulator goes to the layout at rest, then to the owner, and is added
// there.
void Resolver::reduceGradient(size_t parameter) {
  const Parameter &entry = graph.parameters[parameter];
  const TensorStructure &structure = space.structure(entry.value);
  const Layout &rest = derived.home[entry.value];
  const int to = owner[parameter];
  Local total;
  for (const Accumulator &accumulator : accumulators[parameter]) {
    const int stage = accumulator.stage;
    ResolvedStep reduced;
    reduced.kind = ResolvedStep::Kind::Finish;
    reduced.segment = SegmentKind::Step;
    reduced.value = entry.value;
    open(stage, SegmentKind::Step, None);
    Local local = step(stage, reduced, [&] {
      return writeMoves(stages[stage].writer, mesh, structure,
                        reshards.get(structure, accumulator.layout, rest),
                        accumulator.local, /*mayOverwrite=*/true);
    });
    if (stage != to) {
      reduced.kind = ResolvedStep::Kind::Transfer;
      ResolvedStep received = reduced;
      reduced.peerStage = to;
      received.peerStage = stage;
      const Local sent = local;
      local = step(stage, reduced, [&] {
        return step(to, received, [&] {
          return sendReceive(sent, stage, to, SegmentKind::Step);
        });
      });
    }
    open(to, SegmentKind::Step, None);
    if (total.defined()) {
      reduced.kind = ResolvedStep::Kind::Finish;
      const Local before = total;
      total = step(to, reduced,
                   [&] { return add(stages[to].writer, before, local); });
    } else {
      total = local;
    }
  }
  gradients[parameter] = total;
  for (ProgramParameter &made : program.roles[to].parameters)
    if (made.value == parameterLocals[to].at(parameter).value)
      made.gradient = total.value;
}

// Elements that several ranks hold count once: all but coordinate 0 add zero.
// The sum goes up the stages and back down.
void Resolver::writeSquaredNorm() {
  const int count = decisions.stages;
  DType type = DType::Float32;
  for (const Parameter &parameter : graph.parameters)
    if (graph.values[parameter.value].type == DType::Float64)
      type = DType::Float64;
  std::vector<int> allAxes;
  for (size_t t = 0; t < mesh.axes.size(); ++t)
    allAxes.push_back(static_cast<int>(t));
  std::vector<Local> norms(count);
  ResolvedStep normed;
  normed.kind = ResolvedStep::Kind::Finish;
  normed.segment = SegmentKind::Step;
  for (int s = 0; s < count; ++s) {
    RoleWriter &writer = stages[s].writer;
    open(s, SegmentKind::Step, None);
    norms[s] = step(s, normed, [&] {
      std::map<std::vector<int>, Local> byReplication;
      for (size_t p = 0; p < graph.parameters.size(); ++p) {
        if (owner[p] != s || !gradients[p].defined())
          continue;
        Local gradient = gradients[p];
        // Squares of narrow types overflow and round.
        if (byteWidth(writer[gradient].type) < byteWidth(DType::Float32))
          gradient = cast(writer, gradient, DType::Float32);
        const Local squares =
            writer.call("aten::mul.Tensor", {gradient, gradient},
                        {OperandArg{0}, OperandArg{1}}, writer[gradient].type,
                        writer[gradient].shape);
        const Local sum =
            scalarCall(writer, "aten::sum", squares, {type}, type);
        std::vector<int> replicated;
        const Layout &rest = derived.home[graph.parameters[p].value];
        for (size_t t = 0; t < mesh.axes.size(); ++t)
          if (rest.states[t].isReplicated())
            replicated.push_back(static_cast<int>(t));
        Local &total = byReplication[replicated];
        total = total.defined() ? add(writer, total, sum) : sum;
      }
      Local total;
      for (auto &[replicated, sum] : byReplication) {
        for (int axis : replicated)
          sum = writeMoves(writer, mesh, {}, {{axis, MoveKind::Zero, {}, {}}},
                           sum);
        total = total.defined() ? add(writer, total, sum) : sum;
      }
      if (!total.defined())
        total = writer.call("aten::full", {},
                            {std::vector<Expr>(), 0.0, type, std::monostate(),
                             std::monostate(), std::monostate()},
                            type, {});
      if (mesh.size() == 1)
        return total;
      const Local own = writer.call("aten::clone", {total},
                                    {OperandArg{0}, Expr::constant(0)},
                                    writer[total].type, {});
      return writer.allReduce(own, allAxes, "sum");
    });
  }
  ResolvedStep moved = normed;
  moved.kind = ResolvedStep::Kind::Transfer;
  const auto pass = [&](int from, int to, Local local) {
    ResolvedStep sent = moved, received = moved;
    sent.peerStage = to;
    received.peerStage = from;
    return step(from, sent, [&] {
      return step(to, received, [&] {
        return sendReceive(local, from, to, SegmentKind::Step);
      });
    });
  };
  for (int s = 0; s + 1 < count; ++s) {
    const Local below = pass(s, s + 1, norms[s]);
    open(s + 1, SegmentKind::Step, None);
    norms[s + 1] = step(s + 1, normed, [&] {
      return add(stages[s + 1].writer, norms[s + 1], below);
    });
  }
  for (int s = count - 1; s > 0; --s)
    norms[s - 1] = pass(s, s - 1, norms[s]);
  for (int s = 0; s < count; ++s) {
    program.roles[s].values[norms[s].value].lifetime = Lifetime::Carried;
    program.roles[s].scalars.squaredNorm = norms[s].value;
  }
}

void Resolver::writeUpdates() {
  for (size_t p = 0; p < graph.parameters.size(); ++p) {
    if (!gradients[p].defined())
      continue;
    const int from = owner[p];
    const Local parameter = parameterAt(p, from);
    ResolvedStep updated;
    updated.kind = ResolvedStep::Kind::Finish;
    updated.segment = SegmentKind::Step;
    updated.value = graph.parameters[p].value;
    open(from, SegmentKind::Step, None);
    Local written = parameter;
    if (hasMaster(p)) {
      RoleWriter &writer = stages[from].writer;
      written = writer.make(DType::Float32, writer[parameter].shape,
                            graph.parameters[p].names[0] + ".master",
                            Lifetime::Persistent);
      for (ProgramParameter &made : program.roles[from].parameters)
        if (made.value == parameter.value)
          made.master = written.value;
    }
    step(from, updated, [&] {
      Instruction update;
      update.kind = InstructionKind::Update;
      update.name = toString(program.optimizer);
      update.operands = {written.value, gradients[p].value};
      stages[from].writer.append(std::move(update));
      if (written.value != parameter.value)
        copyInto(from, parameter, written);
      return 0;
    });
    for (int to = 0; to < decisions.stages; ++to) {
      const auto copy = parameterLocals[to].find(p);
      if (to == from || copy == parameterLocals[to].end())
        continue;
      const Local held = copy->second;
      ResolvedStep sent = updated, received = updated;
      sent.kind = received.kind = ResolvedStep::Kind::Transfer;
      sent.peerStage = to;
      received.peerStage = from;
      step(from, sent, [&] {
        return step(to, received, [&] {
          const Local fresh =
              sendReceive(parameter, from, to, SegmentKind::Step);
          copyInto(to, held, fresh);
          return 0;
        });
      });
    }
  }
}

} // namespace monarch::planner
