//===- MemoryPeak.h - the most memory that a piece of code held -----------===//
//
// Programs that link this file count what operator new hands out, or all of
// malloc under AddressSanitizer. One thread at a time.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <cstddef>

namespace monarch::test {

class MemoryPeak {
public:
  MemoryPeak();
  /// Bytes above those held when the object was made.
  size_t bytes() const;

private:
  size_t before;
};

} // namespace monarch::test
