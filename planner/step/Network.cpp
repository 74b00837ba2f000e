//===- Network.cpp - seconds of collectives by placement ------------------===//
#include "planner/step/Network.h"

#include <algorithm>
#include <cmath>

namespace monarch::planner {

double Network::domain() const {
  return static_cast<double>(machine.devicesPerNode);
}

double Network::ring(Collective kind, double bytes, double ranks,
                     double stride) const {
  if (ranks <= 1 || bytes <= 0)
    return 0;
  const double perNode = domain();
  const double inside = std::clamp(
      stride < perNode ? std::floor(perNode / stride) : 1.0, 1.0, ranks);
  const double nodes = std::ceil(ranks / inside);
  const double rounds = kind == Collective::AllReduce ? 2 : 1;
  const double moved = rounds * (ranks - 1) / ranks * bytes;
  // Two ranks keep one link busy each way, not a ring.
  constexpr double PairShare = 0.87;
  const double links = linkRate() * (ranks > 2 ? 1 : PairShare);
  if (nodes == 1)
    return constants.collectiveSeconds +
           rounds * (ranks - 1) * constants.hopSeconds + moved / links;
  const double groups = perNode / inside;
  double rate = nicRate() / groups;
  if (inside >= perNode) {
    rate = nicRate();
  } else if (inside == 1) {
    if (hasOldRings)
      rate = std::min(rate, constants.flowBytesPerSecond);
  } else if (hasOldRings && machine.nics < machine.devicesPerNode) {
    rate = nicRate() / static_cast<double>(machine.nics) / groups;
  } else if (hasOldRings) {
    rate = std::min(rate, inside * constants.flowBytesPerSecond);
  }
  const double latency =
      constants.collectiveSeconds +
      rounds * ((inside - 1) * constants.hopSeconds +
                std::min(nodes - 1, 2 * std::log2(nodes) + 1) *
                    constants.nodeHopSeconds);
  return latency + moved / std::min(links, rate);
}

double Network::send(double bytes, double flows) const {
  if (isOneNode()) {
    constexpr double LinkSendShare = 0.8;
    return constants.sendSeconds +
           bytes / (machine.device.linkBytesPerSecond * LinkSendShare);
  }
  const double nodeRate = machine.nodeNicBytesPerSecond * constants.sendShare;
  const double ports = static_cast<double>(machine.nics);
  return constants.sendSeconds +
         bytes / std::min(nodeRate / flows, nodeRate / ports);
}

double Network::exchange(double bytes, double ranks, double copies) const {
  if (ranks <= 1)
    return 0;
  constexpr double ExchangeShare = 0.85;
  const double start = 2 * constants.collectiveSeconds;
  const double fast =
      bytes * (ranks - 1) / ranks / (linkRate() * ExchangeShare);
  if (ranks <= domain())
    return start + fast;
  const double nodes = ranks / domain();
  // Of a token's copies only one crosses to each node that wants it.
  const double crossing =
      nodes * (1 - std::pow(1 - 1 / nodes, copies)) / copies;
  const double slow =
      bytes * crossing * (nodes - 1) / nodes / (nicRate() / domain());
  return start + std::max(slow, fast);
}

} // namespace monarch::planner
