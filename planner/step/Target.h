//===- Target.h - what will run the plan ----------------------------------===//
//
// A target's kernels, the bytes of its collectives, what it hides behind
// compute and what it keeps in memory. Data, not code: one entry of
// planner/data/step/targets.json each, with its source; releases that differ in
// these are targets of their own.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "planner/work/Work.h"

namespace monarch::planner {

enum class AttentionKernel : uint8_t { Spelled, Flash1, Flash2, Flash3 };

/// Which sharding a target offers, weakest first.
enum class Sharding : uint8_t { None, Optimizer, Gradients, Parameters };

struct Target {
  std::string name;
  std::string description;
  KernelStyle style;
  AttentionKernel attention = AttentionKernel::Spelled;
  /// Real traffic over what the fused graph counts, on top of the constant.
  double pointwiseTraffic = 1;
  /// Host launches over the ops of the graph; kernels an expert adds.
  double launches = 1;
  double expertLaunches = 0;
  /// Bytes of a gradient element on the wire.
  double gradientBytes = 4;
  /// Bytes a gradient element costs in each accumulation; 0: the product adds
  /// into the accumulator itself.
  double accumulateBytes = 0;
  /// Bytes an optimizer step moves for each parameter it owns.
  double optimizerBytes = 60;
  /// Shares of communication that run beside compute.
  double dataOverlap = 0;
  double tensorOverlap = 0;
  /// Of the backward's tensor reductions alone.
  double backwardTensorOverlap = 0;
  double pipelineOverlap = 0;
  /// Shares are fully sharded by layer and gathered for use.
  bool isFullySharded = false;
  /// Each rank pulls whole layers through its own NIC, beside nothing.
  bool gathersAlone = false;
  /// Between stages each tensor rank sends its part, gathered after.
  bool scattersSends = true;
  /// Rings share one NIC where there are fewer NICs than devices, and a ring
  /// with one rank a node is capped: libraries of 2020-22.
  bool hasOldRings = false;
  /// The two copies of a tied table are added across stages.
  bool reducesTiedTable = false;
  /// Optimizer shards are broadcast inside groups after the update.
  bool broadcastsShards = false;
  /// Sequence-parallel where a layout does not say.
  bool defaultsToSequenceParallel = false;
  /// Memory, bytes a parameter: weight, gradient, and the optimizer's, which
  /// the optimizer sharding divides.
  double weightBytes = 2;
  /// The same where it lies between uses, when it is gathered for use.
  double restBytes = 2;
  double mainGradientBytes = 4;
  double optimizerStateBytes = 12;
  /// Copies of the logits at the peak, bytes an element.
  double logitBytes = 10;
  /// The same where chunks of layers take turns: the loss is done before the
  /// next chunk starts.
  double chunkedLogitBytes = 6;
  /// Saved for each score where attention is spelled out: probabilities, their
  /// mask and what is left of them.
  double scoreBytes = 5;
  /// What the allocator holds beyond what is allocated, of the activations;
  /// context, communication buffers and all else that the driver counts.
  double fragmentation = 0;
  double contextGiB = 1.6;
  /// What it can express.
  Sharding maxSharding = Sharding::Optimizer;
  /// Chunks of layers take turns on no fewer stages: Megatron without sends
  /// beside compute asserts three.
  int64_t leastInterleavedStages = 2;
  bool hasTensor = true, hasSequence = true, hasPipeline = true,
       hasInterleaving = true, hasContext = false, hasExpert = false,
       hasZeroBubble = false, hasGPipe = false, hasZeroBubbleV = false,
       hasVHalf = false, hasOffload = false, hasSelectiveRecompute = true;
};

const std::vector<Target> &targets();
/// MP3301 with the known names.
Expected<Target> findTarget(std::string_view name);

} // namespace monarch::planner
