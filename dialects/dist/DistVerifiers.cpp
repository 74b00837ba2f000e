//===- DistVerifiers.cpp - what an op of dist may look like ---------------===//
//
// What one op, or a program and the types inside it, can tell. Matching of
// roles, lifetimes and sizes of a whole program are proved by `core/program`.
//
//===----------------------------------------------------------------------===//
#include "core/program/ProgramFormat.h"
#include "dialects/dist/LocalTypes.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace monarch;
using namespace monarch::dist;

using EmitError = function_ref<InFlightDiagnostic()>;

//===- Encodings ----------------------------------------------------------===//

LogicalResult LayoutAttr::verifyEncoding(ArrayRef<int64_t> shape, Type,
                                         EmitError emitError) const {
  for (const AxisState &state : getValue().states)
    if (state.isSplit() &&
        (state.dim < 0 || state.dim >= static_cast<int64_t>(shape.size())))
      return emitError() << "layout splits dim " << state.dim
                         << " of a tensor of rank " << shape.size();
  if (ShapedType::isDynamicShape(shape))
    return emitError() << "a global tensor has sizes that do not depend on the "
                          "rank";
  return success();
}

LogicalResult SizesAttr::verifyEncoding(ArrayRef<int64_t> shape, Type,
                                        EmitError emitError) const {
  if (getValue().size() != shape.size())
    return emitError() << "there are " << getValue().size() << " sizes for "
                       << shape.size() << " dims";
  return success();
}

//===- Program ------------------------------------------------------------===//

/// The layout exists on the mesh, and on the structure where that is known.
static LogicalResult verifyLayout(Operation *op, const Layout &layout,
                                  const Mesh &mesh,
                                  const TensorStructure *structure = nullptr) {
  if (layout.states.size() != mesh.axes.size())
    return op->emitOpError("has a layout over ")
           << layout.states.size() << " axes on a mesh of " << mesh.axes.size();
  if (structure && !fits(layout, *structure, mesh))
    return op->emitOpError("has a layout that does not fit its structure");
  return success();
}

static TensorStructure structureOf(ArrayAttr dims) {
  TensorStructure structure;
  for (DimAttr dim : dims.getAsRange<DimAttr>())
    structure.push_back(dim.getValue());
  return structure;
}

static LogicalResult verifyOn(Operation *op, const Mesh &mesh) {
  for (Type type : op->getResultTypes())
    if (isGlobal(type)) {
      Attribute encoding = cast<RankedTensorType>(type).getEncoding();
      if (failed(verifyLayout(op, cast<LayoutAttr>(encoding).getValue(), mesh)))
        return failure();
    }
  auto verifyLeaf = [&](auto leaf) {
    TensorStructure structure = structureOf(leaf.getStructure());
    return verifyLayout(op, leaf.getLayout().getValue(), mesh, &structure);
  };
  if (auto parameter = dyn_cast<ParameterOp>(op))
    return verifyLeaf(parameter);
  if (auto input = dyn_cast<InputOp>(op))
    return verifyLeaf(input);
  if (auto axes = op->getAttrOfType<DenseI32ArrayAttr>("axes"))
    for (int32_t axis : axes.asArrayRef())
      if (axis < 0 || axis >= static_cast<int32_t>(mesh.axes.size()))
        return op->emitOpError("runs over axis ")
               << axis << " of a mesh of " << mesh.axes.size();
  return success();
}

LogicalResult ProgramOp::verifyRegions() {
  const Mesh &mesh = getMesh().getValue();
  for (auto [number, op] : llvm::enumerate(getBody().front())) {
    auto role = dyn_cast<RoleOp>(op);
    if (!role)
      return op.emitOpError("stands where roles are");
    if (role.getStage() != number)
      return role.emitOpError("is of stage ")
             << role.getStage() << " but stands as role " << number;
  }
  WalkResult result = walk([&](Operation *op) {
    return failed(verifyOn(op, mesh)) ? WalkResult::interrupt()
                                      : WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}

LogicalResult SegmentOp::verify() {
  if (!parseEnumerator<SegmentKind>(getKind().str()))
    return emitOpError("'") << getKind() << "' is no kind of segment";
  return success();
}

/// What a region yields is what its op returns.
template <typename OpT> static LogicalResult verifyYield(OpT op) {
  auto yield = dyn_cast<YieldOp>(op.getBody().front().getTerminator());
  if (!yield)
    return success(); // another verifier says so
  if (yield.getLocals().getTypes() != op.getLocals().getTypes())
    return op.emitOpError("returns other local tensors than its region yields");
  return success();
}

LogicalResult SegmentOp::verifyRegions() {
  auto yield = cast<YieldOp>(getBody().front().getTerminator());
  if (yield.getGlobals().getTypes() != getGlobals().getTypes())
    return emitOpError("returns other global tensors than its region yields");
  return verifyYield(*this);
}

LogicalResult OpOp::verifyRegions() { return verifyYield(*this); }
LogicalResult TransferOp::verifyRegions() { return verifyYield(*this); }
LogicalResult FinishOp::verifyRegions() { return verifyYield(*this); }
LogicalResult ReshardOp::verifyRegions() { return verifyYield(*this); }

LogicalResult ReshardOp::verify() {
  if (getGlobals().size() != 1)
    return emitOpError("makes ") << getGlobals().size() << " global tensors";
  auto from = cast<RankedTensorType>(getOperand().getType());
  auto to = cast<RankedTensorType>(getGlobals()[0].getType());
  if (from.getShape() != to.getShape() ||
      from.getElementType() != to.getElementType())
    return emitOpError("changes more than the layout: ")
           << from << " to " << to;
  return success();
}

LogicalResult IndexOp::verify() {
  for (const std::vector<Expr> *list :
       {&getOf().getValue(), &getIn().getValue()})
    for (const Expr &expr : *list)
      if (expr.terms.size() != 1 || expr.terms[0].constant != 1 ||
          expr.terms[0].sizes.size() != 1)
        return emitOpError("lists something that is no shard");
  return success();
}

LogicalResult GradientOp::verify() {
  if (!getParameter().getDefiningOp<ParameterOp>())
    return emitOpError("is of a value that is no parameter");
  Type updated = getParameter().getType();
  if (mlir::Value master = getMaster()) {
    auto narrow = cast<RankedTensorType>(updated);
    updated = narrow.clone(Float32Type::get(getContext()));
    if (!isa<BFloat16Type, Float16Type>(narrow.getElementType()) ||
        master.getType() != updated)
      return emitOpError("has a master copy that is no float32 copy of a "
                         "bfloat16 or float16 parameter");
  }
  if (getGradient().getType() != updated)
    return emitOpError("does not have the type of what it updates");
  return success();
}

//===- Instructions -------------------------------------------------------===//

LogicalResult CallOp::verify() {
  if (getValues().size() != getNumResults())
    return emitOpError("has ")
           << getNumResults() << " results but names " << getValues().size();
  for (auto [value, result] : llvm::zip_equal(getValues(), getResults()))
    if (isa<ValueAttr>(value) == isa<NoneType>(result.getType()))
      return emitOpError("names a dropped result, or drops a named one");
  for (Attribute argument : getArguments()) {
    if (!callArgOf(argument))
      return emitOpError("argument is no literal of a program: ") << argument;
    auto isOperand = [&](int32_t index) {
      return index >= 0 && index < static_cast<int64_t>(getNumOperands());
    };
    auto one = dyn_cast<aten::OperandAttr>(argument);
    if (one && !isOperand(one.getIndex()))
      return emitOpError("argument names operand ")
             << one.getIndex() << ", but there are " << getNumOperands();
    if (auto list = dyn_cast<aten::OperandsAttr>(argument))
      for (int32_t index : list.getIndices())
        if (index != None && !isOperand(index))
          return emitOpError("argument names operand ")
                 << index << ", but there are " << getNumOperands();
  }
  return success();
}

static LogicalResult verifyReduction(Operation *op, StringRef reduction) {
  if (reduction != "sum" && reduction != "max")
    return op->emitOpError("'") << reduction << "' is no reduction";
  return success();
}

/// Exchanges work on flat buffers of one element type, one size per member.
template <typename OpT>
static LogicalResult
verifyExchange(OpT op, std::initializer_list<const std::vector<Expr> *> sizes) {
  auto from = cast<RankedTensorType>(op.getTensor().getType());
  auto to = cast<RankedTensorType>(op.getResult().getType());
  if (from.getElementType() != to.getElementType())
    return op.emitOpError("changes the element type");
  if (from.getRank() != 1 || to.getRank() != 1)
    return op.emitOpError("is not of flat tensors");
  auto program = op->template getParentOfType<ProgramOp>();
  if (!program)
    return success();
  const Mesh &mesh = program.getMesh().getValue();
  int64_t members = 1;
  for (int32_t axis : op.getAxes()) {
    if (axis < 0 || axis >= static_cast<int64_t>(mesh.axes.size()))
      return success(); // the program's verifier says so
    members *= mesh.axes[axis].size;
  }
  for (const std::vector<Expr> *list : sizes)
    if (static_cast<int64_t>(list->size()) != members)
      return op.emitOpError("has ")
             << list->size() << " sizes for a group of " << members;
  return success();
}

LogicalResult AllReduceOp::verify() {
  return verifyReduction(*this, getReduction());
}

LogicalResult AllGatherOp::verify() {
  return verifyExchange(*this, {&getReceive().getValue()});
}

LogicalResult ReduceScatterOp::verify() {
  if (failed(verifyReduction(*this, getReduction())))
    return failure();
  return verifyExchange(*this, {&getSend().getValue()});
}

LogicalResult AllToAllOp::verify() {
  return verifyExchange(*this,
                        {&getSend().getValue(), &getReceive().getValue()});
}

LogicalResult ZeroOp::verify() {
  if (getTensor().getType() != getResult().getType())
    return emitOpError("changes the type");
  return success();
}

LogicalResult UpdateOp::verify() {
  if (getParameter().getType() != getGradient().getType())
    return emitOpError("has a gradient of another type than the parameter");
  return success();
}
