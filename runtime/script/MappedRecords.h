//===- MappedRecords.h - records of an archive as storages ----------------===//
//
// Storages over a private mapping of the file: pages are read when a tensor is,
// and writes never reach the disk.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "core/support/Zip.h"

#include <c10/core/Storage.h>

namespace monarch {

class MappedRecords {
public:
  static Expected<MappedRecords> open(const std::string &path);

  c10::Storage storage(const ZipArchive::Record &record) const;

private:
  struct Mapping;
  std::shared_ptr<Mapping> mapping;
};

} // namespace monarch
