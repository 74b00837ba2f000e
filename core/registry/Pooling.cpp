//===- Pooling.cpp - rules of pooling and resampling ----------------------===//
//
// The dims that windows slide over are whole; those before them, rows and
// channels, may be split. Kernels refuse tensors without channels, but not
// without rows: where channels are split and a block may be empty, rows and
// channels become one dim of rows.
//
//===----------------------------------------------------------------------===//
#include "core/registry/Body.h"
#include "core/registry/Registry.h"

namespace monarch {

namespace {

/// [rows * channels, 1, spatial dims].
std::vector<Expr> asPlanes(const std::vector<Expr> &shape, size_t spatial) {
  Expr planes = Expr::constant(1);
  for (size_t dim = 0; dim + spatial < shape.size(); ++dim)
    planes = planes * shape[dim];
  std::vector<Expr> result = {planes, Expr::constant(1)};
  result.insert(result.end(), shape.end() - static_cast<int64_t>(spatial),
                shape.end());
  return result;
}

void lowerPlanes(Lowering &lowering, size_t spatial) {
  const int channels =
      static_cast<int>(lowering.resultStructure[0]->size() - spatial) - 1;
  if (!lowering.splits("d" + std::to_string(channels)) ||
      !lowering.mayBeEmpty(lowering.resultShard(0, channels)))
    return lowering.callItself();
  Body body(lowering);
  std::vector<Local> operands;
  for (Local operand : lowering.operands)
    operands.push_back(
        operand.defined()
            ? body.view(operand, asPlanes(body.shape(operand), spatial))
            : operand);
  std::vector<CallArg> args;
  for (size_t k = 0; k < lowering.op.args.size(); ++k)
    args.push_back(std::holds_alternative<ResultSizes>(lowering.op.args[k])
                       ? asPlanes(lowering.resultShape(0), spatial)
                       : lowering.localArg(k));
  std::vector<ProgramValue> values(lowering.op.results.size());
  for (size_t k = 0; k < values.size(); ++k) {
    values[k].type = lowering.resultType(static_cast<int>(k));
    values[k].shape =
        asPlanes(lowering.resultShape(static_cast<int>(k)), spatial);
  }
  std::vector<Local> made =
      lowering.writer.call(lowering.op.name, operands, args, values);
  lowering.results.clear();
  for (size_t k = 0; k < made.size(); ++k)
    lowering.results.push_back(
        body.view(made[k], lowering.resultShape(static_cast<int>(k))));
}

/// Every operand and result has the same leading dims and `spatial` more.
OpRule planes(const OpView &op, size_t spatial) {
  OpRule rule;
  auto leading = [&](const Shape &shape) {
    Labels names = numbered(shape.size());
    for (size_t dim = shape.size() - spatial; dim < shape.size(); ++dim)
      names[dim] = {};
    return names;
  };
  for (size_t k = 0; k < op.operandCount(); ++k)
    rule.operands.push_back(leading(op.shape(static_cast<int>(k))));
  for (size_t k = 0; k < op.resultCount(); ++k)
    rule.results.push_back(leading(op.resultShape(static_cast<int>(k))));
  rule.lower = [spatial](Lowering &lowering) {
    lowerPlanes(lowering, spatial);
  };
  return rule;
}

template <size_t Spatial> std::optional<OpRule> nonlinear(const OpView &op) {
  return planes(op, Spatial);
}

/// Linear in the first operand alone.
template <size_t Spatial> std::optional<OpRule> linear(const OpView &op) {
  OpRule rule = planes(op, Spatial);
  addLinear(rule, {0});
  return rule;
}

} // namespace

void addPoolingRules(RuleTable &table) {
  table["aten::max_pool2d_with_indices"] = nonlinear<2>;
  for (const char *name :
       {"aten::max_pool2d_with_indices_backward", "aten::avg_pool2d",
        "aten::avg_pool2d_backward", "aten::_adaptive_avg_pool2d",
        "aten::_adaptive_avg_pool2d_backward", "aten::upsample_nearest2d",
        "aten::upsample_nearest2d_backward", "aten::upsample_bilinear2d",
        "aten::upsample_bilinear2d_backward"})
    table[name] = linear<2>;
  for (const char *name :
       {"aten::upsample_nearest1d", "aten::upsample_nearest1d_backward"})
    table[name] = linear<1>;
}

} // namespace monarch
