//===- Leaves.h - names and storage of leaves as attributes ---------------===//
//
// The same in aten and in dist, either way.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "dialects/aten/AtenDialect.h"

namespace monarch::aten {

mlir::ArrayAttr attributeOf(const std::vector<std::string> &names,
                            mlir::MLIRContext *context);
std::vector<std::string> namesOf(mlir::ArrayAttr names);

StorageAttr attributeOf(const Storage &storage, mlir::MLIRContext *context);
Storage storageOf(StorageAttr attribute);

} // namespace monarch::aten
