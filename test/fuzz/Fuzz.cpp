//===- Fuzz.cpp - libFuzzer's entry, one binary a reader ------------------===//
#include "test/fuzz/Readers.h"

#include <cstddef>
#include <cstdint>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const monarch::test::Reader &reader =
      monarch::test::readerNamed(MONARCH_READER);
  monarch::test::accepts(reader, {reinterpret_cast<const char *>(data), size});
  return 0;
}
