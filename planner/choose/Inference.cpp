//===- Inference.cpp - serving: what fits, how long a token takes ---------===//
#include "planner/choose/Inference.h"

#include "planner/choose/LayoutSpace.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace monarch::planner {

namespace {

constexpr double GiB = 1024.0 * 1024 * 1024;

/// Elements of keys and values of one token in all layers, on one of the ranks
/// of tensor parallelism: a head that cannot be split is kept by each.
double keyValueElements(const ModelWork &work, int64_t tp) {
  double elements = 0;
  for (int kind : work.layers)
    for (const AttentionWork &attention :
         work.kinds[static_cast<size_t>(kind)].forward.attentions)
      elements += std::ceil(attention.kvHeads / static_cast<double>(tp)) *
                  (attention.queryDim + attention.valueDim);
  return elements;
}

} // namespace

Target servingTarget() {
  Target target = *findTarget("megatron");
  target.name = "serving";
  target.description = "a server of tokens with the kernels of megatron";
  return target;
}

Expected<InferenceEstimate> estimateInference(const ModelWork &work,
                                              const Machine &machine,
                                              const Target &target,
                                              const InferenceRequest &request,
                                              int64_t tp, int64_t pp) {
  StepLayout layout;
  layout.tp = tp;
  layout.pp = pp;
  layout.microBatch = layout.globalBatch = request.concurrency;
  if (target.isFullySharded)
    layout.sharding = Sharding::Parameters;
  Machine replica = machine;
  replica.devices = tp * pp;
  const auto wrong = layoutViolations(work, replica, target, layout);
  if (!wrong.empty() || tp * pp > machine.devices)
    return Error{"MP3302", ExitCode::Infeasible,
                 wrong.empty() ? fmt::format("tp {} x pp {} on {} devices", tp,
                                             pp, machine.devices)
                               : fmt::format("{}", fmt::join(wrong, "; ")),
                 "", "change the degrees named"};
  const Constants &constants = builtInConstants();
  const StepModel model(work, machine, target, constants);
  const Kernels kernels(machine.device, constants);
  const Network network(machine, constants, target.hasOldRings);
  const BlockSplit split = splitOf(layout);
  const double stages = static_cast<double>(pp),
               ranks = static_cast<double>(tp);
  const double rows = static_cast<double>(request.concurrency);
  InferenceEstimate result;
  result.tp = tp;
  result.pp = pp;
  result.replicas = machine.devices / (tp * pp);
  result.idleDevices = machine.devices - result.replicas * tp * pp;
  double elements = 0;
  for (int kind : work.layers)
    elements += work.kinds[static_cast<size_t>(kind)].parameters(split);
  // The first stage has the table, the last the head: the fuller one counts.
  result.stageLayers =
      layersOfStages(layout, static_cast<int64_t>(work.layers.size()));
  const double share =
      static_cast<double>(*std::max_element(result.stageLayers.begin(),
                                            result.stageLayers.end())) /
      static_cast<double>(work.layers.size());
  const double perStage = elements * share;
  const double ends =
      pp == 1 ? work.embedding.parameters(split) + work.head.parameters(split)
              : std::max(work.embedding.parameters(split),
                         work.isTied ? work.embedding.parameters(split)
                                     : work.head.parameters(split));
  result.weights = (perStage + ends) * request.weightBytes;
  const double perToken = keyValueElements(work, tp) * request.keyValueBytes;
  result.keyValueBytesPerToken = perToken * share;
  result.keysAndValues = result.keyValueBytesPerToken * request.length * rows;
  // One prompt at a time goes through a layer; its widest tensors and logits
  // of the last token only.
  BlockSplit one = split;
  one.rows = 1;
  double widest = 0;
  for (const BlockWork &block : work.kinds)
    for (const Product &product : block.forward.products)
      widest = std::max(widest, product.batch.at(one) * product.m.at(one) *
                                    product.n.at(one) * 2);
  result.activations = 2 * widest + 4 * work.kinds.front().boundary.at(one);
  result.usableBytes = usableBytes(machine, target, request.headroom);
  const double left = result.usableBytes - result.weights - result.activations;
  result.fits = left >= result.keysAndValues && left > 0;
  auto whole = [&](double bytes) {
    return left <= 0 || bytes <= 0
               ? 0
               : static_cast<int64_t>(std::floor(left / bytes));
  };
  result.maxLength = whole(result.keyValueBytesPerToken);
  result.maxConcurrency = whole(result.keyValueBytesPerToken * request.length);
  // Prefill: one prompt through all stages.
  StepLayout single = layout;
  single.microBatch = single.globalBatch = 1;
  const StepModel::Blocks &blocks = model.blocksOf(single);
  for (int kind : work.layers) {
    const BlockTime &time = blocks.kinds[static_cast<size_t>(kind)].time;
    result.prefillSeconds += time.forward + time.forwardExchange;
  }
  result.prefillSeconds += (stages - 1) * model.sendSeconds(single) / 2;
  // A token: weights and what is kept are read, products of few rows; two sums
  // over tensor a layer; a hop a stage. The host is ahead: kernels come from a
  // recorded graph.
  const double products = elements + ends;
  const double reading = kernels.memory(products * request.weightBytes +
                                        perToken * request.length * rows);
  const double computing = 2 * products * rows /
                           (machine.device.ceilingFlops *
                            constants.productShare * machine.device.sustained);
  result.tokenSeconds = std::max(reading, computing);
  const double width = work.head.boundary.size / work.sequence;
  for (int kind : work.layers) {
    const BlockWork &block = work.kinds[static_cast<size_t>(kind)];
    result.tokenSeconds +=
        static_cast<double>(
            block.forward.kernels +
            static_cast<int64_t>(block.forward.products.size())) *
            constants.kernelSeconds +
        static_cast<double>(block.forward.reductions.size()) *
            network.ring(Collective::AllReduce, rows * width, ranks, 1);
  }
  const double flows = ranks;
  if (pp > 1)
    result.tokenSeconds += (stages - 1) * network.send(rows * width, flows);
  // Stages of a pipeline work on different sequences at a time.
  const double inFlight = std::min(stages, rows);
  result.tokensPerSecond = static_cast<double>(result.replicas) * rows *
                           (pp > 1 ? inFlight / stages : 1) /
                           result.tokenSeconds;
  return result;
}

Expected<InferenceEstimate> chooseInference(const ModelWork &work,
                                            const Machine &machine,
                                            const Target &target,
                                            const InferenceRequest &request) {
  std::vector<InferenceEstimate> fitting;
  double least = -1;
  for (int64_t tp = 1; tp <= machine.devices; ++tp)
    for (int64_t pp = 1; tp * pp <= machine.devices; ++pp) {
      if ((request.pins.tp && *request.pins.tp != tp) ||
          (request.pins.pp && *request.pins.pp != pp))
        continue;
      auto own = estimateInference(work, machine, target, request, tp, pp);
      if (!own)
        continue;
      if (own->fits)
        fitting.push_back(*own);
      else if (least < 0 || own->needed() < least)
        least = own->needed();
    }
  if (fitting.empty())
    return Error{
        "MP3310", ExitCode::Infeasible,
        fmt::format("{} sequences of {} tokens fit no degrees: the "
                    "least is {:.1f} GiB a device, {:.1f} GiB are "
                    "usable",
                    request.concurrency, request.length, least / GiB,
                    usableBytes(machine, target, request.headroom) / GiB),
        "", "fewer or shorter sequences, narrower weights or keys"};
  double fastest = fitting.front().tokenSeconds;
  for (const InferenceEstimate &own : fitting)
    fastest = std::min(fastest, own.tokenSeconds);
  constexpr double Near = 1.05;
  const InferenceEstimate *best = nullptr;
  for (const InferenceEstimate &own : fitting)
    if (own.tokenSeconds <= Near * fastest &&
        (!best || own.replicas > best->replicas ||
         (own.replicas == best->replicas &&
          own.tokenSeconds < best->tokenSeconds)))
      best = &own;
  return *best;
}

} // namespace monarch::planner
