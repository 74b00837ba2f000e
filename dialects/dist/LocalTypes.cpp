//===- LocalTypes.cpp - values and arguments of programs in dist ----------===//

#include "dialects/dist/LocalTypes.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;

namespace monarch::dist {

static std::optional<int64_t> constantOf(const Expr &expr) {
  if (expr.terms.empty())
    return 0;
  if (expr.terms.size() == 1 && expr.terms[0].sizes.empty())
    return expr.terms[0].constant;
  return std::nullopt;
}

/// All of them, or nothing.
static std::optional<std::vector<int64_t>>
constantsOf(const std::vector<Expr> &exprs) {
  std::vector<int64_t> constants;
  for (const Expr &expr : exprs) {
    std::optional<int64_t> constant = constantOf(expr);
    if (!constant)
      return std::nullopt;
    constants.push_back(*constant);
  }
  return constants;
}

RankedTensorType localType(DType type, const std::vector<Expr> &shape,
                           MLIRContext *context) {
  SmallVector<int64_t> dims = llvm::map_to_vector(shape, [](const Expr &size) {
    return constantOf(size).value_or(ShapedType::kDynamic);
  });
  Attribute encoding;
  if (llvm::is_contained(dims, ShapedType::kDynamic))
    encoding = SizesAttr::get(context, shape);
  return RankedTensorType::get(dims, aten::elementType(type, context),
                               encoding);
}

std::vector<Expr> shapeOf(RankedTensorType type) {
  if (auto sizes = dyn_cast_or_null<SizesAttr>(type.getEncoding()))
    return sizes.getValue();
  std::vector<Expr> shape;
  for (int64_t dim : type.getShape())
    shape.push_back(Expr::constant(dim));
  return shape;
}

namespace {

struct ArgumentWriter {
  MLIRContext *context;

  Attribute operator()(const Expr &arg) const {
    if (std::optional<int64_t> constant = constantOf(arg))
      return aten::attributeOf(*constant, context);
    return ExprAttr::get(context, arg);
  }
  Attribute operator()(const std::vector<Expr> &arg) const {
    if (std::optional<std::vector<int64_t>> constants = constantsOf(arg))
      return aten::attributeOf(*constants, context);
    return SizesAttr::get(context, arg);
  }
  template <typename T> Attribute operator()(const T &arg) const {
    return aten::attributeOf(Arg(arg), context);
  }
};

struct ArgumentReader {
  using Result = std::optional<CallArg>;
  Result operator()(int64_t arg) const { return Expr::constant(arg); }
  Result operator()(const std::vector<int64_t> &arg) const {
    std::vector<Expr> exprs;
    for (int64_t each : arg)
      exprs.push_back(Expr::constant(each));
    return exprs;
  }
  // Sizes are spelled out in a program.
  Result operator()(const ResultSizes &) const { return std::nullopt; }
  Result operator()(const ResultSize &) const { return std::nullopt; }
  Result operator()(const ResultsSizes &) const { return std::nullopt; }
  template <typename T> Result operator()(const T &arg) const { return arg; }
};

} // namespace

Attribute attributeOf(const CallArg &arg, MLIRContext *context) {
  return std::visit(ArgumentWriter{context}, arg);
}

std::optional<CallArg> callArgOf(Attribute attribute) {
  if (auto expr = dyn_cast<ExprAttr>(attribute))
    return expr.getValue();
  if (auto sizes = dyn_cast<SizesAttr>(attribute))
    return sizes.getValue();
  if (std::optional<Arg> arg = aten::argOf(attribute))
    return std::visit(ArgumentReader(), *arg);
  return std::nullopt;
}

} // namespace monarch::dist
