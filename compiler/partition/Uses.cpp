//===- Uses.cpp - what each step and segment of a role hands on -----------===//

#include "compiler/partition/Uses.h"

#include <algorithm>

namespace monarch::parts {

namespace {

using planner::ResolvedStep;
using Tensor = std::pair<ValueId, Layout>;

class UseFinder {
public:
  UseFinder(const Role &role, const std::vector<ResolvedStep> &steps,
            const planner::Resolved &resolved, const Graph &graph)
      : role(role), steps(steps), resolved(resolved), graph(graph) {}

  RolePieces run() {
    cutIntoPieces();
    for (size_t s = 0; s < result.segments.size(); ++s)
      for (Piece &piece : result.segments[s].pieces)
        if (piece.step)
          followGlobals(piece, s);
    for (size_t g = 0; g < result.globals.size(); ++g)
      if (result.globals[g].leavesSegment && madeIn[g] != Nowhere)
        result.segments[madeIn[g]].leavingGlobals.push_back(
            static_cast<int>(g));
    followLocals();
    return std::move(result);
  }

private:
  void cutIntoPieces() {
    for (const Segment &segment : role.segments) {
      std::vector<const ResolvedStep *> own;
      for (const ResolvedStep &step : steps)
        if (step.segment == segment.kind)
          own.push_back(&step);
      std::stable_sort(own.begin(), own.end(), [](auto *a, auto *b) {
        return std::pair(a->begin, a->end) < std::pair(b->begin, b->end);
      });
      SegmentPieces &made = result.segments.emplace_back();
      size_t position = 0;
      auto fill = [&](size_t end) {
        if (position < end)
          made.pieces.push_back({nullptr, position, end, {}, {}, {}});
        position = end;
      };
      for (const ResolvedStep *step : own) {
        fill(step->begin);
        made.pieces.push_back({step, step->begin, step->end, {}, {}, {}});
        position = step->end;
      }
      fill(segment.instructions.size());
    }
  }

  //===- Tensors of the graph ---------------------------------------------===//

  int make(ValueId value, const Layout &layout, size_t segment,
           const Piece *maker) {
    const int number = static_cast<int>(result.globals.size());
    result.globals.push_back({value, layout, false});
    madeIn.push_back(segment);
    makers.push_back(maker);
    known[{value, layout}].push_back(number);
    return number;
  }

  /// True when instructions of one piece read what the other's make.
  bool readsFrom(const Piece &piece, size_t segment, const Piece &maker,
                 size_t makerSegment) const {
    for (size_t m = maker.begin; m < maker.end; ++m)
      for (int32_t made : role.segments[makerSegment].instructions[m].results)
        for (size_t i = piece.begin; i < piece.end; ++i) {
          const Instruction &reader = role.segments[segment].instructions[i];
          if (made != None && reader.kind != InstructionKind::Free &&
              std::find(reader.operands.begin(), reader.operands.end(), made) !=
                  reader.operands.end())
            return true;
        }
    return false;
  }

  /// The tensor of this value in this layout: of several (made again in the
  /// backward, say) the one that the piece reads, else the latest. Operands of
  /// which the shape alone matters come in their home layout. What no step here
  /// makes is a leaf.
  int find(const Piece &piece, size_t segment, ValueId value,
           const Layout &layout) {
    auto found = known.find({value, layout});
    if (found == known.end() && graph.values[value].producer != None)
      found = known.find({value, resolved.layout[value]});
    if (found == known.end()) {
      const int leaf = make(value, layout, Nowhere, nullptr);
      result.leaves.push_back(leaf);
      return leaf;
    }
    const std::vector<int> &same = found->second;
    if (same.size() > 1)
      for (int tensor : same)
        if (makers[tensor] &&
            readsFrom(piece, segment, *makers[tensor], madeIn[tensor]))
          return tensor;
    return same.back();
  }

  void read(Piece &piece, size_t segment, ValueId value, const Layout &layout) {
    const int tensor = find(piece, segment, value, layout);
    if (madeIn[tensor] != segment)
      result.globals[tensor].leavesSegment = true;
    piece.reads.push_back(tensor);
  }

  void followGlobals(Piece &piece, size_t segment) {
    const ResolvedStep &step = *piece.step;
    switch (step.kind) {
    case ResolvedStep::Kind::Op: {
      const Op &op = graph.ops[step.op];
      for (size_t k = 0; k < op.operands.size(); ++k)
        read(piece, segment, op.operands[k], step.operandLayouts[k]);
      for (size_t r = 0; r < op.results.size(); ++r)
        if (op.results[r] != None)
          piece.makes.push_back(
              make(op.results[r], step.resultLayouts[r], segment, &piece));
      return;
    }
    case ResolvedStep::Kind::Reshard:
      read(piece, segment, step.value, step.from);
      piece.makes.push_back(make(step.value, step.to, segment, &piece));
      return;
    case ResolvedStep::Kind::Transfer:
      // The step's end moves gradients, norms and parameters: no value of the
      // graph.
      if (step.segment == SegmentKind::Step)
        return;
      if (sends(piece))
        read(piece, segment, step.value, step.from);
      else
        piece.makes.push_back(make(step.value, step.to, segment, &piece));
      return;
    case ResolvedStep::Kind::Leaf:
      piece.makes.push_back(make(step.value, step.to, segment, &piece));
      return;
    case ResolvedStep::Kind::Finish:
      // Sums of gradients and losses and new buffers read a value; reciprocals
      // of counts are one. The rest is about accumulators.
      if (step.segment == SegmentKind::Begin)
        piece.makes.push_back(
            make(step.value, resolved.layout[step.value], segment, &piece));
      else if (step.segment == SegmentKind::Forward ||
               step.segment == SegmentKind::Backward)
        read(piece, segment, step.value, step.from);
      return;
    }
  }

  bool sends(const Piece &piece) const {
    for (const Segment &segment : role.segments)
      if (segment.kind == piece.step->segment)
        for (size_t i = piece.begin; i < piece.end; ++i)
          if (segment.instructions[i].kind == InstructionKind::Send)
            return true;
    return false;
  }

  //===- Local tensors ----------------------------------------------------===//

  void followLocals() {
    // Where each value is made: segment and piece; leaves are made in none.
    std::vector<std::pair<size_t, size_t>> definition(role.values.size(),
                                                      {Nowhere, Nowhere});
    std::vector<char> leavesPiece(role.values.size()),
        leavesSegment(role.values.size());
    auto forEach = [&](auto visit) {
      for (size_t s = 0; s < result.segments.size(); ++s)
        for (size_t p = 0; p < result.segments[s].pieces.size(); ++p) {
          const Piece &piece = result.segments[s].pieces[p];
          for (size_t i = piece.begin; i < piece.end; ++i)
            visit(s, p, role.segments[s].instructions[i]);
        }
    };
    forEach([&](size_t s, size_t p, const Instruction &instruction) {
      for (int32_t value : instruction.results)
        if (value != None)
          definition[value] = {s, p};
    });
    forEach([&](size_t s, size_t p, const Instruction &instruction) {
      for (int32_t value : instruction.operands)
        if (value != None) {
          leavesPiece[value] |= definition[value] != std::pair(s, p);
          leavesSegment[value] |= definition[value].first != s;
        }
    });
    auto root = [&](int32_t value) {
      if (value != None)
        leavesPiece[value] = leavesSegment[value] = true;
    };
    for (const ProgramParameter &parameter : role.parameters)
      root(parameter.gradient);
    for (int32_t value : role.zeroed)
      root(value);
    root(role.scalars.random);
    root(role.scalars.loss);
    root(role.scalars.squaredNorm);
    root(role.scalars.seed);

    for (size_t v = 0; v < role.values.size(); ++v) {
      auto [s, p] = definition[v];
      if (s == Nowhere)
        continue;
      if (leavesPiece[v])
        result.segments[s].pieces[p].leaving.push_back(static_cast<int32_t>(v));
      if (leavesSegment[v])
        result.segments[s].leaving.push_back(static_cast<int32_t>(v));
    }
  }

  static constexpr size_t Nowhere = static_cast<size_t>(-1);
  const Role &role;
  const std::vector<ResolvedStep> &steps;
  const planner::Resolved &resolved;
  const Graph &graph;
  RolePieces result;
  /// Per global tensor: the segment and the piece that make it.
  std::vector<size_t> madeIn;
  std::vector<const Piece *> makers;
  std::map<Tensor, std::vector<int>> known;
};

} // namespace

RolePieces piecesOf(const Role &role, const std::vector<ResolvedStep> &steps,
                    const planner::Resolved &resolved, const Graph &graph) {
  return UseFinder(role, steps, resolved, graph).run();
}

} // namespace monarch::parts
