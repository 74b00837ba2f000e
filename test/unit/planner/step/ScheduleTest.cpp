//===- ScheduleTest.cpp - schedules as their papers say, and their bounds -===//
//
// Orders of pieces are checked for what every schedule must keep (each piece
// once, inputs before use, memory) and for the bubbles of the papers' tables;
// the closed forms against the simulation, on random stages.
//
//===----------------------------------------------------------------------===//
#include "planner/step/LayoutText.h"
#include "planner/step/StepMemory.h"
#include "planner/step/StepTime.h"

#include <catch2/catch.hpp>
#include <map>
#include <random>
#include <set>

using namespace monarch;
using namespace monarch::planner;

namespace {

/// Forward, gradients of inputs and of weights each take one second a stage.
PipelineShape equal(Schedule schedule, int64_t stages, int64_t microBatches) {
  PipelineShape shape;
  shape.schedule = schedule;
  shape.chunks = isFolded(schedule) ? 2 : 1;
  shape.microBatches = microBatches;
  shape.forward.assign(static_cast<size_t>(stages), 1.0);
  shape.backward.assign(static_cast<size_t>(stages), 2.0);
  shape.weights.assign(static_cast<size_t>(stages), 1.0);
  return shape;
}

double bubble(const PipelineShape &shape) {
  return runPipeline(shape)->seconds -
         3 * static_cast<double>(shape.microBatches);
}

/// Micro-batches that the fullest stage keeps from their forward to their last
/// piece.
double mostKept(const PipelineShape &shape) {
  double most = 0;
  const PieceKind last =
      splitsBackward(shape.schedule) ? PieceKind::Weights : PieceKind::Backward;
  for (const auto &order : ordersOf(shape)) {
    double kept = 0;
    for (const PipelinePiece &piece : order) {
      kept += piece.kind == PieceKind::Forward ? 1 : 0;
      most = std::max(most, kept);
      kept -= piece.kind == last ? 1 : 0;
    }
  }
  return most / static_cast<double>(shape.chunks);
}

} // namespace

TEST_CASE("Every stage does each piece once, and inputs are there first") {
  for (Schedule schedule : Schedules)
    for (int64_t stages : {1, 2, 3, 4, 5, 8, 13, 16})
      for (int64_t count : {1, 2, 3, 7, 16, 40}) {
        INFO("schedule " << toString(schedule) << ", " << stages << " stages, "
                         << count << " micro-batches");
        const PipelineShape shape = equal(schedule, stages, count);
        const size_t kinds = splitsBackward(schedule) ? 3 : 2;
        const size_t pieces =
            kinds * static_cast<size_t>(shape.chunks * count * stages);
        // A piece whose input never comes would be missing here.
        const auto run = runPipeline(shape);
        CHECK(run->events.size() == pieces);
        std::set<std::tuple<int64_t, int64_t, int64_t, PieceKind>> seen;
        for (const PipelineEvent &event : run->events)
          seen.insert({event.stage, event.chunk, event.microBatch, event.kind});
        CHECK(seen.size() == pieces);
      }
}

// arXiv 2401.10241, table 1 (1F1B, ZB-H1, ZB-H2: bubble and memory, here with
// T_F = T_B = T_W = 1) and section 6 (V-ZB); arXiv 2405.15362, table of V-Half:
// bubble about p / 2 of F + B + W, memory (p + 2) / 2.
TEST_CASE("Bubbles and memory are those of the papers' tables") {
  for (int64_t stages : {2, 3, 4, 6, 8, 16, 32})
    for (int64_t count : {2 * stages - 1, 2 * stages, 4 * stages}) {
      INFO(stages << " stages, " << count << " micro-batches");
      const double p = static_cast<double>(stages);
      auto check = [&](Schedule schedule, double seconds, double kept) {
        INFO(toString(schedule));
        const PipelineShape shape = equal(schedule, stages, count);
        CHECK(bubble(shape) == Approx(seconds).margin(1e-9));
        CHECK(mostKept(shape) == kept);
      };
      check(Schedule::OneForwardOneBackward, 3 * (p - 1), p);
      check(Schedule::GPipe, 3 * (p - 1), static_cast<double>(count));
      check(Schedule::ZeroBubble1, p - 1, p);
      check(Schedule::ZeroBubble2, 0, 2 * p - 1);
      check(Schedule::ZeroBubbleV, 0, p);
      // The pattern, before a playground squeezes it: within one piece.
      const PipelineShape half = equal(Schedule::VHalf, stages, count);
      CHECK(bubble(half) <= 1.6 * p + 0.5);
      CHECK(bubble(half) >= 1.5 * p - 2);
      CHECK(mostKept(half) <= std::floor((p + 2) / 2) + 0.5);
    }
}

TEST_CASE("Memory in flight follows the order of the pieces") {
  for (Schedule schedule : Schedules)
    for (int64_t stages : {2, 4, 7, 16})
      for (int64_t count : {1, 3, 16, 64}) {
        const PipelineShape shape = equal(schedule, stages, count);
        StepLayout layout;
        layout.pp = stages;
        layout.schedule = schedule;
        layout.chunks = shape.chunks;
        layout.globalBatch = count;
        double most = 0;
        for (int64_t stage = 0; stage < stages; ++stage)
          most = std::max(most, layersInFlight(layout, stage, 1));
        INFO(toString(schedule) << ", " << stages << " stages, " << count);
        CHECK(std::abs(most - mostKept(shape)) <=
              (schedule == Schedule::VHalf ? 0.5 : 0));
      }
}

// The order is made for equal pieces; real ones are not. Stages within a tenth
// of each other, gradients of weights between a quarter and a half of the
// backward.
TEST_CASE("Closed forms of pipelines follow the simulation") {
  std::mt19937 engine(7);
  auto between = [&](double low, double high) {
    return low + (high - low) * static_cast<double>(engine() % 1000) / 999;
  };
  std::map<Schedule, double> apart;
  for (Schedule schedule : Schedules)
    for (int round = 0; round < 60; ++round) {
      const int64_t stages = 2 + static_cast<int64_t>(engine() % 15);
      const int64_t count = stages * (2 + static_cast<int64_t>(engine() % 7));
      PipelineShape shape = equal(schedule, stages, count);
      const double forward = between(0.8, 1.1), weights = between(0.7, 1);
      double slowest = 0, sum = 0;
      for (size_t stage = 0; stage < shape.forward.size(); ++stage) {
        const double scale = between(0.9, 1);
        shape.forward[stage] = scale * forward;
        shape.backward[stage] = scale * (1 + weights);
        shape.weights[stage] = scale * weights;
        const double own = shape.forward[stage] + shape.backward[stage];
        slowest = std::max(slowest, own);
        sum += own;
      }
      StepLayout layout;
      layout.pp = stages;
      layout.schedule = schedule;
      layout.chunks = shape.chunks;
      layout.globalBatch = count;
      const double closed = static_cast<double>(count) * slowest +
                            rampShare(layout) * (sum - slowest);
      const double ratio = runPipeline(shape)->seconds / closed - 1;
      apart[schedule] = std::max(apart[schedule], std::abs(ratio));
    }
  for (const auto &[schedule, most] : apart) {
    INFO(toString(schedule) << " " << most);
    CHECK(most <= (splitsBackward(schedule) ? 0.07 : 0.02));
  }
}
