//===- MixedServing.cpp - serving over several types of devices -----------===//
#include "planner/choose/Inference.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <limits>

namespace monarch::planner {

namespace {

constexpr double GiB = 1024.0 * 1024 * 1024;

/// One device: what it may hold, and what a model that it held alone would take
/// there.
struct Place {
  size_t part = 0;
  double usable = 0;
  InferenceEstimate alone;
};

} // namespace

Expected<MixedServing> serveMixed(const ModelWork &work,
                                  const std::vector<Machine> &parts,
                                  const Target &target,
                                  const InferenceRequest &request) {
  const auto layers = static_cast<int64_t>(work.layers.size());
  const auto all = static_cast<double>(layers);
  std::vector<Place> places;
  for (size_t part = 0; part < parts.size(); ++part) {
    Machine one = parts[part];
    one.devices = 1;
    auto alone = estimateInference(work, one, target, request, 1, 1);
    if (!alone)
      return alone.error();
    for (int64_t device = 0; device < parts[part].devices; ++device)
      places.push_back({part, alone->usableBytes, *alone});
  }
  const auto count = static_cast<int64_t>(places.size());
  if (count > layers)
    return Error{"MP3310", ExitCode::Infeasible,
                 fmt::format("{} devices for {} layers", count, layers), "",
                 "fewer devices: a stage has a layer at least"};
  const BlockSplit whole;
  const double table = work.embedding.parameters(whole) * request.weightBytes,
               head = (work.isTied ? work.embedding.parameters(whole)
                                   : work.head.parameters(whole)) *
                      request.weightBytes;
  const InferenceEstimate &any = places.front().alone;
  const double inLayers =
      any.weights - table - (work.isTied ? 0 : head) + any.keysAndValues;
  const double perLayer = inLayers / all;
  auto beside = [&](int64_t index) {
    return any.activations + (index == 0 ? table : 0) +
           (index + 1 == count && (count > 1 || !work.isTied) ? head : 0);
  };
  // Layers that fit when each device is this full.
  auto layersAt = [&](double share, int64_t index) {
    const double room =
        places[static_cast<size_t>(index)].usable * share - beside(index);
    return std::max<int64_t>(0,
                             static_cast<int64_t>(std::floor(room / perLayer)));
  };
  auto holds = [&](double share) {
    int64_t sum = 0;
    for (int64_t i = 0; i < count; ++i)
      sum += layersAt(share, i);
    return sum >= layers;
  };
  double needed = inLayers, usable = 0;
  for (int64_t i = 0; i < count; ++i) {
    needed += beside(i);
    usable += places[static_cast<size_t>(i)].usable;
  }
  if (!holds(1))
    return Error{"MP3310", ExitCode::Infeasible,
                 fmt::format("the model needs {:.1f} GiB in whole layers, "
                             "these {} devices have {:.1f} GiB",
                             needed / GiB, count, usable / GiB),
                 "", "fewer or shorter sequences, narrower weights or keys"};
  double low = 0, high = 1;
  constexpr int Halvings = 40;
  for (int step = 0; step < Halvings; ++step) {
    const double middle = (low + high) / 2;
    (holds(middle) ? high : low) = middle;
  }
  MixedServing choice;
  int64_t left = layers;
  for (int64_t i = 0; i < count; ++i) {
    // The last layer may have a place on several devices: the first takes it.
    const int64_t own = std::min(layersAt(high, i), left);
    const Place &place = places[static_cast<size_t>(i)];
    left -= own;
    choice.stages.push_back({place.part, own,
                             beside(i) + perLayer * static_cast<double>(own),
                             place.usable});
  }
  const double perToken = any.keyValueBytesPerToken / all;
  double longest = std::numeric_limits<double>::infinity();
  for (size_t i = 0; i < choice.stages.size(); ++i) {
    const ServingStage &stage = choice.stages[i];
    if (stage.layers == 0)
      return Error{"MP3310", ExitCode::Infeasible,
                   fmt::format("{} has no room for a layer beside what every "
                               "stage needs",
                               parts[stage.part].device.name),
                   "", "leave it out of the cluster file"};
    const double own = static_cast<double>(stage.layers), share = own / all;
    choice.tokenSeconds += places[i].alone.tokenSeconds * share;
    choice.prefillSeconds += places[i].alone.prefillSeconds * share;
    longest =
        std::min(longest, request.length + (stage.usableBytes - stage.needed) /
                                               (perToken * own));
  }
  choice.maxLength = static_cast<int64_t>(longest);
  return choice;
}

} // namespace monarch::planner
