// 1F1B: each stage warms up with as many forwards as stages follow it, then
// alternates, then drains. GPipe: all forwards, then all backwards. A unit's
// saved values live between its two slots.
#include "planner/resolve/Resolver.h"

#include <algorithm>

namespace monarch::planner {

void Resolver::writeSchedules() {
  const int64_t units = program.unitsPerReplica;
  for (Role &role : program.roles) {
    const auto has = [&](SegmentKind kind) {
      return !segmentOf(role, kind).instructions.empty();
    };
    std::vector<Slot> &schedule = role.schedule;
    if (has(SegmentKind::Count))
      for (int64_t unit = 0; unit < units; ++unit)
        schedule.push_back({SegmentKind::Count, unit});
    if (has(SegmentKind::Begin))
      schedule.push_back({SegmentKind::Begin, -1});
    const bool trains =
        graph.loss != None && !graph.parameters.empty() &&
        std::any_of(graph.ops.begin(), graph.ops.end(),
                    [](const Op &op) { return op.phase == Phase::Backward; });
    const int64_t ahead =
        trains && decisions.schedule == ScheduleKind::OneFOneB
            ? std::min<int64_t>(decisions.stages - 1 - role.stage, units)
            : units;
    // A stage without ops in a phase has no such segment to run.
    const auto run = [&](SegmentKind kind, int64_t unit) {
      if (has(kind))
        schedule.push_back({kind, unit});
    };
    int64_t forward = 0, backward = 0;
    for (; forward < ahead; ++forward)
      run(SegmentKind::Forward, forward);
    for (; trains && backward < units; ++backward) {
      if (forward < units)
        run(SegmentKind::Forward, forward++);
      run(SegmentKind::Backward, backward);
    }
    if (has(SegmentKind::Step))
      schedule.push_back({SegmentKind::Step, -1});
  }
}

} // namespace monarch::planner
