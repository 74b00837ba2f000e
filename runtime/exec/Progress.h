//===- Progress.h - where a rank is ---------------------------------------===//
//
// Written by the executor before each instruction, read by other threads, and,
// when the launcher shares a page of memory with its ranks, by the launcher
// after a rank's death. Parts that are read may be of two moments.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "core/program/Program.h"

#include <atomic>

namespace monarch::runtime {

struct Progress {
  /// From 1; 0 before the first step.
  std::atomic<int64_t> step{0};
  /// Of the global batch, -1 outside units.
  std::atomic<int64_t> unit{-1};
  std::atomic<int32_t> segment{0};
  /// Index in the segment, -1 before the first.
  std::atomic<int32_t> instruction{-1};
};
static_assert(std::atomic<int64_t>::is_always_lock_free &&
                  std::atomic<int32_t>::is_always_lock_free,
              "a page between processes has no locks");

/// "step 3, forward of unit 1, aten::mm, op 12 of blocks.0.attn (model.py:31)
/// on 'blocks.0.attn.weight'".
std::string textOf(const Progress &progress, const Role &role);

/// A page that two processes see.
class SharedProgress {
public:
  /// In the launcher; nothing when the system has no more memory files.
  static std::optional<SharedProgress> create();
  /// In the rank, from the descriptor that it inherited.
  static std::optional<SharedProgress> open(int descriptor);
  SharedProgress(SharedProgress &&other) noexcept;
  SharedProgress &operator=(SharedProgress &&) = delete;
  ~SharedProgress();

  Progress &progress() { return *page; }
  int descriptor() const { return file; }

private:
  SharedProgress(Progress *page, int file) : page(page), file(file) {}
  Progress *page;
  int file;
};

} // namespace monarch::runtime
