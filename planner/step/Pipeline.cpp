//===- Pipeline.cpp - event simulation of pipeline schedules --------------===//
#include "planner/step/Pipeline.h"

#include "core/support/Json.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

namespace monarch::planner {

namespace {

/// Visits every piece with its begin and end; the seconds of a PipelineRun.
template <typename Visit>
double simulate(const PipelineShape &shape, Visit visit) {
  const int64_t stages = shape.stages(), units = shape.microBatches;
  const int64_t places = stages * shape.chunks;
  const bool isSplit = splitsBackward(shape.schedule);
  const double chunks = static_cast<double>(shape.chunks);
  const std::vector<std::vector<PipelinePiece>> orders = ordersOf(shape);
  std::vector<int64_t> stageOf(static_cast<size_t>(places));
  for (int64_t stage = 0; stage < stages; ++stage)
    for (int64_t chunk = 0; chunk < shape.chunks; ++chunk)
      stageOf[static_cast<size_t>(shape.placeOf(stage, chunk))] = stage;
  // When a result is there, by place and micro-batch; below 0: not yet.
  std::vector<double> forward(static_cast<size_t>(places * units), -1),
      backward = forward;
  auto readyAt = [&](const PipelinePiece &piece, int64_t place) {
    auto from = [&](const std::vector<double> &done, int64_t other) {
      const double end =
          done[static_cast<size_t>(other * units + piece.microBatch)];
      const bool isLocal = stageOf[static_cast<size_t>(other)] ==
                           stageOf[static_cast<size_t>(place)];
      return end < 0 || isLocal ? end : end + shape.hopSeconds;
    };
    if (piece.kind == PieceKind::Weights)
      return from(backward, place);
    if (piece.kind == PieceKind::Forward)
      return place == 0 ? 0.0 : from(forward, place - 1);
    return place == places - 1 ? from(forward, place)
                               : from(backward, place + 1);
  };
  auto secondsOf = [&](PieceKind kind, size_t stage) {
    const double weights = isSplit ? shape.weights[stage] : 0;
    if (kind == PieceKind::Weights)
      return weights / chunks;
    return (kind == PieceKind::Forward ? shape.forward[stage]
                                       : shape.backward[stage] - weights) /
           chunks;
  };
  std::vector<size_t> next(static_cast<size_t>(stages), 0);
  std::vector<double> free(static_cast<size_t>(stages), 0), begun = free;
  double seconds = 0;
  for (bool moved = true; moved;) {
    moved = false;
    for (int64_t stage = 0; stage < stages; ++stage)
      while (next[stage] < orders[stage].size()) {
        const PipelinePiece &piece = orders[stage][next[stage]];
        const int64_t place = shape.placeOf(stage, piece.chunk);
        const double ready = readyAt(piece, place);
        if (ready < 0)
          break;
        const double begin = std::max(free[stage], ready);
        const double end = begin + secondsOf(piece.kind, stage);
        const size_t entry =
            static_cast<size_t>(place * units + piece.microBatch);
        if (piece.kind == PieceKind::Forward)
          forward[entry] = end;
        if (piece.kind == PieceKind::Backward)
          backward[entry] = end;
        if (next[stage] == 0)
          begun[stage] = begin;
        free[stage] = end;
        visit(PipelineEvent{stage, piece.chunk, piece.microBatch, piece.kind,
                            begin, end});
        seconds = std::max(seconds, end - (isSplit ? begun[stage] : 0));
        ++next[stage];
        moved = true;
      }
  }
  return seconds;
}

} // namespace

double pipelineSeconds(const PipelineShape &shape) {
  return simulate(shape, [](const PipelineEvent &) {});
}

Expected<PipelineRun> runPipeline(const PipelineShape &shape) {
  const int64_t stages = shape.stages();
  if (shape.chunks > 1 && !isFolded(shape.schedule) &&
      shape.microBatches % stages != 0)
    return Error{"MP3303", ExitCode::Infeasible,
                 fmt::format("{} micro-batches over {} interleaved stages",
                             shape.microBatches, stages),
                 "", fmt::format("use a multiple of {}", stages)};
  PipelineRun run;
  run.seconds = simulate(
      shape, [&](const PipelineEvent &event) { run.events.push_back(event); });
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
  constexpr const char *Letters[] = {"F", "B", "W"};
  constexpr const char *Kinds[] = {"forward", "backward", "weights"};
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
    slice["name"] = fmt::format(
        "{}{}", Letters[static_cast<size_t>(event.kind)], event.microBatch);
    slice["cat"] = Kinds[static_cast<size_t>(event.kind)];
    slice["ph"] = "X";
    setTimes(event.begin, event.end, slice);
    slice["pid"] = event.stage;
    slice["tid"] = 0;
    slice["args"]["chunk"] = event.chunk;
    events.push_back(std::move(slice));
  }
  // Stages whose backward is split update without waiting for each other.
  std::vector<double> ends(static_cast<size_t>(stages), run.seconds);
  for (const PipelineEvent &event : run.events)
    if (event.kind == PieceKind::Weights)
      ends[static_cast<size_t>(event.stage)] = event.end;
  for (const auto &[name, seconds] : run.after)
    for (int64_t stage = 0; stage < stages && seconds > 0; ++stage) {
      double &end = ends[static_cast<size_t>(stage)];
      Json slice;
      slice["name"] = name;
      slice["cat"] = "step";
      slice["ph"] = "X";
      setTimes(end, end + seconds, slice);
      slice["pid"] = stage;
      slice["tid"] = 0;
      events.push_back(std::move(slice));
      end += seconds;
    }
  Json document;
  document["displayTimeUnit"] = "ms";
  document["traceEvents"] = std::move(events);
  return writeJson(document);
}

} // namespace monarch::planner
