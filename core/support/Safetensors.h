//===- Safetensors.h - weights, batches and results on disk ---------------===//
//
// The safetensors format: an 8-byte little-endian header length, a JSON header,
// then tensor bytes that tile the rest of the file. Nothing of a file is
// trusted: sizes, offsets, overlaps and types are checked before a byte is
// read, and bytes are read by offset, never a whole file.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "core/graph/Graph.h"
#include "core/support/Files.h"

#include <fstream>
#include <map>

namespace monarch {

struct SafetensorsTensor {
  std::string name;
  DType type = DType::Float32;
  std::vector<int64_t> shape;
  /// From the start of the file.
  int64_t offsetBytes = 0;
  int64_t bytes = 0;
};

/// An open file, for one thread. MP1910 when it is not one.
class SafetensorsFile {
public:
  static Expected<SafetensorsFile> open(const std::string &path);

  /// By name.
  const std::vector<SafetensorsTensor> &tensors() const { return all; }
  const SafetensorsTensor *find(std::string_view name) const;
  const std::map<std::string, std::string> &metadata() const { return texts; }
  const std::string &path() const { return file; }
  /// Bytes [offset, offset + bytes) of a tensor.
  std::optional<Error> read(const SafetensorsTensor &tensor, int64_t offset,
                            int64_t bytes, void *out);

private:
  SafetensorsFile() = default;
  std::string file;
  std::ifstream stream;
  std::vector<SafetensorsTensor> all;
  std::map<std::string, std::string> texts;
};

/// Writes a file whose tensors are known beforehand, their bytes in any order
/// and in pieces. Tensors lie by falling element width, then by name, so that
/// each is aligned to its elements. The file appears when `commit` succeeds.
class SafetensorsWriter {
public:
  /// Uses name, type and shape of each tensor.
  static Expected<SafetensorsWriter>
  create(const std::string &path, std::vector<SafetensorsTensor> tensors,
         const std::map<std::string, std::string> &metadata = {});

  /// Bytes of a tensor from this offset within it.
  std::optional<Error> write(std::string_view name, int64_t offset,
                             const void *data, int64_t bytes);
  /// An error when the bytes written are not exactly those declared.
  std::optional<Error> commit();

private:
  explicit SafetensorsWriter(TemporaryFile file) : file(std::move(file)) {}
  TemporaryFile file;
  std::string path;
  std::vector<SafetensorsTensor> tensors;
  int64_t missingBytes = 0;
};

} // namespace monarch
