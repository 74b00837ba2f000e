//===- MemoryPeak.cpp - counting allocations ------------------------------===//
//
// AddressSanitizer has hooks for it, and would take an operator new of our own
// for a mistake; elsewhere there is one.
//
//===----------------------------------------------------------------------===//
#include "test/fuzz/MemoryPeak.h"

#include <algorithm>
#include <cstdlib>
#include <malloc.h>
#include <new>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define MONARCH_HAS_HOOKS
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define MONARCH_HAS_HOOKS
#endif

namespace {

size_t held = 0;
size_t peak = 0;

void add(size_t bytes) {
  held += bytes;
  peak = std::max(peak, held);
}

void remove(size_t bytes) { held -= std::min(held, bytes); }

} // namespace

#ifdef MONARCH_HAS_HOOKS
// As in sanitizer/allocator_interface.h, which GCC does not bring.
extern "C" int __sanitizer_install_malloc_and_free_hooks(
    void (*allocated)(const volatile void *, size_t),
    void (*freed)(const volatile void *));
extern "C" size_t __sanitizer_get_allocated_size(const volatile void *);

namespace {

[[maybe_unused]] const int hooks = __sanitizer_install_malloc_and_free_hooks(
    [](const volatile void *, size_t bytes) { add(bytes); },
    [](const volatile void *memory) {
      if (memory)
        remove(__sanitizer_get_allocated_size(memory));
    });

} // namespace
#else
void *operator new(size_t bytes) {
  void *memory = std::malloc(bytes);
  if (!memory)
    throw std::bad_alloc();
  add(malloc_usable_size(memory));
  return memory;
}

void operator delete(void *memory) noexcept {
  remove(malloc_usable_size(memory));
  std::free(memory);
}

void operator delete(void *memory, size_t) noexcept { operator delete(memory); }
#endif

namespace monarch::test {

MemoryPeak::MemoryPeak() : before(held) { peak = held; }

size_t MemoryPeak::bytes() const { return peak - before; }

} // namespace monarch::test
