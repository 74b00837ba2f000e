//===- DistDialect.cpp - registration of dist -----------------------------===//

#include "dialects/dist/DistDialect.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace monarch::dist;

#include "dialects/dist/DistDialect.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "dialects/dist/DistAttrs.cpp.inc"

bool monarch::dist::isGlobal(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor && isa_and_nonnull<LayoutAttr>(tensor.getEncoding());
}

bool monarch::dist::isLocal(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor &&
         (!tensor.getEncoding() || isa<SizesAttr>(tensor.getEncoding()));
}

void DistDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialects/dist/DistAttrs.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialects/dist/DistOps.cpp.inc"
      >();
}
