//===- Price.cpp - the predicted time of one step -------------------------===//
//
// Segments run once per unit, so each is boiled down first to a few events:
// stretches of work between sends and receives. The simulation then visits
// events, not instructions.
//
//===----------------------------------------------------------------------===//
#include "planner/cost/Price.h"

#include <algorithm>
#include <deque>
#include <fmt/format.h>

namespace monarch::planner {

namespace {

/// Work, then a send or a receive; the last event of a segment is work alone.
struct Event {
  enum class Kind : uint8_t { Work, Send, Receive } kind = Kind::Work;
  int64_t work = 0;
  int64_t tag = 0;
  int peer = -1;
  Links::Hop hop;
};

struct SegmentEvents {
  std::vector<Event> events;
  int64_t collective = 0;
  int64_t send = 0;
  int64_t busy = 0;
};

SegmentEvents boilDown(const Segment &segment, const RoleView &view, int stage,
                       const InstructionPricer &pricer) {
  SegmentEvents result;
  int64_t work = 0;
  for (const Instruction &instruction : segment.instructions) {
    InstructionCost cost = pricer.price(instruction, view, stage);
    work += cost.picoseconds;
    result.busy += cost.picoseconds;
    if (cost.kind == CostKind::Collective)
      result.collective += cost.picoseconds;
    if (cost.kind != CostKind::Send)
      continue;
    result.send += cost.picoseconds;
    bool isSend = instruction.kind == InstructionKind::Send;
    result.events.push_back({isSend ? Event::Kind::Send : Event::Kind::Receive,
                             work, instruction.tag, instruction.peerStage,
                             cost.hop});
    work = 0;
  }
  result.events.push_back({Event::Kind::Work, work, 0, -1, {}});
  return result;
}

/// Coordinates of the ranks that may be the slowest of a stage. Even tables
/// give the last block of each dim the most, so there it is the last rank.
std::vector<std::vector<int64_t>> slowestRanks(const Program &program) {
  std::vector<std::vector<int64_t>> ranks;
  int64_t size = program.mesh.size();
  int64_t first = program.tables.exceptions().empty() ? size - 1 : 0;
  for (int64_t rank = first; rank < size; ++rank)
    ranks.push_back(program.mesh.coordinates(rank));
  return ranks;
}

using StageSegments = std::map<SegmentKind, SegmentEvents>;

StageSegments segmentsOf(const Program &program, const Role &role,
                         const InstructionPricer &pricer) {
  StageSegments slowest;
  for (std::vector<int64_t> &coordinates : slowestRanks(program)) {
    RoleView view(role, program.mesh, program.tables, std::move(coordinates));
    for (const Segment &segment : role.segments) {
      SegmentEvents events = boilDown(segment, view, role.stage, pricer);
      SegmentEvents &entry = slowest[segment.kind];
      if (entry.events.empty() || events.busy > entry.busy)
        entry = std::move(events);
    }
  }
  return slowest;
}

/// One stage running through its schedule.
struct StageClock {
  const Role *role = nullptr;
  const StageSegments *segments = nullptr;
  size_t slot = 0;
  size_t event = 0;
  int64_t now = 0;
  bool done() const { return slot == role->schedule.size(); }
};

class Simulation {
public:
  Simulation(const Program &program,
             const std::vector<StageSegments> &segments) {
    for (size_t i = 0; i < program.roles.size(); ++i)
      clocks.push_back({&program.roles[i], &segments[i], 0, 0, 0});
  }

  /// False: some stage waits for a message that nobody sends.
  bool run() {
    bool moved = true;
    while (moved) {
      moved = false;
      for (StageClock &clock : clocks)
        moved |= advance(clock);
    }
    return std::all_of(clocks.begin(), clocks.end(),
                       [](const StageClock &clock) { return clock.done(); });
  }

  std::vector<StageClock> clocks;
  /// When the last send of the step has arrived.
  int64_t end = 0;

private:
  bool advance(StageClock &clock) {
    bool moved = false;
    while (!clock.done()) {
      auto found =
          clock.segments->find(clock.role->schedule[clock.slot].segment);
      if (found == clock.segments->end() ||
          clock.event == found->second.events.size()) {
        ++clock.slot;
        clock.event = 0;
        moved = true;
        continue;
      }
      if (!execute(clock, found->second.events[clock.event]))
        break;
      ++clock.event;
      moved = true;
    }
    end = std::max(end, clock.now);
    return moved;
  }

  bool execute(StageClock &clock, const Event &event) {
    if (event.kind == Event::Kind::Receive) {
      std::deque<int64_t> &queue = arrivals[event.tag];
      if (queue.empty())
        return false;
      clock.now = std::max(clock.now + event.work, queue.front());
      queue.pop_front();
      return true;
    }
    clock.now += event.work;
    if (event.kind == Event::Kind::Send) {
      int64_t &linkFree = links[{clock.role->stage, event.peer}];
      linkFree = std::max(linkFree, clock.now) + event.hop.busyPicoseconds;
      int64_t arrival = linkFree + event.hop.latencyPicoseconds;
      arrivals[event.tag].push_back(arrival);
      end = std::max(end, arrival);
    }
    return true;
  }

  std::map<int64_t, std::deque<int64_t>> arrivals;
  std::map<std::pair<int, int>, int64_t> links;
};

} // namespace

const StageTime &Price::busiestStage() const {
  return *std::max_element(stages.begin(), stages.end(),
                           [](const StageTime &a, const StageTime &b) {
                             return a.busyPicoseconds() < b.busyPicoseconds();
                           });
}

StepParts Price::parts() const {
  const StageTime &own = busiestStage();
  return {own.busyPicoseconds() - own.collectivePicoseconds -
              own.sendPicoseconds,
          own.collectivePicoseconds, own.sendPicoseconds, own.idlePicoseconds};
}

Expected<Price> price(const Program &program, const Cluster &cluster) {
  InstructionPricer pricer(cluster, program.mesh, program.optimizer);
  std::vector<StageSegments> segments;
  for (const Role &role : program.roles)
    segments.push_back(segmentsOf(program, role, pricer));

  Simulation simulation(program, segments);
  if (!simulation.run())
    return Error{"MP3001", ExitCode::Internal,
                 "the schedule of the program waits for itself", "pricing", ""};

  Price result;
  result.stepPicoseconds = simulation.end;
  for (size_t i = 0; i < program.roles.size(); ++i) {
    StageTime time;
    for (const Slot &slot : program.roles[i].schedule) {
      auto found = segments[i].find(slot.segment);
      if (found == segments[i].end())
        continue;
      const SegmentEvents &segment = found->second;
      int64_t &part =
          slot.segment == SegmentKind::Forward    ? time.forwardPicoseconds
          : slot.segment == SegmentKind::Backward ? time.backwardPicoseconds
                                                  : time.stepPicoseconds;
      part += segment.busy;
      time.collectivePicoseconds += segment.collective;
      time.sendPicoseconds += segment.send;
    }
    time.idlePicoseconds = result.stepPicoseconds - time.busyPicoseconds();
    result.stages.push_back(time);
  }
  return result;
}

} // namespace monarch::planner
