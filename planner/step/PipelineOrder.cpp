//===- PipelineOrder.cpp - what each stage of a pipeline does, in order ---===//
#include "planner/step/Pipeline.h"

#include <algorithm>
#include <array>

namespace monarch::planner {

namespace {

using Order = std::vector<PipelinePiece>;

/// All forwards, then all backwards.
Order allForwards(const PipelineShape &shape) {
  Order order;
  for (int64_t unit = 0; unit < shape.microBatches; ++unit)
    order.push_back({PieceKind::Forward, 0, unit});
  for (int64_t unit = 0; unit < shape.microBatches; ++unit)
    order.push_back({PieceKind::Backward, 0, unit});
  return order;
}

/// 1F1B, plain or interleaved.
Order alternating(const PipelineShape &shape, int64_t stage) {
  const int64_t stages = shape.stages();
  const int64_t chunks = shape.chunks, total = shape.microBatches * chunks;
  // Micro-batches go through a chunk in groups as large as the pipeline.
  auto piece = [&](int64_t number, PieceKind kind) {
    if (chunks == 1)
      return PipelinePiece{kind, 0, number};
    const int64_t chunk = number % (stages * chunks) / stages;
    return PipelinePiece{
        kind, kind == PieceKind::Forward ? chunk : chunks - 1 - chunk,
        number / (stages * chunks) * stages + number % stages};
  };
  const int64_t behind = stages - 1 - stage;
  const int64_t warm = std::min(
      total, chunks == 1 ? behind : 2 * behind + (chunks - 1) * stages);
  Order order;
  for (int64_t number = 0; number < total + warm; ++number) {
    if (number < total)
      order.push_back(piece(number, PieceKind::Forward));
    if (number >= warm)
      order.push_back(piece(number - warm, PieceKind::Backward));
  }
  return order;
}

/// ZB-H1 and ZB-H2: the later a stage, the more of its weight gradients it puts
/// off, so that the gradients of inputs reach the first stage early.
Order postponing(const PipelineShape &shape, int64_t stage) {
  const int64_t count = shape.microBatches;
  const bool isTwice = shape.schedule == Schedule::ZeroBubble2;
  const int64_t left = shape.stages() - stage;
  const int64_t lag = isTwice ? 2 * stage : stage;
  int64_t forwards = std::min(count, isTwice ? 2 * left - 1 : left);
  int64_t weights = 0;
  Order order;
  for (int64_t unit = 0; unit < forwards; ++unit)
    order.push_back({PieceKind::Forward, 0, unit});
  for (int64_t unit = 0; unit < count; ++unit) {
    order.push_back({PieceKind::Backward, 0, unit});
    if (unit - weights >= lag)
      order.push_back({PieceKind::Weights, 0, weights++});
    if (forwards < count)
      order.push_back({PieceKind::Forward, 0, forwards++});
  }
  while (weights < count)
    order.push_back({PieceKind::Weights, 0, weights++});
  return order;
}

/// V-ZB, as PyTorch's ScheduleZBVZeroBubble orders it: written for at least
/// 2 p - 1 micro-batches, of which those that there are not are left out.
Order foldedWithoutBubble(const PipelineShape &shape, int64_t stage) {
  const int64_t stages = shape.stages(), left = stages - stage;
  const int64_t count = std::max(shape.microBatches, 2 * stages - 1);
  int64_t done[3][2] = {};
  Order order;
  auto put = [&](PieceKind kind, int64_t chunk) {
    const int64_t unit = done[static_cast<size_t>(kind)][chunk]++;
    if (unit < shape.microBatches)
      order.push_back({kind, chunk, unit});
  };
  auto forward = [&](int64_t chunk) { put(PieceKind::Forward, chunk); };
  auto backward = [&](int64_t chunk) { put(PieceKind::Backward, chunk); };
  auto weights = [&](int64_t chunk) { put(PieceKind::Weights, chunk); };
  for (int64_t i = 0; i < 2 * left - 1; ++i)
    forward(0);
  for (int64_t i = 0; i < stage; ++i) {
    forward(1);
    forward(0);
  }
  for (int64_t i = 0; i < left; ++i) {
    forward(1);
    backward(1);
    weights(1);
  }
  const auto &forwards = done[static_cast<size_t>(PieceKind::Forward)];
  while (forwards[1] < count) {
    if (forwards[0] < count)
      forward(0);
    backward(0);
    weights(0);
    forward(1);
    backward(1);
    weights(1);
  }
  for (int64_t i = 0; i < stage; ++i) {
    backward(0);
    backward(1);
  }
  for (int64_t i = 0; i < left; ++i) {
    backward(0);
    weights(0);
  }
  for (int64_t chunk : {1, 0})
    while (done[static_cast<size_t>(PieceKind::Weights)][chunk] < count)
      weights(chunk);
  return order;
}

/// V-Half: one micro-batch's pieces are placed in unit time, two apart from
/// stage to stage where chunks go down the stages and one apart on the way
/// back; every sixth step the pattern begins anew, so no two pieces of a stage
/// may share a remainder. Weight gradients take the two steps that stay free.
std::vector<Order> foldedByPattern(const PipelineShape &shape) {
  constexpr int64_t Period = 6;
  const int64_t stages = shape.stages();
  struct Pass {
    PieceKind kind;
    int64_t chunk;
    bool isDown;
  };
  constexpr Pass Passes[] = {{PieceKind::Forward, 0, true},
                             {PieceKind::Forward, 1, false},
                             {PieceKind::Backward, 1, true},
                             {PieceKind::Backward, 0, false}};
  // Of each stage: the remainders taken; of each pass: its step.
  std::vector<std::array<bool, Period>> taken(static_cast<size_t>(stages));
  std::vector<std::array<int64_t, std::size(Passes)>> steps(
      static_cast<size_t>(stages));
  auto stepOn = [&](const Pass &pass, int64_t first, int64_t stage) {
    return first + (pass.isDown ? 2 * stage : stages - 1 - stage);
  };
  int64_t earliest = 0;
  for (size_t index = 0; index < std::size(Passes); ++index) {
    const Pass &pass = Passes[index];
    auto isFree = [&](int64_t first) {
      for (int64_t stage = 0; stage < stages; ++stage)
        if (taken[stage][stepOn(pass, first, stage) % Period])
          return false;
      return true;
    };
    int64_t first = earliest;
    while (!isFree(first))
      ++first;
    for (int64_t stage = 0; stage < stages; ++stage) {
      steps[stage][index] = stepOn(pass, first, stage);
      taken[stage][steps[stage][index] % Period] = true;
      earliest = std::max(earliest, steps[stage][index] + 1);
    }
  }
  std::vector<Order> orders;
  for (int64_t stage = 0; stage < stages; ++stage) {
    std::vector<std::pair<int64_t, PipelinePiece>> pieces;
    auto repeat = [&](int64_t step, PieceKind kind, int64_t chunk) {
      for (int64_t unit = 0; unit < shape.microBatches; ++unit)
        pieces.push_back({step + Period * unit, {kind, chunk, unit}});
    };
    for (size_t index = 0; index < std::size(Passes); ++index) {
      const Pass &pass = Passes[index];
      repeat(steps[stage][index], pass.kind, pass.chunk);
      if (pass.kind != PieceKind::Backward)
        continue;
      int64_t after = steps[stage][index] + 1;
      while (taken[stage][after % Period])
        ++after;
      taken[stage][after % Period] = true;
      repeat(after, PieceKind::Weights, pass.chunk);
    }
    std::sort(pieces.begin(), pieces.end(),
              [](const auto &a, const auto &b) { return a.first < b.first; });
    Order &order = orders.emplace_back();
    for (const auto &[step, piece] : pieces)
      order.push_back(piece);
  }
  return orders;
}

} // namespace

std::vector<std::vector<PipelinePiece>> ordersOf(const PipelineShape &shape) {
  if (shape.schedule == Schedule::VHalf)
    return foldedByPattern(shape);
  auto orderOf = [&](int64_t stage) {
    switch (shape.schedule) {
    case Schedule::GPipe:
      return allForwards(shape);
    case Schedule::ZeroBubble1:
    case Schedule::ZeroBubble2:
      return postponing(shape, stage);
    case Schedule::ZeroBubbleV:
      return foldedWithoutBubble(shape, stage);
    default:
      return alternating(shape, stage);
    }
  };
  std::vector<Order> orders;
  for (int64_t stage = 0; stage < shape.stages(); ++stage)
    orders.push_back(orderOf(stage));
  return orders;
}

} // namespace monarch::planner
