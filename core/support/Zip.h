//===- Zip.h - stored records of a ZIP archive ----------------------------===//
//
// Reads the archives that PyTorch writes: ZIP and ZIP64, records under one root
// folder. Only stored records are read; compressed ones are listed. Every
// offset is checked against the file's size, records that are read whole
// against their CRC-32. Weights are read by offset: no record is ever loaded
// because it exists.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "core/support/Error.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace monarch {

class ZipArchive {
public:
  struct Record {
    uint64_t size = 0;
    /// Of the first byte of data, from the start of the file.
    uint64_t offset = 0;
    uint32_t crc32 = 0;
    /// Neither compressed nor encrypted; of other records only the name is
    /// known to be right.
    bool isStored = true;
  };

  static Expected<ZipArchive> open(const std::string &path);

  const std::string &path() const { return filePath; }
  /// By name below the root folder ("data/weights/weight_0"), sorted.
  const std::map<std::string, Record> &records() const { return byName; }
  const Record *find(std::string_view name) const;

  /// A small record whole, its CRC checked; larger ones than `limitBytes` are
  /// refused.
  Expected<std::string> read(const std::string &name,
                             uint64_t limitBytes = uint64_t{1} << 30) const;
  /// Fills `bytes` from `offset` inside the record; nullopt when all went well.
  std::optional<Error> readAt(const std::string &name, uint64_t offset,
                              std::span<std::byte> bytes) const;

private:
  struct File;

  Expected<const Record *> findStored(const std::string &name) const;

  std::string filePath;
  std::shared_ptr<File> file;
  std::map<std::string, Record> byName;
};

/// CRC-32 of ISO 3309, as ZIP and PNG use it.
uint32_t crc32(std::string_view bytes);

} // namespace monarch
