//===- MemoryTally.cpp - counting allocator -------------------------------===//
//
// See MemoryTally.h. Data pointers stay simple (context == data), as code that
// uses raw_allocate expects, so sizes live in a table beside them.
//
//===----------------------------------------------------------------------===//
#include "runtime/support/MemoryTally.h"

#include <c10/core/CPUAllocator.h>

#include <mutex>
#include <unordered_map>

namespace monarch::runtime {

namespace {

thread_local MemoryTally *threadTally = nullptr;

class CountingAllocator final : public c10::Allocator {
public:
  explicit CountingAllocator(c10::Allocator *inner)
      : inner(inner), innerDelete(inner->raw_deleter()) {}

  c10::DataPtr allocate(size_t bytes) override {
    void *data = inner->raw_allocate(bytes);
    if (threadTally && data) {
      threadTally->add(static_cast<int64_t>(bytes));
      std::lock_guard lock(mutex);
      blocks[data] = {threadTally, static_cast<int64_t>(bytes)};
    }
    return {data, data, &release, c10::Device(c10::DeviceType::CPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &release; }
  void copy_data(void *dest, const void *src, size_t count) const override {
    default_copy_data(dest, src, count);
  }

  static CountingAllocator *instance;

private:
  struct Block {
    MemoryTally *tally;
    int64_t bytes;
  };

  static void release(void *data) {
    if (!data)
      return;
    {
      std::lock_guard lock(instance->mutex);
      auto found = instance->blocks.find(data);
      if (found != instance->blocks.end()) {
        found->second.tally->add(-found->second.bytes);
        instance->blocks.erase(found);
      }
    }
    instance->innerDelete(data);
  }

  c10::Allocator *inner;
  c10::DeleterFnPtr innerDelete;
  std::mutex mutex;
  std::unordered_map<void *, Block> blocks;
};

CountingAllocator *CountingAllocator::instance = nullptr;

} // namespace

void MemoryTally::add(int64_t bytes) {
  int64_t now = current.fetch_add(bytes) + bytes;
  int64_t seen = peak.load();
  while (now > seen && !peak.compare_exchange_weak(seen, now))
    ;
}

void installMemoryTally() {
  static std::once_flag once;
  std::call_once(once, [] {
    // Never destroyed: blocks may outlive every static object.
    CountingAllocator::instance =
        new CountingAllocator(c10::GetDefaultCPUAllocator());
    c10::SetCPUAllocator(CountingAllocator::instance, /*priority=*/100);
  });
}

MemoryScope::MemoryScope(MemoryTally *tally) : outer(threadTally) {
  threadTally = tally;
}

MemoryScope::~MemoryScope() { threadTally = outer; }

} // namespace monarch::runtime
