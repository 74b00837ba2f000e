//===- AtenDialect.cpp - registration of aten -----------------------------===//

#include "dialects/aten/AtenDialect.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace monarch::aten;

#include "dialects/aten/AtenDialect.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "dialects/aten/AtenAttrs.cpp.inc"

#define GET_OP_CLASSES
#include "dialects/aten/AtenOps.cpp.inc"

void AtenDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialects/aten/AtenAttrs.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialects/aten/AtenOps.cpp.inc"
      >();
}
