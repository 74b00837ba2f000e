// Says how long each value lives, reuses a buffer that an all-reduce would copy
// for nothing, and frees every tensor after its last use.
#include "planner/resolve/Resolver.h"

#include <algorithm>

namespace monarch::planner {
namespace {

struct Use {
  SegmentKind segment;
  size_t position;
};

class LifetimeWriter {
public:
  LifetimeWriter(Role &role, std::vector<ResolvedStep> &steps)
      : role(role), steps(steps) {}

  void run() {
    scan();
    for (Segment &segment : role.segments)
      reuseCopiedBuffers(segment);
    scan();
    classify();
    for (Segment &segment : role.segments)
      writeFrees(segment);
    dropEmptySegments();
  }

private:
  Role &role;
  std::vector<ResolvedStep> &steps;
  std::vector<std::vector<Use>> uses; // per value, reads, in order
  std::vector<std::optional<Use>> definitions;
  std::set<int32_t> inputs;

  void scan() {
    uses.assign(role.values.size(), {});
    definitions.assign(role.values.size(), std::nullopt);
    inputs.clear();
    for (const ProgramInput &input : role.inputs)
      inputs.insert(input.value);
    for (const Segment &segment : role.segments)
      for (size_t i = 0; i < segment.instructions.size(); ++i) {
        for (int32_t v : segment.instructions[i].operands)
          if (v != None)
            uses[v].push_back({segment.kind, i});
        for (int32_t v : segment.instructions[i].results)
          if (v != None)
            definitions[v] = Use{segment.kind, i};
      }
  }

  int32_t root(int32_t value) const {
    while (role.values[value].aliasOf != None)
      value = role.values[value].aliasOf;
    return value;
  }

  // clone(x), all-reduce in place: x itself serves when it is a local tensor of
  // this segment that nothing reads, under any name, after the clone. A send
  // reads until its segment ends.
  void reuseCopiedBuffers(Segment &segment) {
    std::map<int32_t, std::vector<int32_t>> sharing;
    for (int32_t v = 0; v < static_cast<int32_t>(role.values.size()); ++v)
      sharing[root(v)].push_back(v);
    for (size_t i = 0; i + 1 < segment.instructions.size(); ++i) {
      Instruction &clone = segment.instructions[i];
      const Instruction &reduce = segment.instructions[i + 1];
      if (clone.kind != InstructionKind::Call || clone.name != "aten::clone" ||
          reduce.kind != InstructionKind::AllReduce ||
          reduce.operands[0] != clone.results[0])
        continue;
      const int32_t source = clone.operands[0];
      const int32_t base = root(source);
      const ProgramValue &value = role.values[source];
      if (source != base || value.lifetime != Lifetime::Local ||
          inputs.count(source) || !definitions[source] ||
          definitions[source]->segment != segment.kind)
        continue;
      const bool readLater = std::any_of(
          sharing[base].begin(), sharing[base].end(), [&](int32_t v) {
            return std::any_of(
                uses[v].begin(), uses[v].end(), [&](const Use &use) {
                  return use.segment != segment.kind || use.position > i ||
                         segment.instructions[use.position].kind ==
                             InstructionKind::Send;
                });
          });
      if (!readLater)
        rename(clone.results[0], source, segment, i);
    }
  }

  // The clone becomes a Free of nothing, dropped when frees are written.
  void rename(int32_t copy, int32_t source, Segment &segment, size_t at) {
    for (Segment &other : role.segments)
      for (Instruction &instruction : other.instructions) {
        std::replace(instruction.operands.begin(), instruction.operands.end(),
                     copy, source);
        std::replace(instruction.results.begin(), instruction.results.end(),
                     copy, source);
      }
    for (ResolvedStep &step : steps)
      std::replace(step.made.begin(), step.made.end(), copy, source);
    for (ProgramValue &value : role.values)
      if (value.aliasOf == copy)
        value.aliasOf = source;
    if (role.scalars.loss == copy)
      role.scalars.loss = source;
    if (role.scalars.squaredNorm == copy)
      role.scalars.squaredNorm = source;
    if (role.values[copy].lifetime == Lifetime::Carried)
      role.values[source].lifetime = Lifetime::Carried;
    Instruction nothing;
    nothing.kind = InstructionKind::Free;
    segment.instructions[at] = std::move(nothing);
    scan();
  }

  void classify() {
    for (size_t v = 0; v < role.values.size(); ++v) {
      ProgramValue &value = role.values[v];
      if (value.lifetime != Lifetime::Local || !definitions[v])
        continue;
      for (const Use &use : uses[v])
        if (use.segment != definitions[v]->segment)
          value.lifetime = Lifetime::Saved;
    }
  }

  /// Position after which the value is dropped in this segment, if it is.
  std::optional<size_t> dropAfter(int32_t v, SegmentKind kind) const {
    const ProgramValue &value = role.values[v];
    if (value.lifetime == Lifetime::Persistent ||
        value.lifetime == Lifetime::Carried)
      return std::nullopt;
    std::optional<size_t> last;
    bool laterSegment = false;
    for (const Use &use : uses[v])
      if (use.segment == kind)
        last = use.position;
      else if (use.segment > kind)
        laterSegment = true;
    if (inputs.count(v))
      return last; // filled again for each segment
    if (laterSegment)
      return std::nullopt;
    if (!last && definitions[v] && definitions[v]->segment == kind)
      last = definitions[v]->position;
    return last;
  }

  void writeFrees(Segment &segment) {
    std::map<size_t, std::vector<int32_t>> drops;
    for (int32_t v = 0; v < static_cast<int32_t>(role.values.size()); ++v)
      if (const std::optional<size_t> at = dropAfter(v, segment.kind))
        drops[*at].push_back(v);
    std::vector<Instruction> written;
    std::vector<size_t> newIndex;
    for (size_t i = 0; i < segment.instructions.size(); ++i) {
      newIndex.push_back(written.size());
      if (segment.instructions[i].kind != InstructionKind::Free)
        written.push_back(std::move(segment.instructions[i]));
      if (const auto it = drops.find(i); it != drops.end()) {
        Instruction free;
        free.kind = InstructionKind::Free;
        free.operands = it->second;
        written.push_back(std::move(free));
      }
    }
    newIndex.push_back(written.size());
    segment.instructions = std::move(written);
    for (ResolvedStep &step : steps)
      if (step.segment == segment.kind) {
        step.begin = newIndex[step.begin];
        step.end = newIndex[step.end];
      }
  }

  void dropEmptySegments() {
    std::erase_if(role.segments, [](const Segment &segment) {
      return segment.instructions.empty();
    });
  }
};

} // namespace

void finishLifetimes(Role &role, std::vector<ResolvedStep> &steps) {
  LifetimeWriter(role, steps).run();
}

} // namespace monarch::planner
