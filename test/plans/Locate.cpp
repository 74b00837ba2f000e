#include "test/plans/Locate.h"

#include "compiler/driver/Driver.h"
#include "core/program/Checks.h"
#include "test/plans/ModelCase.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <cmath>

namespace monarch::test {

using planner::ResolvedStep;

namespace {

/// Sums in another order differ by less.
constexpr double Limit = 1e-9;
/// Tensors below this share of the largest entry are rounding.
constexpr double FloorShare = 1e-6;
/// Entries above are marks of masks: compared each by itself.
constexpr double Huge = 1e30;

double largestEntry(const at::Tensor &tensor) {
  const at::Tensor size = tensor.to(at::kDouble).abs();
  const at::Tensor finite = size.masked_select(size < Huge);
  return finite.numel() == 0 ? 0 : finite.max().item<double>();
}

double errorOf(const at::Tensor &actual, const at::Tensor &expected,
               double floor) {
  if (actual.sizes() != expected.sizes())
    return INFINITY;
  if (actual.numel() == 0)
    return 0;
  const at::Tensor a = actual.to(at::kDouble), b = expected.to(at::kDouble);
  const double scale = std::max({largestEntry(b), floor, 1e-300});
  const at::Tensor scales = at::where(b.abs() < Huge, scale, b.abs());
  const at::Tensor same = (a == b).logical_or(a.isnan().logical_and(b.isnan()));
  const double error = at::where(same, 0.0, (a - b).abs() / scales)
                           .nan_to_num(INFINITY)
                           .max()
                           .item<double>();
  return isFloatingType(expected.scalar_type()) || error == 0 ? error
                                                              : INFINITY;
}

/// What the steps of one run made, by rank.
class StepTrace {
public:
  StepTrace(const StrategySpace &space, const planner::Resolved &resolved)
      : space(space), resolved(resolved), program(resolved.program),
        ranks(program.worldSize()) {
    for (size_t stage = 0; stage < resolved.steps.size(); ++stage) {
      const Role &role = program.roles[stage];
      for (size_t s = 0; s < resolved.steps[stage].size(); ++s) {
        const ResolvedStep &step = resolved.steps[stage][s];
        const Segment *segment = segmentOf(role, step.segment);
        if (!segment || step.made.empty())
          continue;
        // Behind the last instruction that is no Free: its results may go.
        size_t end = step.begin;
        for (size_t i = step.begin; i < step.end; ++i)
          if (segment->instructions[i].kind != InstructionKind::Free)
            end = i + 1;
        ends[{stage, step.segment, end}].push_back(s);
      }
    }
  }

  void observe(int64_t rank, const runtime::InstructionPlace &place,
               const std::vector<at::Tensor> &values) {
    const size_t stage = rank / program.mesh.size();
    const auto due = ends.find({stage, place.segment, place.instruction});
    if (due != ends.end())
      for (size_t s : due->second)
        for (int32_t local : resolved.steps[stage][s].made)
          ranks[rank][{s, place.unit}].push_back(
              local == None || !values[local].defined()
                  ? at::Tensor()
                  : values[local].clone());
    if (program.worldSize() == 1 && place.instruction == 0)
      noteLeaves(place.unit, values);
  }

  /// One rank: the graph's values, by unit.
  std::map<std::pair<ValueId, int64_t>, at::Tensor> wholeValues() const {
    std::map<std::pair<ValueId, int64_t>, at::Tensor> whole = leaves;
    for (const auto &[key, tensors] : ranks[0]) {
      const ResolvedStep &step = resolved.steps[0][key.first];
      for (size_t r = 0; r < tensors.size(); ++r)
        if (tensors[r].defined())
          whole[{valueOf(step, r), key.second}] = tensors[r];
    }
    return whole;
  }

  ValueId valueOf(const ResolvedStep &step, size_t result) const {
    return step.kind == ResolvedStep::Kind::Op
               ? space.graph().ops[step.op].results[result]
               : step.value;
  }

  /// What the ranks of a stage together hold of a step's result, once for each
  /// set of ranks that hold all of it; with the unit that they ran.
  std::vector<std::pair<int64_t, at::Tensor>>
  assembled(size_t stage, size_t s, size_t result, int64_t localUnit) const {
    const ResolvedStep &step = resolved.steps[stage][s];
    const Layout &layout = step.kind == ResolvedStep::Kind::Op
                               ? step.resultLayouts[result]
                               : step.to;
    const TensorStructure &structure = space.structure(valueOf(step, result));
    std::map<std::vector<int64_t>, std::pair<int64_t, at::Tensor>> groups;
    for (int64_t inStage = 0; inStage < program.mesh.size(); ++inStage) {
      const std::vector<int64_t> coordinates =
          program.mesh.coordinates(inStage);
      const int64_t unit = globalUnit(coordinates, localUnit);
      const auto &made = ranks[stage * program.mesh.size() + inStage];
      const auto found = made.find({s, unit});
      if (found == made.end() || !found->second[result].defined())
        continue;
      const at::Tensor &block = found->second[result];
      std::vector<int64_t> group;
      bool isPartial = false;
      for (size_t axis = 0; axis < coordinates.size(); ++axis) {
        const AxisState &state = layout.states[axis];
        group.push_back(state.isReplicated() ? coordinates[axis] : 0);
        isPartial |= state.isPartial();
      }
      at::Tensor part =
          at::zeros(runtime::wholeShape(structure), block.options());
      const runtime::BlockIndices indices =
          runtime::blockOf(structure, layout, program, coordinates);
      for (size_t dim = 0; dim < indices.size(); ++dim)
        if (block.size(dim) != static_cast<int64_t>(indices[dim].size()))
          return {{unit, block}}; // equal to nothing
      auto &[ofUnit, whole] =
          groups.try_emplace(group, unit, part.clone()).first->second;
      if (isPartial) {
        runtime::putBlock(part, indices, block);
        whole += part;
      } else {
        runtime::putBlock(whole, indices, block);
      }
    }
    std::vector<std::pair<int64_t, at::Tensor>> all;
    for (auto &[group, whole] : groups)
      all.push_back(std::move(whole));
    return all;
  }

private:
  int64_t globalUnit(const std::vector<int64_t> &coordinates,
                     int64_t localUnit) const {
    if (localUnit < 0)
      return -1;
    int64_t replica = 0;
    for (size_t axis = 0; axis < coordinates.size(); ++axis)
      if (program.mesh.axes[axis].role == AxisRole::Data)
        replica = replica * program.mesh.axes[axis].size + coordinates[axis];
    return replica * program.unitsPerReplica + localUnit;
  }

  void noteLeaves(int64_t unit, const std::vector<at::Tensor> &values) {
    const Graph &graph = space.graph();
    const Role &role = program.roles[0];
    for (ValueId id = 0; id < static_cast<ValueId>(graph.values.size()); ++id) {
      const Value &leaf = graph.values[id];
      auto note = [&](int32_t local) {
        // As the forward finds it: buffers change in it.
        if (local != None && values[local].defined())
          leaves.try_emplace({id, unit}, values[local].clone());
      };
      if (leaf.kind == ValueKind::Random)
        note(role.scalars.random);
      if (leaf.kind == ValueKind::Seed)
        note(role.scalars.seed);
      for (const ProgramParameter &entry : role.parameters)
        if (leaf.kind == ValueKind::Parameter && entry.names[0] == leaf.name)
          note(entry.value);
      for (const ProgramBuffer &entry : role.buffers)
        if ((leaf.kind == ValueKind::Buffer ||
             leaf.kind == ValueKind::Constant) &&
            entry.names[0] == leaf.name)
          note(entry.value);
      for (const ProgramInput &entry : role.inputs)
        if (leaf.kind == ValueKind::Input && entry.name == leaf.name)
          note(entry.value);
    }
  }

  const StrategySpace &space;
  const planner::Resolved &resolved;
  const Program &program;
  /// Steps to be noted before an instruction, by stage, segment and index.
  std::map<std::tuple<size_t, SegmentKind, size_t>, std::vector<size_t>> ends;
  /// By rank; by step and unit; by result.
  std::vector<std::map<std::pair<size_t, int64_t>, std::vector<at::Tensor>>>
      ranks;
  std::map<std::pair<ValueId, int64_t>, at::Tensor> leaves;
};

std::optional<Error> run(const planner::Resolved &resolved, StepTrace &trace) {
  auto result = runCase(resolved.program, [&](int64_t rank, const auto &place,
                                              const auto &values) {
    trace.observe(rank, place, values);
  });
  if (!result)
    return result.error();
  return std::nullopt;
}

std::string nameOf(const Graph &graph, OpId id) {
  const Op &op = graph.ops[id];
  const std::string origin = originText(op.module, op.source);
  return fmt::format("{}, op {}{}{}", op.name, id, origin.empty() ? "" : " of ",
                     origin);
}

} // namespace

std::string describe(const StepFault &fault, const Graph &graph) {
  const ResolvedStep &step = fault.step;
  const OpId maker =
      step.op != None ? step.op : graph.values[fault.value].producer;
  std::string what = fmt::format("value {}", fault.value);
  if (maker != None)
    what += " of " + nameOf(graph, maker);
  else
    what += fmt::format(" '{}'", graph.values[fault.value].name);
  switch (step.kind) {
  case ResolvedStep::Kind::Op:
    what = nameOf(graph, step.op);
    break;
  case ResolvedStep::Kind::Reshard:
    what = fmt::format("reshard from {} to {} of {}", toString(step.from),
                       toString(step.to), what);
    break;
  case ResolvedStep::Kind::Transfer:
    what = fmt::format("transfer from stage {} of {}", step.peerStage, what);
    break;
  case ResolvedStep::Kind::Leaf:
  case ResolvedStep::Kind::Finish:
    what = "counts of " + what;
    break;
  }
  return fmt::format("{}: in stage {}, {} of unit {}, off by {:.3g}", what,
                     fault.stage, toString(step.segment), fault.unit,
                     fault.error);
}

Expected<std::optional<StepFault>>
firstFault(const StrategySpace &space, const planner::Resolved &resolved) {
  const Program &program = resolved.program;
  Expected<planner::Resolved> alone = planner::resolve(
      space, planner::oneProcess(space.graph(), space, program.globalRows));
  if (!alone)
    return alone.error();
  StepTrace expected(space, *alone), actual(space, resolved);
  if (auto error = run(*alone, expected))
    return *error;
  if (auto error = run(resolved, actual))
    return *error;
  const auto values = expected.wholeValues();
  double largest = 0;
  for (const auto &[key, tensor] : values)
    largest = std::max(largest, largestEntry(tensor));

  auto check = [&](SegmentKind segment, size_t stage,
                   int64_t localUnit) -> std::optional<StepFault> {
    const auto &steps = resolved.steps[stage];
    for (size_t s = 0; s < steps.size(); ++s) {
      if (steps[s].segment != segment)
        continue;
      for (size_t r = 0; r < steps[s].made.size(); ++r)
        for (const auto &[unit, whole] :
             actual.assembled(stage, s, r, localUnit)) {
          const ValueId value = actual.valueOf(steps[s], r);
          auto found = values.find({value, unit});
          if (found == values.end())
            found = values.find({value, -1});
          if (found == values.end())
            continue;
          const double error =
              errorOf(whole, found->second, FloorShare * largest);
          if (!(error <= Limit))
            return StepFault{steps[s], static_cast<int>(stage), unit, value,
                             error};
        }
    }
    return std::nullopt;
  };
  const size_t stages = resolved.steps.size();
  for (int64_t unit = 0; unit < program.unitsPerReplica; ++unit)
    for (size_t stage = 0; stage < stages; ++stage)
      if (auto fault = check(SegmentKind::Count, stage, unit))
        return fault;
  for (size_t stage = 0; stage < stages; ++stage)
    if (auto fault = check(SegmentKind::Begin, stage, -1))
      return fault;
  for (int64_t unit = 0; unit < program.unitsPerReplica; ++unit) {
    for (size_t stage = 0; stage < stages; ++stage)
      if (auto fault = check(SegmentKind::Forward, stage, unit))
        return fault;
    for (size_t stage = stages; stage-- > 0;)
      if (auto fault = check(SegmentKind::Backward, stage, unit))
        return fault;
  }
  return std::optional<StepFault>();
}

std::string wiringFault(const Graph &graph, const Graph &wired) {
  for (OpId id = 0; id < static_cast<OpId>(graph.ops.size()); ++id) {
    const Op &op = graph.ops[id], &other = wired.ops[id];
    if (op.name != other.name)
      return fmt::format("{}, runs as {}", nameOf(graph, id), other.name);
    if (op.args != other.args)
      return nameOf(graph, id) + ", has other arguments";
    for (size_t k = 0; k < op.operands.size(); ++k)
      if (op.operands[k] != other.operands[k])
        return fmt::format("{}, reads value {} as operand {}, not value {}",
                           nameOf(graph, id), other.operands[k], k,
                           op.operands[k]);
  }
  return "";
}

std::string locate(const StrategySpace &space,
                   const planner::Decisions &decisions) {
  std::string text;
  if (Expected<GlobalView> view = globalView(space, decisions); !view)
    text = "  no global view: " + toString(view.error()) + "\n";
  else if (std::string fault = wiringFault(space.graph(), view->graph);
           !fault.empty())
    text = "  the global view is wired otherwise: " + fault + "\n";
  else
    text = "  the global view is the one-process program\n";
  Expected<planner::Resolved> resolved = planner::resolve(space, decisions);
  if (!resolved)
    return text;
  auto fault = firstFault(space, *resolved);
  if (!fault)
    return text + "  " + toString(fault.error()) + "\n";
  if (!*fault)
    return text + "  every step of every unit is right: the sums or updates at "
                  "the end are not\n";
  return text + "  first at fault: " + describe(**fault, space.graph()) + "\n";
}

} // namespace monarch::test
