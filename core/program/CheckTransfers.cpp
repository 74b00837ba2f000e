//===- CheckTransfers.cpp - stages feed each other and reach the end ------===//
//
// Sends and receives pair up by tag, with the size and type of each other at
// every rank. Then the stages are run against each other. One process per stage
// is enough: all ranks of a stage issue the same stream, so an order of steps
// in which every stage gets through is one for its ranks too, each collective
// being met by all members at the same step. A receive waits for the send of
// its unit; after the backward of a unit, and at the end, the runtime waits
// until its earlier sends have arrived.
//
//===----------------------------------------------------------------------===//
#include "core/program/Checks.h"

#include <algorithm>
#include <fmt/format.h>
#include <set>

namespace monarch {

namespace {

struct End {
  int stage = -1;
  SegmentKind segment = SegmentKind::Forward;
  size_t index = 0;
  const Instruction *instruction = nullptr;
};

/// What a stage does that others can see.
struct Event {
  enum class Kind : uint8_t { Send, Receive, Wait };
  Kind kind;
  int64_t tag;
  int64_t unit;
  SegmentKind segment;
  size_t index;
};

class TransferChecker {
public:
  TransferChecker(const Program &program, const std::vector<StageSizes> &sizes,
                  Findings &findings)
      : program(program), sizes(sizes), findings(findings) {}

  void run() {
    collect(InstructionKind::Send, sends);
    collect(InstructionKind::Receive, receives);
    bool matched = true;
    for (const auto &[tag, send] : sends)
      matched = match(tag, send) && matched;
    for (const auto &[tag, receive] : receives)
      if (!sends.count(tag)) {
        fail(receive, fmt::format("tag {} is never sent", tag));
        matched = false;
      }
    if (matched)
      simulate();
  }

private:
  void fail(const End &end, const std::string &what) {
    const Role &role = program.roles[end.stage];
    findings.add("MP2143", what,
                 placeOf(role, *segmentOf(role, end.segment), end.index));
  }

  void collect(InstructionKind kind, std::map<int64_t, End> &ends) {
    for (const Role &role : program.roles)
      for (const Segment &segment : role.segments)
        for (size_t i = 0; i < segment.instructions.size(); ++i) {
          const Instruction &instruction = segment.instructions[i];
          if (instruction.kind != kind)
            continue;
          End end{role.stage, segment.kind, i, &instruction};
          if (!ends.emplace(instruction.tag, end).second)
            fail(end, fmt::format("tag {} is used twice", instruction.tag));
        }
  }

  bool match(int64_t tag, const End &send) {
    auto found = receives.find(tag);
    if (found == receives.end()) {
      fail(send, fmt::format("tag {} is never received", tag));
      return false;
    }
    const End &receive = found->second;
    if (send.instruction->peerStage != receive.stage ||
        receive.instruction->peerStage != send.stage) {
      fail(receive, fmt::format("tag {} goes from stage {} to {}, and is "
                                "received at {} from {}",
                                tag, send.stage, send.instruction->peerStage,
                                receive.stage, receive.instruction->peerStage));
      return false;
    }
    int32_t from = send.instruction->operands[0];
    int32_t to = receive.instruction->results[0];
    for (int64_t rank = 0; rank < program.mesh.size(); ++rank) {
      TensorType sent = sizes[send.stage].tensor(from, rank);
      TensorType expected = sizes[receive.stage].tensor(to, rank);
      if (sent.type == expected.type && sent.shape == expected.shape)
        continue;
      fail(receive,
           fmt::format("rank {} expects {} [{}] where {} [{}] is sent", rank,
                       toString(expected.type), fmt::join(expected.shape, ", "),
                       toString(sent.type), fmt::join(sent.shape, ", ")));
      return false;
    }
    return true;
  }

  std::vector<Event> eventsOf(const Role &role) const {
    std::map<SegmentKind, std::vector<Event>> bySegment;
    for (const Segment &segment : role.segments)
      for (size_t i = 0; i < segment.instructions.size(); ++i) {
        const Instruction &instruction = segment.instructions[i];
        bool sends = instruction.kind == InstructionKind::Send;
        if (sends || instruction.kind == InstructionKind::Receive)
          bySegment[segment.kind].push_back(
              {sends ? Event::Kind::Send : Event::Kind::Receive,
               instruction.tag, 0, segment.kind, i});
      }
    std::vector<Event> events;
    std::set<int64_t> units = {-1};
    for (const Slot &slot : role.schedule) {
      units.insert(slot.unit);
      for (Event event : bySegment[slot.segment]) {
        event.unit = slot.unit;
        events.push_back(event);
      }
      if (slot.segment == SegmentKind::Backward)
        events.push_back({Event::Kind::Wait, 0, slot.unit - 1, slot.segment,
                          bySegment[slot.segment].size()});
    }
    for (int64_t unit : units)
      events.push_back({Event::Kind::Wait, 0, unit, SegmentKind::Step, 0});
    return events;
  }

  void simulate() {
    std::vector<std::vector<Event>> events;
    for (const Role &role : program.roles)
      events.push_back(eventsOf(role));
    std::vector<size_t> next(events.size(), 0);
    std::set<std::pair<int64_t, int64_t>> onTheWay; // tag, unit
    // Sends not yet received, by stage and unit.
    std::map<std::pair<size_t, int64_t>, int64_t> pending;
    auto advance = [&](size_t stage) {
      const Event &event = events[stage][next[stage]];
      switch (event.kind) {
      case Event::Kind::Send:
        onTheWay.emplace(event.tag, event.unit);
        ++pending[{stage, event.unit}];
        return true;
      case Event::Kind::Receive: {
        if (!onTheWay.erase({event.tag, event.unit}))
          return false;
        --pending[{static_cast<size_t>(sends.at(event.tag).stage), event.unit}];
        return true;
      }
      case Event::Kind::Wait:
        return pending[{stage, event.unit}] == 0;
      }
      return false;
    };
    for (bool moved = true; moved;) {
      moved = false;
      for (size_t stage = 0; stage < events.size(); ++stage)
        while (next[stage] < events[stage].size() && advance(stage)) {
          ++next[stage];
          moved = true;
        }
    }
    for (size_t stage = 0; stage < events.size(); ++stage)
      if (next[stage] < events[stage].size())
        reportStuck(program.roles[stage], events[stage][next[stage]]);
  }

  void reportStuck(const Role &role, const Event &event) {
    std::string place = fmt::format("stage {}, end of the step", role.stage);
    if (const Segment *segment = segmentOf(role, event.segment);
        segment && event.kind != Event::Kind::Wait)
      place = placeOf(role, *segment, event.index);
    findings.add(
        "MP2144",
        event.kind == Event::Kind::Wait
            ? fmt::format("what unit {} sends never arrives", event.unit)
            : fmt::format("waits forever for tag {} of unit {}", event.tag,
                          event.unit),
        place);
  }

  const Program &program;
  const std::vector<StageSizes> &sizes;
  Findings &findings;
  std::map<int64_t, End> sends, receives;
};

} // namespace

void checkTransfers(const Program &program,
                    const std::vector<StageSizes> &sizes, Findings &findings) {
  TransferChecker(program, sizes, findings).run();
}

} // namespace monarch
