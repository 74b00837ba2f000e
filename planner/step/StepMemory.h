//===- StepMemory.h - peak bytes of a rank, by category -------------------===//
//
// The fullest stage of a layout: states by the target's bytes a parameter, what
// the graph saves times the micro-batches that the schedule keeps in flight,
// and the largest transient. Allocated bytes; what an allocator or a driver
// holds beside is added by kind of measurement.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "planner/step/Layout.h"

namespace monarch::planner {

struct StepMemory {
  int64_t stage = 0;
  double parameters = 0, gradients = 0, optimizer = 0;
  /// Saved from forward to backward, of all micro-batches in flight.
  double activations = 0;
  /// The larger of the logits and of a layer made again.
  double logits = 0, layer = 0;
  /// Parameters gathered for use, and their gradients before reduction.
  double gathered = 0;
  double total = 0;
};

enum class MemoryKind : uint8_t { Allocated, Reserved, Driver };

/// Bytes of one layer that depend on a few of a layout's fields.
struct LayerBytes {
  /// Kept for the backward; what enters it; the most it needs for a moment.
  double saved = 0, boundary = 0, transient = 0;
  /// Of the last stage.
  double logits = 0;
};

/// Elements of a stage's parameters on one rank, and its layers.
struct StageHolds {
  double dense = 0, experts = 0;
  double layers = 0;
};

class MemoryModel {
public:
  MemoryModel(const ModelWork &work, const Target &target)
      : work(work), target(target) {}

  /// The fullest stage, or the last one alone.
  StepMemory price(const StepLayout &layout, bool onlyLast = false) const;
  StepMemory stage(const StepLayout &layout, int64_t index) const;
  /// The parts of `stage`: a search makes them once for many layouts.
  LayerBytes layerBytes(const StepLayout &layout, Recompute recompute) const;
  StageHolds holdsOf(const StepLayout &layout, int64_t index) const;
  StepMemory stageOf(const StepLayout &layout, int64_t index,
                     Recompute recompute, const LayerBytes &bytes,
                     const StageHolds &holds) const;
  /// States between steps: of the last stage.
  StepMemory steady(const StepLayout &layout) const;
  /// What a measurement of this kind adds to allocated bytes.
  double overhead(MemoryKind kind, const StepMemory &memory) const;

private:
  void addStates(const StepLayout &layout, const StageHolds &holds,
                 StepMemory &memory) const;
  double backwardBytes(const BlockWork &block, const StepLayout &layout) const;
  double savedBytes(const BlockWork &block, const StepLayout &layout,
                    Recompute recompute) const;

  const ModelWork &work;
  const Target &target;
};

/// Micro-batches, in layers of one stage, that the schedule keeps at the peak.
double layersInFlight(const StepLayout &layout, int64_t stage, double layers);

} // namespace monarch::planner
