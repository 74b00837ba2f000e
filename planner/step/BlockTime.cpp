//===- BlockTime.cpp - seconds of one block on one rank -------------------===//
#include "planner/step/BlockTime.h"

#include <algorithm>

namespace monarch::planner {

double BlockPricer::products(const PhaseWork &work, const BlockSplit &split,
                             Precision precision, bool isExpert) const {
  double seconds = 0;
  for (const Product &product : work.products) {
    if (product.isExpert != isExpert)
      continue;
    bool accumulates = product.kind == ProductKind::WeightGradient &&
                       target.accumulateBytes == 0;
    double batch = product.batch.at(split), m = product.m.at(split),
           n = product.n.at(split), k = product.k.at(split);
    if (isExpert && precision == Precision::Fp8) {
      // Casts included: what one-layer measurements of experts in blockwise FP8
      // gain over 16 bits (calibrate rows, 0.94 to 1.17).
      constexpr double GroupedGain = 1.1;
      seconds += kernels.product(batch, m, n, k, Precision::Half,
                                 accumulates ? 8 : 2) /
                 GroupedGain;
      continue;
    }
    seconds += kernels.product(batch, m, n, k, precision, accumulates ? 8 : 2);
    // A cast reads two bytes and writes one, twice: plain and transposed.
    if (precision == Precision::Fp8 &&
        product.kind != ProductKind::WeightGradient)
      seconds += kernels.memory(4 * batch * m * k);
  }
  return seconds;
}

double BlockPricer::traffic(const PhaseWork &work,
                            const BlockSplit &split) const {
  double bytes = 0;
  for (const Extent &extent : work.traffic)
    bytes += extent.at(split);
  const Constants &constants = kernels.constants;
  // A kernel of pointwise work starts while the one before drains.
  constexpr double GapShare = 0.6;
  return kernels.memory(bytes * constants.pointwiseTraffic *
                        target.pointwiseTraffic) +
         static_cast<double>(work.kernels) * constants.kernelSeconds * GapShare;
}

void BlockPricer::addTensorExchange(BlockTime &time, const BlockWork &block,
                                    const BlockSplit &split) const {
  if (split.tensor <= 1)
    return;
  const double delay = tensorDelaySeconds * (split.tensor - 1) / 7;
  auto sum = [&](Collective kind, const std::vector<Extent> &list) {
    double seconds = 0;
    for (const Extent &bytes : list)
      seconds += network.ring(kind, bytes.at(split), split.tensor, 1) + delay;
    return seconds;
  };
  double forward = 0, backward = 0;
  if (split.isSequenceParallel) {
    const auto scatter = Collective::ReduceScatter,
               gather = Collective::AllGather;
    forward = sum(scatter, block.forward.reductions) +
              sum(gather, block.forward.gathers);
    backward = sum(scatter, block.backward.reductions) +
               sum(gather, block.backward.gathers);
    // The gathered inputs are gathered again for the weights' gradients.
    double again = sum(gather, block.forward.gathers);
    if (target.tensorOverlap > 0) {
      forward *= 1 - target.tensorOverlap;
      backward = (backward + again) * (1 - target.tensorOverlap);
    } else {
      constexpr double HiddenGathers = 0.7;
      backward += again * (1 - HiddenGathers);
    }
  } else {
    forward = sum(Collective::AllReduce, block.forward.reductions);
    backward = sum(Collective::AllReduce, block.backward.reductions) *
               (1 - target.backwardTensorOverlap);
  }
  constexpr double HostOpsPerCollective = 3;
  time.forwardExchange += forward;
  time.backwardExchange += backward;
  time.forwardLaunches += HostOpsPerCollective *
                          static_cast<double>(block.forward.reductions.size());
  time.backwardLaunches +=
      HostOpsPerCollective *
      static_cast<double>(block.backward.reductions.size());
}

void BlockPricer::addContextExchange(BlockTime &time, const BlockWork &block,
                                     const BlockSplit &split) const {
  if (split.context <= 1)
    return;
  const bool isInNode = split.context * split.tensor <= network.domain();
  const double rate =
      isInNode ? network.linkRate() : network.nicRate() / network.domain();
  // Keys and values go round while attention runs; what it cannot hide shows.
  constexpr double Hidden = 0.8;
  for (const AttentionWork &attention : block.forward.attentions) {
    double bytes = split.rows * attention.keySequence / split.context *
                   attention.kvHeads *
                   (attention.queryDim + attention.valueDim) * 2 / split.tensor;
    double round = (split.context - 1) *
                   (bytes / rate + kernels.constants.collectiveSeconds);
    double gaps = 2 * split.context * kernels.constants.kernelSeconds;
    time.forwardExchange +=
        std::max(0.0, round - Hidden * time.attentionForward) + gaps;
    time.backwardExchange +=
        std::max(0.0, 2 * round - Hidden * time.attentionBackward) + gaps;
  }
}

BlockTime BlockPricer::price(const BlockWork &block, const BlockSplit &split,
                             Precision precision,
                             AttentionKernel attention) const {
  BlockTime time;
  time.products = products(block.forward, split, precision, false);
  time.forward = time.products +
                 products(block.forward, split, precision, true) +
                 traffic(block.forward, split);
  time.backward =
      products(block.backward, split, precision, false) +
      products(block.backward, split, precision, true) +
      traffic(block.backward, split) +
      kernels.memory(block.parameters(split) * target.accumulateBytes);
  time.forwardLaunches =
      static_cast<double>(block.forward.launches) * target.launches;
  time.backwardLaunches =
      static_cast<double>(block.backward.launches) * target.launches;
  for (const AttentionWork &work : block.forward.attentions) {
    Kernels::AttentionSeconds seconds =
        kernels.attention(attention, work.heads.at(split) * split.context,
                          work.sequence / split.context, work.keySequence,
                          work.queryDim, work.valueDim);
    time.attentionForward += seconds.forward;
    time.attentionBackward += seconds.backward;
    if (attention == AttentionKernel::Spelled) {
      time.forwardLaunches += 6;
      time.backwardLaunches += 8;
    }
  }
  time.forward += time.attentionForward;
  time.backward += time.attentionBackward;
  addTensorExchange(time, block, split);
  addContextExchange(time, block, split);
  if (block.expertParameters > 0) {
    double local = 1;
    for (const Product &product : block.forward.products)
      if (product.isExpert)
        local = product.batch.at(split);
    // Routing, and a kernel each for the experts where they are not grouped.
    constexpr double RoutingForward = 50, RoutingBackward = 60;
    time.forwardLaunches += RoutingForward + target.expertLaunches * local;
    time.backwardLaunches +=
        RoutingBackward + 2.5 * target.expertLaunches * local;
    double copies = 1;
    if (!block.forward.dispatches.empty() && block.boundary.size > 0)
      copies = block.forward.dispatches.front().size / block.boundary.size;
    for (const Extent &bytes : block.forward.dispatches)
      time.forwardExchange +=
          network.exchange(bytes.at(split), split.expert, copies);
    for (const Extent &bytes : block.backward.dispatches)
      time.backwardExchange +=
          network.exchange(bytes.at(split), split.expert, copies);
  }
  return time;
}

} // namespace monarch::planner
