//===- Inference.h - serving: what fits, how long a token takes -----------===//
//
// Forward only. A prompt is read in one pass (prefill), then tokens come one by
// one (decode), each reading all weights of its ranks and the keys and values
// kept so far. Tensor and pipeline parallelism inside a replica, replicas on
// the rest.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "planner/choose/ChooseLayout.h"

namespace monarch::planner {

struct InferenceRequest {
  /// Sequences that a replica works on together, and tokens of each when the
  /// last one comes; the prompt is as long as the work's sequence.
  int64_t concurrency = 1;
  double length = 0;
  /// Bytes of an element at rest.
  double weightBytes = 2, keyValueBytes = 2;
  LayoutPins pins;
  double headroom = MemoryHeadroom;
};

struct InferenceEstimate {
  int64_t tp = 1, pp = 1, replicas = 1;
  int64_t idleDevices = 0;
  /// Of one sequence, on the fullest rank.
  double keyValueBytesPerToken = 0;
  /// Needed on the fullest rank; `usable` is what there is.
  double weights = 0, keysAndValues = 0, activations = 0, usableBytes = 0;
  double needed() const { return weights + keysAndValues + activations; }
  bool fits = false;
  /// Longest single sequence, and sequences of the request's length, that fit.
  int64_t maxLength = 0, maxConcurrency = 0;
  double prefillSeconds = 0;
  /// Between two tokens of a sequence.
  double tokenSeconds = 0;
  /// Of all replicas.
  double tokensPerSecond = 0;
};

/// Degrees as pinned (tp, pp; the rest are replicas).
Expected<InferenceEstimate> estimateInference(const ModelWork &work,
                                              const Machine &machine,
                                              const Target &target,
                                              const InferenceRequest &request,
                                              int64_t tp, int64_t pp);

/// The degrees with the shortest time between tokens that fit, with the most
/// replicas among those within a twentieth. MP3310: none fits.
Expected<InferenceEstimate> chooseInference(const ModelWork &work,
                                            const Machine &machine,
                                            const Target &target,
                                            const InferenceRequest &request);

} // namespace monarch::planner
