//===- Pipeline.cpp - event simulation of pipeline schedules --------------===//
#include "planner/step/Pipeline.h"

#include "core/support/Json.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

namespace monarch::planner {

namespace {

struct Piece {
  bool isForward;
  int64_t chunk, microBatch;
};

/// What a stage works off, in order.
std::vector<Piece> orderOf(const PipelineShape &shape, int64_t stage) {
  const int64_t stages = static_cast<int64_t>(shape.forward.size());
  const int64_t chunks = shape.chunks, total = shape.microBatches * chunks;
  // Micro-batches go through a chunk in groups as large as the pipeline.
  auto piece = [&](int64_t number, bool isForward) {
    if (chunks == 1)
      return Piece{isForward, 0, number};
    int64_t chunk = number % (stages * chunks) / stages;
    return Piece{isForward, isForward ? chunk : chunks - 1 - chunk,
                 number / (stages * chunks) * stages + number % stages};
  };
  const int64_t behind = stages - 1 - stage;
  const int64_t warm = std::min(
      total, chunks == 1 ? behind : 2 * behind + (chunks - 1) * stages);
  std::vector<Piece> order;
  for (int64_t number = 0; number < total + warm; ++number) {
    if (number < total)
      order.push_back(piece(number, true));
    if (number >= warm)
      order.push_back(piece(number - warm, false));
  }
  return order;
}

} // namespace

Expected<PipelineRun> runPipeline(const PipelineShape &shape) {
  const int64_t stages = static_cast<int64_t>(shape.forward.size());
  if (shape.chunks > 1 && shape.microBatches % stages != 0)
    return Error{"MP3303", ExitCode::Infeasible,
                 fmt::format("{} micro-batches over {} interleaved stages",
                             shape.microBatches, stages),
                 "", fmt::format("use a multiple of {}", stages)};
  const int64_t virtualStages = stages * shape.chunks;
  // When a result is there; below 0: not yet.
  auto table = [&] {
    return std::vector<std::vector<double>>(
        static_cast<size_t>(virtualStages),
        std::vector<double>(static_cast<size_t>(shape.microBatches), -1));
  };
  std::vector<std::vector<double>> forward = table(), backward = table();
  std::vector<std::vector<Piece>> orders;
  std::vector<size_t> next(static_cast<size_t>(stages), 0);
  std::vector<double> free(static_cast<size_t>(stages), 0);
  for (int64_t stage = 0; stage < stages; ++stage)
    orders.push_back(orderOf(shape, stage));
  PipelineRun run;
  const double chunks = static_cast<double>(shape.chunks);
  for (bool moved = true; moved;) {
    moved = false;
    for (int64_t stage = 0; stage < stages; ++stage)
      while (next[stage] < orders[stage].size()) {
        const Piece &piece = orders[stage][next[stage]];
        const int64_t place = piece.chunk * stages + stage;
        const int64_t unit = piece.microBatch;
        double ready = 0;
        if (piece.isForward && place > 0)
          ready = forward[place - 1][unit];
        if (!piece.isForward)
          ready = place == virtualStages - 1 ? forward[place][unit]
                                             : backward[place + 1][unit];
        if (ready < 0)
          break;
        const bool isLocal =
            piece.isForward ? place == 0 : place == virtualStages - 1;
        const double begin =
            std::max(free[stage], ready + (isLocal ? 0 : shape.hopSeconds));
        const double end =
            begin +
            (piece.isForward ? shape.forward : shape.backward)[stage] / chunks;
        (piece.isForward ? forward : backward)[place][unit] = end;
        free[stage] = end;
        run.events.push_back(
            {stage, piece.chunk, unit, piece.isForward, begin, end});
        run.seconds = std::max(run.seconds, end);
        ++next[stage];
        moved = true;
      }
  }
  std::stable_sort(run.events.begin(), run.events.end(),
                   [](const PipelineEvent &a, const PipelineEvent &b) {
                     return std::pair(a.begin, a.stage) <
                            std::pair(b.begin, b.stage);
                   });
  return run;
}

namespace {

/// Microseconds to the nanosecond: slices that touch do not overlap.
double microseconds(double seconds) { return std::round(seconds * 1e9) / 1e3; }

void setTimes(double begin, double end, Json &slice) {
  const double from = microseconds(begin);
  slice["ts"] = from;
  slice["dur"] = std::round((microseconds(end) - from) * 1e3) / 1e3;
}

} // namespace

std::string traceOf(const PipelineRun &run) {
  Json events = Json::array();
  int64_t stages = 0;
  for (const PipelineEvent &event : run.events)
    stages = std::max(stages, event.stage + 1);
  for (int64_t stage = 0; stage < stages; ++stage) {
    Json name;
    name["name"] = "process_name";
    name["ph"] = "M";
    name["pid"] = stage;
    name["args"]["name"] = fmt::format("stage {}", stage);
    events.push_back(std::move(name));
  }
  for (const PipelineEvent &event : run.events) {
    Json slice;
    slice["name"] =
        fmt::format("{}{}", event.isForward ? "F" : "B", event.microBatch);
    slice["cat"] = event.isForward ? "forward" : "backward";
    slice["ph"] = "X";
    setTimes(event.begin, event.end, slice);
    slice["pid"] = event.stage;
    slice["tid"] = 0;
    slice["args"]["chunk"] = event.chunk;
    events.push_back(std::move(slice));
  }
  double begin = run.seconds;
  for (const auto &[name, seconds] : run.after) {
    for (int64_t stage = 0; stage < stages && seconds > 0; ++stage) {
      Json slice;
      slice["name"] = name;
      slice["cat"] = "step";
      slice["ph"] = "X";
      setTimes(begin, begin + seconds, slice);
      slice["pid"] = stage;
      slice["tid"] = 0;
      events.push_back(std::move(slice));
    }
    begin += seconds;
  }
  Json document;
  document["displayTimeUnit"] = "ms";
  document["traceEvents"] = std::move(events);
  return writeJson(document);
}

} // namespace monarch::planner
