//===- OpCosts.cpp - picoseconds of one op or reshard ---------------------===//
#include "planner/search/OpCosts.h"

#include "core/layout/Reshard.h"
#include "core/registry/Lowering.h"
#include "planner/resolve/WriteMoves.h"

namespace monarch::planner {

namespace {

/// With even tables the last rank holds the largest block of everything.
std::vector<int64_t> slowestCoordinates(const Mesh &mesh) {
  std::vector<int64_t> last;
  for (const MeshAxis &axis : mesh.axes)
    last.push_back(axis.size - 1);
  return last;
}

} // namespace

Layout dualOf(Layout layout) {
  for (AxisState &state : layout.states)
    if (state.isPartial())
      state = AxisState::replicated();
  return canonical(std::move(layout));
}

int LayoutNumbers::of(const Layout &layout) {
  auto [entry, isNew] =
      numbers.try_emplace(layout, static_cast<int>(layouts.size()));
  if (isNew) {
    layouts.push_back(layout);
    duals.push_back(-1);
  }
  return entry->second;
}

int LayoutNumbers::dual(int number) {
  if (duals[number] < 0) {
    int dual = of(dualOf(layouts[number]));
    duals[number] = dual;
  }
  return duals[number];
}

OpCosts::OpCosts(const StrategySpace &space, const Cluster &cluster,
                 const Mesh &mesh, OptimizerKind optimizer)
    : space(space), mesh(mesh), pricer(cluster, mesh, optimizer) {
  std::map<std::pair<TensorStructure, DType>, int> known;
  const Graph &graph = space.graph();
  for (size_t v = 0; v < graph.values.size(); ++v)
    structureNumbers.push_back(
        known
            .try_emplace({space.structure(static_cast<ValueId>(v)),
                          graph.values[v].type},
                         static_cast<int>(known.size()))
            .first->second);
}

int64_t OpCosts::price(const Role &role,
                       const std::vector<Instruction> &instructions) const {
  OffsetTables even;
  RoleView view(role, mesh, even, slowestCoordinates(mesh));
  int64_t total = 0;
  for (const Instruction &instruction : instructions)
    total += pricer.price(instruction, view, /*stage=*/0).picoseconds;
  return total;
}

int64_t OpCosts::opPicoseconds(OpId id, const OpLayouts &layouts) const {
  const Graph &graph = space.graph();
  const Op &op = graph.op(id);
  Role role;
  std::vector<Instruction> instructions;
  RoleWriter writer(role);
  writer.target = &instructions;
  OffsetTables even;
  Lowering lowering{graph, op, writer, mesh, {}, {}, {}, {}, {}, {}, {}};
  lowering.tables = &even;
  auto structureOf = [&](ValueId value) {
    return value == None ? nullptr : &space.structure(value);
  };
  for (size_t k = 0; k < op.operands.size(); ++k) {
    ValueId value = op.operands[k];
    lowering.operandStructure.push_back(structureOf(value));
    lowering.operands.push_back(
        value == None ? Local{}
                      : writer.make(graph.value(value).type,
                                    localShape(writer, space.structure(value),
                                               layouts.operands[k])));
  }
  for (ValueId value : op.results)
    lowering.resultStructure.push_back(structureOf(value));
  lowering.operandLayout = layouts.operands;
  lowering.resultLayout = layouts.results;
  lowering.labels = layouts.labels;
  lowering.results.resize(op.results.size());
  if (const OpRule *rule = space.rule(id))
    lower(*rule, lowering);
  else
    lowering.callItself();
  return price(role, instructions);
}

int64_t OpCosts::reshardPicoseconds(ValueId value, int from, int to) const {
  if (from == to)
    return 0;
  // 20 bits each: a search meets thousands of layouts, not a million.
  uint64_t key = static_cast<uint64_t>(structureNumbers[value]) << 40 |
                 static_cast<uint64_t>(from) << 20 | static_cast<uint64_t>(to);
  auto [entry, isNew] = reshards.try_emplace(key, 0);
  if (!isNew)
    return entry->second;
  const TensorStructure &structure = space.structure(value);
  Role role;
  std::vector<Instruction> instructions;
  RoleWriter writer(role);
  writer.target = &instructions;
  OffsetTables even;
  Local local = writer.make(space.graph().value(value).type,
                            localShape(writer, structure, layoutNumbers[from]));
  writeMoves(
      writer, mesh, structure,
      reshard(structure, layoutNumbers[from], layoutNumbers[to], mesh, even),
      local);
  entry->second = price(role, instructions);
  return entry->second;
}

int64_t OpCosts::localBytes(ValueId value, const Layout &layout) const {
  OffsetTables even;
  int64_t bytes = byteWidth(space.graph().value(value).type);
  for (int64_t size : monarch::localShape(space.structure(value), layout, mesh,
                                          even, slowestCoordinates(mesh)))
    bytes *= size;
  return bytes;
}

} // namespace monarch::planner
