//===- BlockTime.h - seconds of one block on one rank ---------------------===//
//
// Everything that depends on the rows and the split of a block but not on the
// rest of the layout: made once for each (rows, tp, cp, ep, sp), of which a
// search sees a few hundred, and looked up for each of its candidates.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "planner/step/Layout.h"
#include "planner/step/Network.h"

namespace monarch::planner {

struct BlockTime {
  /// Compute of the device.
  double forward = 0, backward = 0;
  /// Of forward and backward.
  double attentionForward = 0, attentionBackward = 0;
  /// Of forward: products of weights that all tokens meet.
  double products = 0;
  /// Collectives of tensor, context and expert parallelism, what is exposed.
  double forwardExchange = 0, backwardExchange = 0;
  /// Ops that the host starts.
  double forwardLaunches = 0, backwardLaunches = 0;
};

class BlockPricer {
public:
  BlockPricer(const Kernels &kernels, const Network &network,
              const Target &target, double tensorDelaySeconds)
      : kernels(kernels), network(network), target(target),
        tensorDelaySeconds(tensorDelaySeconds) {}

  BlockTime price(const BlockWork &block, const BlockSplit &split,
                  Precision precision, AttentionKernel attention) const;

private:
  double products(const PhaseWork &work, const BlockSplit &split,
                  Precision precision, bool isExpert) const;
  double traffic(const PhaseWork &work, const BlockSplit &split) const;
  void addTensorExchange(BlockTime &time, const BlockWork &block,
                         const BlockSplit &split) const;
  void addContextExchange(BlockTime &time, const BlockWork &block,
                          const BlockSplit &split) const;

  const Kernels &kernels;
  const Network &network;
  const Target &target;
  double tensorDelaySeconds;
};

} // namespace monarch::planner
