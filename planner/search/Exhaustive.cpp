//===- Exhaustive.cpp - branch and bound over every plan of a mesh --------===//
//
// Ops are decided in order. What those decided cost by themselves and for their
// operands, and the least that those to come can cost, is summed per stage; a
// step is never shorter than all units of its busiest stage. Leaves are priced
// through resolve.
//
//===----------------------------------------------------------------------===//
#include "planner/search/SearchContext.h"

#include <algorithm>
#include <limits>

namespace monarch::planner {

namespace {

constexpr size_t AllCombinations = std::numeric_limits<size_t>::max() / 2;

class Enumeration {
public:
  Enumeration(SearchContext &context, const Degrees &degrees,
              const MeshPlan &plan, std::optional<PricedPlan> &best)
      : context(context), degrees(degrees), plan(plan),
        table(context.table(degrees, plan, /*coarse=*/false)), unit(table.unit),
        best(best), walker(*unit.space, unit.rules, table.costs, table.options),
        ops(walkedOps(*unit.space)), units(context.workload.globalRows /
                                           degrees.unitRows / plan.replicas()) {
    walker.setSequence(ops);
    decides.assign(unit.graph->ops.size(), false);
    for (OpId op : unit.rules.decidingOps())
      decides[op] = true;
  }

  void run() {
    std::vector<size_t> cuts;
    chooseCut(cuts, 1);
  }

private:
  void chooseCut(std::vector<size_t> &cuts, size_t from) {
    size_t wanted = static_cast<size_t>(degrees.pp) - 1;
    if (cuts.size() == wanted) {
      stage = stagesFromCuts(*unit.space, unit.places, cuts);
      sumLeast();
      choice.assign(unit.graph->ops.size(), {});
      std::vector<int64_t> busy(degrees.pp, 0);
      decide(0, WalkState(), busy);
      return;
    }
    size_t left = wanted - cuts.size();
    for (size_t cut = from; cut + left <= unit.places.ops.size(); ++cut) {
      cuts.push_back(cut);
      chooseCut(cuts, cut + 1);
      cuts.pop_back();
    }
  }

  /// Per stage and place: the least that the ops from there on cost.
  void sumLeast() {
    leastAfter.assign(ops.size() + 1, std::vector<int64_t>(degrees.pp, 0));
    for (size_t i = ops.size(); i-- > 0;) {
      leastAfter[i] = leastAfter[i + 1];
      if (!decides[ops[i]])
        continue;
      int64_t least = std::numeric_limits<int64_t>::max();
      for (const OpOption &option : table.options.of(ops[i], AllCombinations))
        least = std::min(least, option.leastPicoseconds());
      leastAfter[i][stage[ops[i]]] += least;
    }
  }

  int64_t bound(const std::vector<int64_t> &busy, size_t place) const {
    int64_t slowest = 0;
    for (int64_t s = 0; s < degrees.pp; ++s)
      slowest = std::max(slowest, busy[s] + leastAfter[place][s]);
    return units * slowest;
  }

  void decide(size_t place, const WalkState &state, std::vector<int64_t> busy) {
    if (best && bound(busy, place) >= best->price.stepPicoseconds)
      return;
    if (place == ops.size())
      return priceLeaf();
    OpId op = ops[place];
    if (walker.isViewOfParameter(op))
      return decide(place + 1, state, std::move(busy));
    auto take = [&](const OpOption &option) {
      WalkState next = state;
      std::vector<int64_t> nextBusy = busy;
      nextBusy[stage[op]] += walker.apply(next, op, option, place).least();
      decide(place + 1, next, std::move(nextBusy));
    };
    if (!decides[op])
      return take(walker.follow(op, state, axes()));
    std::vector<const OpOption *> order;
    for (const OpOption &option : table.options.of(op, AllCombinations))
      order.push_back(&option);
    std::stable_sort(order.begin(), order.end(),
                     [](const OpOption *a, const OpOption *b) {
                       return a->leastPicoseconds() < b->leastPicoseconds();
                     });
    for (const OpOption *option : order) {
      choice[op] = option->choice;
      take(*option);
    }
  }

  size_t axes() const { return table.mesh.plan.mesh.axes.size(); }

  void priceLeaf() {
    std::optional<PricedPlan> priced = context.priced(
        degrees, assemble(*unit.space, plan, choice, stage,
                          static_cast<int>(degrees.pp), context.workload));
    if (priced && context.fits(*priced) &&
        (!best || priced->price.stepPicoseconds < best->price.stepPicoseconds))
      best = std::move(priced);
  }

  SearchContext &context;
  const Degrees &degrees;
  const MeshPlan &plan;
  MeshTable &table;
  const Unit &unit;
  std::optional<PricedPlan> &best;
  Walker walker;
  std::vector<OpId> ops;
  int64_t units;
  std::vector<bool> decides;
  std::vector<int> stage;
  std::vector<std::vector<int>> choice;
  std::vector<std::vector<int64_t>> leastAfter;
};

} // namespace

int64_t countPlans(SearchContext &context, const Degrees &degrees,
                   const MeshPlan &plan, int64_t limit) {
  MeshTable &table = context.table(degrees, plan, /*coarse=*/false);
  int64_t count = 1;
  int64_t places = static_cast<int64_t>(table.unit.places.ops.size()) - 1;
  for (int64_t i = 0; i + 1 < degrees.pp; ++i) // binomial(places, pp - 1)
    if ((count = count * (places - i) / (i + 1)) > limit)
      return limit + 1;
  for (OpId op : table.unit.rules.decidingOps()) {
    size_t options = combinations(table.unit.rules, op, table.mesh.plan,
                                  static_cast<size_t>(limit))
                         .size();
    if ((count *= static_cast<int64_t>(options)) > limit)
      return limit + 1;
  }
  return count;
}

bool searchExhaustively(SearchContext &context, const Degrees &degrees,
                        const MeshPlan &plan, int64_t leafLimit,
                        std::optional<PricedPlan> &best) {
  if (countPlans(context, degrees, plan, leafLimit) > leafLimit)
    return false;
  if (static_cast<int64_t>(context.table(degrees, plan, /*coarse=*/false)
                               .unit.places.ops.size()) >= degrees.pp)
    Enumeration(context, degrees, plan, best).run();
  return true;
}

} // namespace monarch::planner
