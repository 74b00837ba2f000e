//===- CheckStructure.cpp - every index points into its table -------------===//
//
// After this, no part of the verifier looks before it indexes. The work is
// bounded by the size of the file: a mesh has at most 65536 ranks.
//
//===----------------------------------------------------------------------===//
#include "core/program/Checks.h"
#include "core/program/Verify.h"

#include <algorithm>
#include <fmt/format.h>
#include <set>

namespace monarch {

namespace {

/// Times MaxRanks it does not overflow: blocks are floor(extent * i / parts).
constexpr int64_t MaxExtent = int64_t(1) << 46;
/// Shards times ranks: what the verifier keeps in memory.
constexpr int64_t MaxSizes = int64_t(1) << 26;

bool isValid(const DimStructure &dim) {
  int64_t next = 0;
  for (const Section &section : dim.sections) {
    int64_t product = 1;
    for (int64_t factor : section.factors) {
      if (factor <= 1)
        return false;
      product = multiplySizes(product, factor);
    }
    if (section.begin != next || product >= HugeSize ||
        section.end - section.begin != product)
      return false;
    next = section.end;
  }
  return next == dim.size && next <= MaxExtent;
}

/// One factor of each section.
bool cutsFit(const std::vector<int> &factors, const DimStructure &dim) {
  if (factors.size() != dim.sections.size() || factors.empty())
    return false;
  for (size_t i = 0; i < factors.size(); ++i)
    if (factors[i] < 0 ||
        factors[i] >= static_cast<int>(dim.sections[i].factors.size()))
      return false;
  return true;
}

class RoleChecker {
public:
  RoleChecker(const Program &program, const Role &role, Findings &findings)
      : program(program), role(role), findings(findings),
        place(fmt::format("stage {}", role.stage)) {}

  void run() {
    for (const Shard &shard : role.shards)
      checkShard(shard);
    for (size_t id = 0; id < role.values.size(); ++id)
      checkValue(static_cast<int32_t>(id));
    checkLeaves();
    int previous = -1;
    for (const Segment &segment : role.segments) {
      require(static_cast<int>(segment.kind) > previous,
              fmt::format("segment {} out of order", toString(segment.kind)));
      previous = static_cast<int>(segment.kind);
      for (size_t i = 0; i < segment.instructions.size(); ++i)
        checkInstruction(segment, i);
    }
    OpId last = None;
    for (const ProgramOrigin &origin : role.origins) {
      require(origin.op > last,
              fmt::format("the origin of op {} out of order", origin.op));
      last = origin.op;
    }
  }

private:
  void require(bool holds, const std::string &what) {
    if (!holds)
      findings.add("MP2110", what, place);
  }
  bool isValue(int32_t id) const {
    return id >= 0 && id < static_cast<int32_t>(role.values.size());
  }
  bool isAxis(int axis) const {
    return axis >= 0 && axis < static_cast<int>(program.mesh.axes.size());
  }
  bool isShard(const ShardRef &ref) const {
    return ref.shard >= 0 && ref.shard < static_cast<int>(role.shards.size()) &&
           (ref.peerAxis == -1 ||
            (isAxis(ref.peerAxis) && ref.peer >= 0 &&
             ref.peer < program.mesh.axes[ref.peerAxis].size));
  }
  bool isExpr(const Expr &expr) const {
    return std::all_of(
        expr.terms.begin(), expr.terms.end(), [&](const Expr::Term &term) {
          return std::all_of(term.sizes.begin(), term.sizes.end(),
                             [&](const ShardRef &ref) { return isShard(ref); });
        });
  }
  bool areExprs(const std::vector<Expr> &exprs) const {
    return std::all_of(exprs.begin(), exprs.end(),
                       [&](const Expr &expr) { return isExpr(expr); });
  }

  void checkShard(const Shard &shard) {
    bool valid = isValid(shard.structure);
    std::set<int> axes;
    for (const Shard::Cut &cut : shard.cuts)
      valid = valid && isAxis(cut.axis) && axes.insert(cut.axis).second &&
              cutsFit(cut.factors, shard.structure);
    require(valid, "a shard that no layout makes");
  }

  void checkValue(int32_t id) {
    const ProgramValue &value = role.values[id];
    require(
        areExprs(value.shape),
        fmt::format("the shape of value {} names no shard", nameOf(role, id)));
    int32_t base = value.aliasOf;
    size_t steps = 0;
    while (isValue(base) && ++steps <= role.values.size())
      base = role.values[base].aliasOf;
    require(base == None,
            fmt::format("value {} is an alias of none", nameOf(role, id)));
  }

  void requireLeaf(int32_t id, Lifetime lifetime, const std::string &what) {
    require(isValue(id) && role.values[id].lifetime == lifetime &&
                role.values[id].aliasOf == None,
            fmt::format("{} is not a {} value", what,
                        lifetime == Lifetime::Persistent ? "persistent"
                        : lifetime == Lifetime::Carried  ? "carried"
                                                         : "local"));
    if (isValue(id))
      require(leaves.insert(id).second,
              fmt::format("value {} is two leaves", nameOf(role, id)));
  }

  void requireStructure(const TensorStructure &structure, int32_t id,
                        const std::string &what) {
    require(std::all_of(structure.begin(), structure.end(), isValid) &&
                isValue(id) && role.values[id].shape.size() == structure.size(),
            what + " has a malformed structure");
  }

  void checkLeaves() {
    for (const ProgramParameter &parameter : role.parameters) {
      std::string what = "parameter " + (parameter.names.empty()
                                             ? std::string("without a name")
                                             : parameter.names[0]);
      require(!parameter.names.empty(), what);
      requireLeaf(parameter.value, Lifetime::Persistent, what);
      requireStructure(parameter.structure, parameter.value, what);
      require(fits(parameter.layout, parameter.structure, program.mesh),
              what + " has a malformed layout");
      require(parameter.gradient == None || isValue(parameter.gradient),
              what + " has a gradient that is no value");
      if (parameter.master != None) {
        requireLeaf(parameter.master, Lifetime::Persistent,
                    "the master copy of " + what);
        require(parameter.owner && parameter.trainable,
                what + " has a master copy where it is not trained");
      }
    }
    for (const ProgramBuffer &buffer : role.buffers) {
      std::string what =
          "buffer " + (buffer.names.empty() ? std::string("without a name")
                                            : buffer.names[0]);
      require(!buffer.names.empty(), what);
      requireLeaf(buffer.value, Lifetime::Persistent, what);
      requireStructure(buffer.structure, buffer.value, what);
    }
    for (const ProgramInput &input : role.inputs) {
      std::string what = "input " + input.name;
      requireLeaf(input.value, Lifetime::Local, what);
      requireStructure(input.structure, input.value, what);
      require(fits(input.layout, input.structure, program.mesh) &&
                  input.rowDim >= -1 &&
                  input.rowDim < static_cast<int>(input.structure.size()),
              what + " has a malformed layout");
    }
    for (const ProgramIndex &index : role.indices) {
      requireLeaf(index.value, Lifetime::Persistent, "an index list");
      require(isValue(index.value) &&
                  role.values[index.value].type == DType::Int64 &&
                  role.values[index.value].shape.size() == 1,
              "an index list is not a vector of int64");
      for (const auto *list : {&index.list.of, &index.list.in})
        require(std::all_of(list->begin(), list->end(),
                            [&](const ShardRef &ref) { return isShard(ref); }),
                "an index list names no shard");
    }
    for (int32_t id : role.zeroed)
      requireLeaf(id, Lifetime::Carried, "a zeroed value");
    const ProgramScalars &scalars = role.scalars;
    if (scalars.random != None)
      requireLeaf(scalars.random, Lifetime::Carried, "the random key");
    if (scalars.seed != None)
      requireLeaf(scalars.seed, Lifetime::Persistent, "the seed");
    for (int32_t id : {scalars.loss, scalars.squaredNorm})
      require(id == None || (isValue(id) &&
                             role.values[id].lifetime == Lifetime::Carried &&
                             role.values[id].shape.empty()),
              "the loss or the norm is not a carried scalar");
  }

  struct Counts {
    size_t operands, results, sendSizes, receiveSizes;
  };
  /// Operands and results of the kinds that fix them; sizes are 0 or the
  /// group's.
  static std::optional<Counts> countsOf(InstructionKind kind, size_t group) {
    switch (kind) {
    case InstructionKind::Call:
    case InstructionKind::Free:
    case InstructionKind::AllReduce:
      return std::nullopt;
    case InstructionKind::AllGather:
      return Counts{1, 1, 0, group};
    case InstructionKind::ReduceScatter:
      return Counts{1, 1, group, 0};
    case InstructionKind::AllToAll:
      return Counts{1, 1, group, group};
    case InstructionKind::Send:
      return Counts{1, 0, 0, 0};
    case InstructionKind::Receive:
      return Counts{0, 1, 0, 0};
    case InstructionKind::Zero:
      return Counts{1, 1, 0, 0};
    case InstructionKind::Update:
      return Counts{2, 0, 0, 0};
    }
    return std::nullopt;
  }

  void checkInstruction(const Segment &segment, size_t index) {
    const Instruction &instruction = segment.instructions[index];
    InstructionKind kind = instruction.kind;
    auto check = [&](bool holds, const char *what) {
      if (!holds)
        findings.add("MP2111", what, placeOf(role, segment, index));
      return holds;
    };
    for (int32_t id : instruction.operands)
      check(isValue(id), "an operand is no value");
    for (int32_t id : instruction.results)
      check(isValue(id) || (id == None && kind == InstructionKind::Call),
            "a result is no value");
    bool valid =
        areExprs(instruction.sendSizes) && areExprs(instruction.receiveSizes);
    size_t group = 1;
    int previous = -1;
    for (int axis : instruction.axes) {
      if (!check(isAxis(axis) && axis > previous,
                 "axes are not ascending axes of the mesh"))
        return;
      previous = axis;
      group *= static_cast<size_t>(program.mesh.axes[axis].size);
    }
    bool hasAxes = isCollective(kind) || kind == InstructionKind::Zero;
    check(instruction.axes.empty() != hasAxes, "axes are missing or too many");
    if (auto counts = countsOf(kind, group))
      check(instruction.operands.size() == counts->operands &&
                instruction.results.size() == counts->results &&
                instruction.sendSizes.size() == counts->sendSizes &&
                instruction.receiveSizes.size() == counts->receiveSizes,
            "operands, results or sizes are missing or too many");
    if (kind == InstructionKind::AllReduce)
      check(instruction.operands.size() == 1 && instruction.results.size() <= 1,
            "operands or results are missing or too many");
    if (kind == InstructionKind::Free)
      check(instruction.results.empty(), "a free has no results");
    if (kind == InstructionKind::AllReduce ||
        kind == InstructionKind::ReduceScatter)
      check(instruction.name == "sum" || (instruction.name == "max" &&
                                          kind == InstructionKind::AllReduce),
            "an unknown reduction");
    if (kind == InstructionKind::Send || kind == InstructionKind::Receive)
      check(instruction.peerStage >= 0 &&
                instruction.peerStage <
                    static_cast<int>(program.roles.size()) &&
                instruction.peerStage != role.stage,
            "the other stage is none, or this one");
    for (const CallArg &arg : instruction.args)
      valid = valid && isArg(arg, instruction);
    check(kind == InstructionKind::Call || instruction.args.empty(),
          "only calls have arguments");
    check(valid, "an argument or size is malformed");
  }

  bool isArg(const CallArg &arg, const Instruction &instruction) const {
    int count = static_cast<int>(instruction.operands.size());
    if (const auto *operand = std::get_if<OperandArg>(&arg))
      return operand->index >= 0 && operand->index < count;
    if (const auto *list = std::get_if<OperandListArg>(&arg))
      return std::all_of(
          list->indices.begin(), list->indices.end(),
          [&](int index) { return index >= None && index < count; });
    if (const auto *expr = std::get_if<Expr>(&arg))
      return isExpr(*expr);
    if (const auto *exprs = std::get_if<std::vector<Expr>>(&arg))
      return areExprs(*exprs);
    return true;
  }

  const Program &program;
  const Role &role;
  Findings &findings;
  std::string place;
  std::set<int32_t> leaves;
};

} // namespace

void checkStructure(const Program &program, Findings &findings) {
  auto require = [&](bool holds, const char *what) {
    if (!holds)
      findings.add("MP2110", what, "manifest");
    return holds;
  };
  int64_t ranks = 1, replicas = 1;
  bool afterTensor = false;
  for (const MeshAxis &axis : program.mesh.axes) {
    ranks = axis.size < 1 ? HugeSize : multiplySizes(ranks, axis.size);
    if (axis.role == AxisRole::Data)
      replicas = multiplySizes(replicas, axis.size);
    require(axis.role == AxisRole::Tensor || !afterTensor,
            "data axes come before tensor axes");
    afterTensor = axis.role == AxisRole::Tensor;
  }
  if (!require(ranks <= MaxRanks, "the mesh is empty or too large"))
    return;
  require(!program.roles.empty(), "no stages");
  require(program.unitRows >= 1 && program.unitsPerReplica >= 1 &&
              program.globalRows ==
                  multiplySizes(
                      multiplySizes(program.unitRows, program.unitsPerReplica),
                      replicas),
          "rows are not unit rows times units times replicas");
  for (size_t stage = 0; stage < program.roles.size(); ++stage) {
    const Role &role = program.roles[stage];
    require(role.stage == static_cast<int>(stage), "stages are out of order");
    require(multiplySizes(static_cast<int64_t>(role.shards.size()), ranks) <=
                MaxSizes,
            "too many shards");
    RoleChecker(program, role, findings).run();
  }
}

} // namespace monarch
