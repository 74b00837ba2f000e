#include "planner/resolve/Resolver.h"

#include "core/program/Verify.h"

#include <algorithm>

namespace monarch::planner {

Resolver::Resolver(const StrategySpace &space, const Decisions &decisions)
    : space(space), decisions(decisions), graph(space.graph()),
      mesh(decisions.mesh), reshards(decisions.mesh, decisions.tables),
      derived(deriveLayouts(space, decisions)), program(result.program) {
  program.mesh = decisions.mesh;
  program.tables = decisions.tables;
  program.optimizer = decisions.optimizer;
  program.globalRows = decisions.globalRows;
  program.unitRows = decisions.unitRows;
  int64_t replicas = 1;
  for (const MeshAxis &axis : mesh.axes)
    if (axis.role == AxisRole::Data)
      replicas *= axis.size;
  program.unitsPerReplica =
      decisions.globalRows / decisions.unitRows / replicas;
  program.roles.resize(decisions.stages);
  stages.reserve(decisions.stages);
  for (int s = 0; s < decisions.stages; ++s) {
    Role &role = program.roles[s];
    role.stage = s;
    for (int kind = 0; kind <= static_cast<int>(SegmentKind::Step); ++kind)
      role.segments.push_back({static_cast<SegmentKind>(kind), {}});
    stages.emplace_back(role);
  }
  parameterLocals.resize(decisions.stages);
  accumulators.resize(graph.parameters.size());
  gradients.resize(graph.parameters.size());
  for (size_t p = 0; p < graph.parameters.size(); ++p)
    if (graph.parameters[p].trainable)
      for (ValueId gradient : graph.parameters[p].gradients)
        gradientOf[gradient].push_back(p);

  // A parameter belongs to the first stage that reads it; unread ones to stage
  // 0.
  owner.assign(graph.parameters.size(), None);
  std::map<ValueId, size_t> parameterOf;
  for (size_t p = 0; p < graph.parameters.size(); ++p)
    parameterOf[graph.parameters[p].value] = p;
  for (OpId id = 0; id < static_cast<OpId>(graph.ops.size()); ++id)
    for (ValueId operand : graph.ops[id].operands)
      if (auto it = parameterOf.find(operand);
          it != parameterOf.end() && derived.stage[id] != None)
        if (int &stage = owner[it->second];
            stage == None || derived.stage[id] < stage)
          stage = derived.stage[id];
  for (int &stage : owner)
    if (stage == None)
      stage = 0;
}

std::vector<Instruction> &Resolver::open(int stage, SegmentKind segment,
                                         OpId op) {
  RoleWriter &writer = stages[stage].writer;
  writer.target = &segmentOf(program.roles[stage], segment).instructions;
  writer.op = op;
  return *writer.target;
}

void Resolver::lowerOp(OpId id, int stage, SegmentKind segment) {
  const Op &op = graph.ops[id];
  const OpLayouts &layouts = derived.ops[id];
  const OpRule *rule = space.rule(id);
  const bool reuseGathered =
      op.forward == None || decisions.keepGathered[op.forward];
  auto shapeOnly = [&](int k) {
    return rule && std::find(rule->shapeOnly.begin(), rule->shapeOnly.end(),
                             k) != rule->shapeOnly.end();
  };

  // Operands of which only the shape counts stay undefined: nothing is moved or
  // kept for them.
  std::vector<Local> operands(op.operands.size());
  for (size_t k = 0; k < op.operands.size(); ++k)
    if (op.operands[k] != None && !shapeOnly(static_cast<int>(k)))
      operands[k] = fetch(op.operands[k], layouts.operands[k], stage, segment,
                          reuseGathered);

  RoleWriter &writer = stages[stage].writer;
  open(stage, segment, id);
  Lowering lowering{graph, op, writer, mesh, {}, {}, {}, {}, {}, {}, {}};
  for (size_t k = 0; k < op.operands.size(); ++k)
    lowering.operandStructure.push_back(
        op.operands[k] == None ? nullptr : &space.structure(op.operands[k]));
  for (ValueId r : op.results)
    lowering.resultStructure.push_back(r == None ? nullptr
                                                 : &space.structure(r));
  lowering.operandLayout = layouts.operands;
  lowering.resultLayout = layouts.results;
  lowering.labels = layouts.labels;
  lowering.operands = std::move(operands);
  lowering.tables = &program.tables;
  lowering.results.resize(op.results.size());
  ResolvedStep made;
  made.kind = ResolvedStep::Kind::Op;
  made.segment = segment;
  made.op = id;
  made.operandLayouts = layouts.operands;
  made.resultLayouts = layouts.results;
  step(stage, std::move(made), [&] {
    if (rule)
      lower(*rule, lowering);
    else
      lowering.callItself();
    return 0;
  });
  for (Local local : lowering.results)
    stages[stage].steps.back().made.push_back(local.value);
  for (size_t r = 0; r < op.results.size(); ++r)
    if (op.results[r] != None && lowering.results[r].defined())
      stages[stage].copies[op.results[r]].push_back(
          {layouts.results[r], lowering.results[r], segment, true, false});
}

void Resolver::accumulateResults(OpId id) {
  for (ValueId value : graph.ops[id].results) {
    if (value == None)
      continue;
    if (auto it = gradientOf.find(value); it != gradientOf.end())
      for (size_t parameter : it->second)
        accumulate(parameter, value);
  }
}

// A mutated buffer takes its new value at the end of the unit's forward; its
// backward must not read the old one.
std::optional<Error> Resolver::updateBuffers() {
  for (const Buffer &buffer : graph.buffers) {
    if (buffer.updated == None)
      continue;
    for (const Op &op : graph.ops)
      if (op.phase == Phase::Backward)
        for (ValueId operand : op.operands)
          if (operand == buffer.value)
            return Error{"MP2301", ExitCode::Unsupported,
                         "the backward reads buffer '" + buffer.names[0] +
                             "' that the forward changes",
                         op.module, "keep the buffer fixed in training"};
    // What a clone makes has no home: a buffer that nothing else reads changes
    // at stage 0.
    const int home = std::max(derived.homeStage[buffer.updated], 0);
    for (int s = 0; s < decisions.stages; ++s) {
      if (!stages[s].copies.count(buffer.value) && s != home)
        continue;
      const Layout whole = Layout::replicated(mesh.axes.size());
      const Local value = fetch(buffer.updated, whole, s, SegmentKind::Forward);
      const Local rest = fetch(buffer.value, whole, s, SegmentKind::Forward);
      ResolvedStep updated;
      updated.kind = ResolvedStep::Kind::Finish;
      updated.segment = SegmentKind::Forward;
      updated.value = buffer.updated;
      updated.from = whole;
      open(s, SegmentKind::Forward, graph.values[buffer.updated].producer);
      step(s, std::move(updated), [&] {
        copyInto(s, rest, value);
        return 0;
      });
    }
  }
  return std::nullopt;
}

// Files of weights hold every persistent buffer, read or not.
void Resolver::keepUnreadBuffers() {
  for (const Buffer &buffer : graph.buffers) {
    const bool held =
        std::any_of(stages.begin(), stages.end(), [&](const Stage &stage) {
          return stage.copies.count(buffer.value) != 0;
        });
    if (buffer.persistent && !held)
      fetch(buffer.value, Layout::replicated(mesh.axes.size()), 0,
            SegmentKind::Forward);
  }
}

Expected<Resolved> Resolver::run() {
  writeCounts();
  for (OpId id = 0; id < static_cast<OpId>(graph.ops.size()); ++id) {
    const Op &op = graph.ops[id];
    if (op.phase != Phase::Forward || space.isCloned(id))
      continue;
    lowerOp(id, derived.stage[id], SegmentKind::Forward);
  }
  accumulateLoss();
  if (std::optional<Error> error = updateBuffers())
    return *error;
  keepUnreadBuffers();
  for (OpId id = 0; id < static_cast<OpId>(graph.ops.size()); ++id) {
    if (graph.ops[id].phase != Phase::Backward)
      continue;
    lowerOp(id, derived.stage[id], SegmentKind::Backward);
    accumulateResults(id);
  }
  finishStep();
  writeSchedules();
  for (const auto &[name, count] : space.opsWithoutRule())
    result.remarks.push_back(name + " kept whole: " + std::to_string(count) +
                             (count == 1 ? " op" : " ops"));
  for (int s = 0; s < decisions.stages; ++s) {
    finishLifetimes(program.roles[s], stages[s].steps);
    result.steps.push_back(std::move(stages[s].steps));
  }
  result.layout = derived.home;
  result.stage = derived.homeStage;
  predict(program);
  return std::move(result);
}

static void writeOrigins(Role &role, const Graph &graph) {
  std::set<OpId> ops;
  for (const Segment &segment : role.segments)
    for (const Instruction &instruction : segment.instructions)
      if (instruction.op != None)
        ops.insert(instruction.op);
  for (OpId id : ops)
    if (const Op &op = graph.ops[id]; !op.module.empty() || !op.source.empty())
      role.origins.push_back({id, op.module, op.source});
}

Expected<Resolved> resolve(const StrategySpace &space,
                           const Decisions &decisions) {
  Expected<Resolved> resolved = resolveToPrice(space, decisions);
  if (!resolved)
    return resolved;
  resolved->program.modelDigest = digest(space.graph());
  for (Role &role : resolved->program.roles)
    writeOrigins(role, space.graph());
  return resolved;
}

Expected<Resolved> resolveToPrice(const StrategySpace &space,
                                  const Decisions &decisions) {
  if (std::vector<Error> errors = check(decisions, space); !errors.empty())
    return joined(errors);
  return Resolver(space, decisions).run();
}

} // namespace monarch::planner
