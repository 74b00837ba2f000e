#include "planner/resolve/DeriveLayouts.h"

#include <algorithm>

namespace monarch::planner {
namespace {

class Deriver {
public:
  Deriver(const StrategySpace &space, const Decisions &decisions)
      : space(space), decisions(decisions), graph(space.graph()),
        axes(decisions.mesh.axes.size()) {}

  DerivedLayouts run() {
    deriveStages();
    deriveLeaves();
    deriveParameterChains();
    out.ops.resize(graph.ops.size());
    resolved.assign(graph.ops.size(), std::vector<int>(axes, 0));
    for (OpId id = 0; id < static_cast<OpId>(graph.ops.size()); ++id)
      deriveOp(id);
    return std::move(out);
  }

private:
  const StrategySpace &space;
  const Decisions &decisions;
  const Graph &graph;
  const size_t axes;
  DerivedLayouts out;
  /// Choice of each forward op and sum per axis, Follow replaced.
  std::vector<std::vector<int>> resolved;
  /// Followers of parameters: what the first consumer wants, per axis.
  std::vector<std::vector<AxisState>> wanted;
  std::vector<bool> onParameterChain;

  bool isSum(const Op &op) const {
    return op.phase == Phase::Backward && op.forward == None;
  }

  // Backward ops run where their forward op ran. A sum of cotangents runs at
  // the largest stage of its consumers: a gradient only ever travels down.
  void deriveStages() {
    out.stage.assign(graph.ops.size(), None);
    std::vector<int> consumer(graph.values.size(), None);
    // A gradient is wanted where its parameter is last used.
    std::vector<int> lastUse(graph.values.size(), None);
    for (OpId id = 0; id < static_cast<OpId>(graph.ops.size()); ++id)
      if (graph.ops[id].phase == Phase::Forward && !space.isCloned(id))
        for (ValueId operand : graph.ops[id].operands)
          if (operand != None)
            lastUse[operand] = std::max(lastUse[operand], decisions.stage[id]);
    for (const Parameter &parameter : graph.parameters)
      for (ValueId gradient : parameter.gradients)
        consumer[gradient] = lastUse[parameter.value];
    for (OpId id = static_cast<OpId>(graph.ops.size()) - 1; id >= 0; --id) {
      const Op &op = graph.ops[id];
      int stage = None;
      if (op.phase == Phase::Forward)
        stage = space.isCloned(id) ? None : decisions.stage[id];
      else if (op.forward != None)
        stage = decisions.stage[op.forward];
      else
        for (ValueId result : op.results)
          if (result != None)
            stage = std::max(stage, consumer[result]);
      out.stage[id] = stage;
      for (ValueId operand : op.operands)
        if (operand != None)
          consumer[operand] = std::max(consumer[operand], stage);
    }
    out.homeStage.assign(graph.values.size(), None);
    for (size_t id = 0; id < graph.values.size(); ++id)
      if (graph.values[id].producer != None)
        out.homeStage[id] = out.stage[graph.values[id].producer];
  }

  void deriveLeaves() {
    out.home.assign(graph.values.size(), Layout::replicated(axes));
    for (size_t p = 0; p < graph.parameters.size(); ++p)
      out.home[graph.parameters[p].value] = decisions.parameterLayout[p];
  }

  int choiceWithResult(OpId op, const AxisState &state) const {
    const int count = static_cast<int>(space.choices(op).size());
    for (int c = 0; c < count; ++c) {
      const Column &column = space.columnOf(op, c);
      if (!column.results.empty() && column.results[0] == state)
        return c;
    }
    return 0;
  }
  int choiceWithOperand(OpId op, const AxisState &state) const {
    const int count = static_cast<int>(space.choices(op).size());
    for (int c = 0; c < count; ++c) {
      const Column &column = space.columnOf(op, c);
      if (!column.operands.empty() && column.operands[0] == state)
        return c;
    }
    return 0;
  }

  // A view or transpose of a parameter follows its consumer: walked backwards,
  // so that the first consumer has the last word.
  void deriveParameterChains() {
    onParameterChain.assign(graph.ops.size(), false);
    wanted.assign(graph.values.size(), {});
    for (OpId id = 0; id < static_cast<OpId>(graph.ops.size()); ++id) {
      const Op &op = graph.ops[id];
      const OpRule *rule = space.rule(id);
      if (op.phase != Phase::Forward || !rule || !rule->follows ||
          op.operands.size() != 1 || op.results.size() != 1)
        continue;
      const Value &operand = graph.values[op.operands[0]];
      onParameterChain[id] =
          operand.kind == ValueKind::Parameter ||
          (operand.producer != None && onParameterChain[operand.producer]);
    }
    for (OpId id = static_cast<OpId>(graph.ops.size()) - 1; id >= 0; --id) {
      const Op &op = graph.ops[id];
      if (op.phase != Phase::Forward)
        continue;
      std::vector<std::vector<AxisState>> operandWants(op.operands.size());
      for (size_t t = 0; t < axes; ++t) {
        int choice = decisions.choice[id][t];
        if (choice == Follow) {
          if (!onParameterChain[id])
            continue;
          const auto &want = wanted[op.results[0]];
          choice = want.empty() ? 0 : choiceWithResult(id, want[t]);
        }
        const Column &column = space.columnOf(id, choice);
        for (size_t k = 0; k < op.operands.size(); ++k) {
          operandWants[k].resize(axes);
          operandWants[k][t] = column.operands[k];
        }
      }
      for (size_t k = 0; k < op.operands.size(); ++k) {
        const ValueId v = op.operands[k];
        if (v != None && !operandWants[k].empty() &&
            graph.values[v].producer != None &&
            onParameterChain[graph.values[v].producer])
          wanted[v] = operandWants[k];
      }
    }
  }

  int followedChoice(OpId id, size_t axis) const {
    const Op &op = graph.ops[id];
    if (onParameterChain[id]) {
      const auto &want = wanted[op.results[0]];
      return want.empty() ? 0 : choiceWithResult(id, want[axis]);
    }
    if (isSum(op))
      return followedSum(id, axis);
    if (op.operands.empty() || op.operands[0] == None)
      return 0;
    const AxisState &state = out.home[op.operands[0]].states[axis];
    return state.isReplicated() ? 0 : choiceWithOperand(id, state);
  }

  // Partial contributions are added first and reduced once; else the sum lies
  // like the value whose cotangent it is, or like its first split operand.
  int followedSum(OpId id, size_t axis) const {
    const Op &op = graph.ops[id];
    bool anyPartial = false, anySplit = false;
    AxisState split;
    for (ValueId operand : op.operands) {
      const AxisState &state = out.home[operand].states[axis];
      anyPartial |= state.isPartial();
      if (state.isSplit() && !anySplit) {
        anySplit = true;
        split = state;
      }
    }
    if (anyPartial && !anySplit)
      return choiceWithResult(id, AxisState::partial());
    const Value &sum = graph.values[op.results[0]];
    if (!sum.cotangentOf.empty()) {
      const AxisState &primal = out.home[sum.cotangentOf[0]].states[axis];
      if (primal.isSplit())
        return choiceWithResult(id, primal);
    }
    return anySplit ? choiceWithResult(id, split) : 0;
  }

  void deriveOp(OpId id) {
    const Op &op = graph.ops[id];
    OpLayouts &layouts = out.ops[id];
    layouts.operands.assign(op.operands.size(), Layout::replicated(axes));
    layouts.results.assign(op.results.size(), Layout::replicated(axes));
    layouts.labels.resize(axes);
    for (size_t t = 0; t < axes; ++t) {
      const Column column =
          op.forward != None ? backwardColumn(id, t) : ownColumn(id, t);
      for (size_t k = 0; k < op.operands.size(); ++k)
        layouts.operands[k].states[t] = column.operands[k];
      for (size_t k = 0; k < op.results.size(); ++k)
        layouts.results[k].states[t] = column.results[k];
      layouts.labels[t] = column.labels;
    }
    for (Layout &layout : layouts.operands)
      layout = canonical(std::move(layout));
    for (size_t k = 0; k < op.results.size(); ++k) {
      layouts.results[k] = canonical(std::move(layouts.results[k]));
      if (op.results[k] != None)
        out.home[op.results[k]] = layouts.results[k];
    }
  }

  Column ownColumn(OpId id, size_t axis) {
    int choice = decisions.choice[id][axis];
    if (choice == Follow)
      choice = followedChoice(id, axis);
    resolved[id][axis] = choice;
    return space.columnOf(id, choice);
  }

  Column backwardColumn(OpId id, size_t axis) const {
    const Op &op = graph.ops[id];
    const Choice &choice =
        space.choices(op.forward)[resolved[op.forward][axis]];
    const std::vector<SlotLabel> labels = space.inherited(id, choice);
    if (!labels.empty())
      return space.column(id, labels, -1);
    return space.column(id, {}, passingGroup(id, axis));
  }

  // Where nothing is split, partial operands may go on through a linear group:
  // those made by the same node always, cotangents from outside and partial
  // saved values if the plan says so. The group that covers most of them and
  // fewest others wins, then the first.
  int passingGroup(OpId id, size_t axis) const {
    const Op &op = graph.ops[id];
    const OpRule *rule = space.rule(id);
    if (!rule)
      return -1;
    const bool pass = decisions.passPartialCotangent[op.forward][axis];
    std::vector<bool> partial(op.operands.size(), false);
    bool any = false;
    for (size_t k = 0; k < op.operands.size(); ++k) {
      const ValueId v = op.operands[k];
      if (v == None || !out.home[v].states[axis].isPartial())
        continue;
      const OpId producer = graph.values[v].producer;
      const bool inside = producer != None &&
                          graph.ops[producer].phase == Phase::Backward &&
                          graph.ops[producer].forward == op.forward;
      partial[k] = inside || pass;
      any |= partial[k];
    }
    if (!any)
      return -1;
    int best = -1, bestScore = 0;
    for (size_t g = 0; g < rule->linear.size(); ++g) {
      int covered = 0, others = 0;
      for (int k : rule->linear[g].operands)
        ++(partial[k] ? covered : others);
      const int score = 2 * covered - others;
      if (covered > 0 && (best < 0 || score > bestScore)) {
        best = static_cast<int>(g);
        bestScore = score;
      }
    }
    return best;
  }
};

} // namespace

DerivedLayouts deriveLayouts(const StrategySpace &space,
                             const Decisions &decisions) {
  return Deriver(space, decisions).run();
}

} // namespace monarch::planner
