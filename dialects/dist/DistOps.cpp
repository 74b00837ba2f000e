//===- DistOps.cpp - the generated classes of dist's ops ------------------===//
//
// Apart from their registration (DistDialect.cpp): each is slow to compile.
//
//===----------------------------------------------------------------------===//
#include "dialects/dist/DistDialect.h"

#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace monarch::dist;
using monarch::aten::parseArguments;
using monarch::aten::printArguments;

#define GET_OP_CLASSES
#include "dialects/dist/DistOps.cpp.inc"
