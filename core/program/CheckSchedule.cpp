//===- CheckSchedule.cpp - what runs when ---------------------------------===//
//
// One pass over the slots: each segment runs for each unit once (Begin and Step
// once), and in an order that data can follow.
//
//===----------------------------------------------------------------------===//
#include "core/program/Checks.h"

#include <fmt/format.h>

namespace monarch {

namespace {

bool isPerUnit(SegmentKind kind) {
  return kind == SegmentKind::Count || kind == SegmentKind::Forward ||
         kind == SegmentKind::Backward;
}

} // namespace

void checkSchedule(const Program &program, const Role &role,
                   Findings &findings) {
  std::map<SegmentKind, std::map<int64_t, int64_t>> runs;
  for (size_t i = 0; i < role.schedule.size(); ++i) {
    const auto &[kind, unit] = role.schedule[i];
    auto fail = [&, kind = kind, unit = unit](const char *what) {
      findings.add("MP2130",
                   fmt::format("{} of unit {} {}", toString(kind), unit, what),
                   fmt::format("stage {}, schedule[{}]", role.stage, i));
    };
    if (!segmentOf(role, kind))
      fail("is a segment that the role does not have");
    if (isPerUnit(kind) ? unit < 0 || unit >= program.unitsPerReplica
                        : unit != -1)
      fail("is not a unit of this segment");
    if (runs[kind][unit]++ > 0)
      fail("runs twice");
    if (kind == SegmentKind::Count && runs.count(SegmentKind::Begin))
      fail("runs after Begin");
    bool early = kind == SegmentKind::Count || kind == SegmentKind::Begin;
    if (early &&
        (runs.count(SegmentKind::Forward) || runs.count(SegmentKind::Backward)))
      fail("runs after a forward or backward");
    if (kind == SegmentKind::Backward &&
        segmentOf(role, SegmentKind::Forward) &&
        !runs[SegmentKind::Forward].count(unit))
      fail("runs before the unit's forward");
    if (kind != SegmentKind::Step && runs.count(SegmentKind::Step))
      fail("runs after Step");
  }
  for (const Segment &segment : role.segments) {
    if (segment.instructions.empty())
      continue;
    size_t expected = isPerUnit(segment.kind)
                          ? static_cast<size_t>(program.unitsPerReplica)
                          : 1;
    if (size_t count = runs[segment.kind].size(); count < expected)
      findings.add("MP2130",
                   fmt::format("{} runs for {} of {} units",
                               toString(segment.kind), count, expected),
                   fmt::format("stage {}, schedule", role.stage));
  }
}

} // namespace monarch
