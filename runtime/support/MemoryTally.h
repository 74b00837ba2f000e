//===- MemoryTally.h - bytes of tensors, counted where they are allocated -===//
//
// A wrapper around LibTorch's CPU allocator that books each block on the tally
// of the thread that asks for it; the block is given back to the same tally,
// whichever thread frees it. So one process, or one rank among threads, knows
// its exact peak. Threads without a tally are not counted: start-up, checks and
// gathering for files stay out of the figures.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <atomic>
#include <cstdint>

namespace monarch::runtime {

class MemoryTally {
public:
  void add(int64_t bytes);
  int64_t currentBytes() const { return current.load(); }
  int64_t peakBytes() const { return peak.load(); }
  /// The peak starts again from what is alive now.
  void restartPeak() { peak.store(current.load()); }

private:
  std::atomic<int64_t> current{0};
  std::atomic<int64_t> peak{0};
};

/// Puts the counting allocator in front of LibTorch's; once per process, before
/// the first tensor that is to be counted. Tallies must outlive their blocks.
void installMemoryTally();

/// Books this thread's allocations on `tally` (nullptr: on none) until the end
/// of the scope.
class MemoryScope {
public:
  explicit MemoryScope(MemoryTally *tally);
  ~MemoryScope();
  MemoryScope(const MemoryScope &) = delete;
  MemoryScope &operator=(const MemoryScope &) = delete;

private:
  MemoryTally *outer;
};

} // namespace monarch::runtime
