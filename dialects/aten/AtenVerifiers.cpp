//===- AtenVerifiers.cpp - what an op of aten may look like ---------------===//
//
// What one op can tell by itself, and that backward calls name a forward call.
// Order and roots of the whole graph are checked by pass `verify-joint`.
//
//===----------------------------------------------------------------------===//
#include "dialects/aten/AtenDialect.h"

#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace monarch;
using namespace monarch::aten;

/// Equal shape and element type, encodings aside.
static bool isAlike(mlir::Value a, mlir::Value b) {
  auto first = cast<RankedTensorType>(a.getType());
  auto second = cast<RankedTensorType>(b.getType());
  return first.getShape() == second.getShape() &&
         first.getElementType() == second.getElementType();
}

LogicalResult
BatchAttr::verifyEncoding(ArrayRef<int64_t> shape, Type,
                          function_ref<InFlightDiagnostic()> emitError) const {
  if (getFactors().size() != shape.size())
    return emitError() << "batch has " << getFactors().size() << " factors for "
                       << shape.size() << " dims";
  return success();
}

LogicalResult GraphOp::verifyRegions() {
  llvm::DenseSet<int64_t> nodes;
  for (CallOp call : getBody().getOps<CallOp>()) {
    if (std::optional<uint64_t> node = call.getNode())
      if (!nodes.insert(*node).second)
        return call.emitOpError("has the number of an earlier node, ") << *node;
    if (std::optional<uint64_t> forward = call.getForwardNode())
      if (!nodes.contains(*forward))
        return call.emitOpError("belongs to node ")
               << *forward << ", which no earlier call is";
  }
  return success();
}

LogicalResult ReturnOp::verify() {
  if (getLoss() && cast<RankedTensorType>(getLoss().getType()).getRank() != 0)
    return emitOpError("loss must be a scalar");
  return success();
}

LogicalResult ParameterOp::verify() {
  if (getNames().empty())
    return emitOpError("has no name");
  return success();
}

LogicalResult BufferOp::verify() {
  if (getNames().empty())
    return emitOpError("has no name");
  return success();
}

static LogicalResult verifyArgument(CallOp call, Attribute argument) {
  auto rank = [&](int32_t result) -> int64_t {
    if (result < 0 || result >= static_cast<int64_t>(call.getNumResults()))
      return None;
    auto type = dyn_cast<RankedTensorType>(call.getResult(result).getType());
    return type ? type.getRank() : None;
  };
  auto checkOperand = [&](int32_t index) -> LogicalResult {
    if (index < 0 || index >= static_cast<int64_t>(call.getNumOperands()))
      return call.emitOpError("argument names operand ")
             << index << ", but there are " << call.getNumOperands();
    return success();
  };
  return llvm::TypeSwitch<Attribute, LogicalResult>(argument)
      .Case([&](OperandAttr attr) { return checkOperand(attr.getIndex()); })
      .Case([&](OperandsAttr attr) -> LogicalResult {
        for (int32_t index : attr.getIndices())
          if (index != None && failed(checkOperand(index)))
            return failure();
        return success();
      })
      .Case([&](SizesOfAttr attr) -> LogicalResult {
        if (rank(attr.getResult()) == None)
          return call.emitOpError("argument takes sizes of result ")
                 << attr.getResult() << ", which is undefined";
        return success();
      })
      .Case([&](SizeOfAttr attr) -> LogicalResult {
        if (attr.getDim() < 0 || attr.getDim() >= rank(attr.getResult()))
          return call.emitOpError("argument takes size ")
                 << attr.getDim() << " of result " << attr.getResult()
                 << ", which does not exist";
        return success();
      })
      .Case([&](SizesAlongAttr attr) -> LogicalResult {
        for (unsigned i = 0; i < call.getNumResults(); ++i)
          if (attr.getDim() < 0 || attr.getDim() >= rank(i))
            return call.emitOpError("argument takes sizes along dim ")
                   << attr.getDim() << ", which result " << i << " lacks";
        return success();
      })
      .Default([&](Attribute attr) -> LogicalResult {
        if (!argOf(attr))
          return call.emitOpError("argument is no literal: ") << attr;
        return success();
      });
}

LogicalResult CallOp::verify() {
  if (getBackward() && getNode())
    return emitOpError("is backward and cannot be a node");
  if (!getBackward() && getForwardNode())
    return emitOpError("is forward and cannot belong to a node");
  for (Attribute argument : getArguments())
    if (failed(verifyArgument(*this, argument)))
      return failure();
  return success();
}

LogicalResult CotangentOp::verify() {
  for (mlir::Value value : getValues())
    if (!isAlike(getGradient(), value))
      return emitOpError("gradient of type ")
             << getGradient().getType() << " cannot be the cotangent of "
             << value.getType();
  return success();
}

LogicalResult GradientsOp::verify() {
  if (!getParameter().getDefiningOp<ParameterOp>())
    return emitOpError("are of a value that is no parameter");
  for (mlir::Value use : getUses())
    if (!isAlike(getParameter(), use))
      return emitOpError("gradient of type ")
             << use.getType() << " cannot be one of parameter "
             << getParameter().getType();
  return success();
}

LogicalResult UpdateOp::verify() {
  if (!getBuffer().getDefiningOp<BufferOp>())
    return emitOpError("is of a value that is no buffer");
  if (!isAlike(getBuffer(), getUpdated()))
    return emitOpError("makes a buffer of type ")
           << getBuffer().getType() << " one of type "
           << getUpdated().getType();
  return success();
}

LogicalResult CountOp::verify() {
  if (!getInverseCount().getDefiningOp<InverseCountOp>())
    return emitOpError("is of a value that is no inverse count");
  return success();
}
