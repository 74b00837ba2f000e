//===- Network.h - seconds of collectives by placement --------------------===//
//
// Rings over ranks `stride` apart: inside a node on its links, across nodes on
// the NICs, which the groups of a node share. Rings of 2020-22 enter a node
// through one NIC where there are fewer NICs than devices.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "planner/step/Constants.h"
#include "planner/step/Machine.h"

namespace monarch::planner {

enum class Collective : uint8_t { AllReduce, AllGather, ReduceScatter };

class Network {
public:
  Network(const Machine &machine, const Constants &constants, bool hasOldRings)
      : machine(machine), constants(constants), hasOldRings(hasOldRings) {}

  /// `bytes` is the whole tensor's.
  double ring(Collective kind, double bytes, double ranks, double stride) const;
  /// `flows` leave the node together through `nics` of its NICs.
  double send(double bytes, double flows) const;
  /// Each of the group's ranks has `bytes` for the others in equal parts; a
  /// token goes to `copies` of them, once to each node.
  double exchange(double bytes, double ranks, double copies) const;
  double linkRate() const {
    return machine.device.linkBytesPerSecond * constants.linkShare;
  }
  double nicRate() const {
    return machine.nodeNicBytesPerSecond * constants.nicShare;
  }
  bool isOneNode() const { return machine.devices <= domain(); }
  double domain() const;

  const Machine &machine;
  const Constants &constants;
  const bool hasOldRings;
};

} // namespace monarch::planner
