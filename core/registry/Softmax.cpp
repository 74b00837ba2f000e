//===- Softmax.cpp - rules and bodies of softmax --------------------------===//
//
// Other dims are split as they are; the normalised dim by a body: the largest
// and the sum of exponentials over all ranks forward, one sum backward.
//
//===----------------------------------------------------------------------===//
#include "core/registry/Body.h"
#include "core/registry/Registry.h"

namespace monarch {

namespace {

/// (x, dim, half_to_float).
std::optional<OpRule> softmax(const OpView &op) {
  OpRule rule = elementwise(op);
  if (op.shape(0).empty())
    return rule;
  int64_t dim = wrapDim(op.intAt(1, 0), op.shape(0).size());
  std::string label = rule.results[0][dim].name;
  bool isLog = op.op.name == "aten::_log_softmax";
  rule.lower = [dim, label, isLog](Lowering &lowering) {
    std::vector<int> axes = lowering.axesOf({label});
    if (axes.empty())
      return lowering.callItself();
    Body body(lowering);
    DType type = lowering.resultType(0);
    Local x = body.cast(lowering.operands[0], accumulationType(type));
    Local own = body.logSumExp(x, {dim}, /*keepDims=*/true);
    Local y = body.sub(x, body.allReduceLogSumExp(own, axes));
    lowering.results = {body.cast(isLog ? y : body.exp(y), type)};
  };
  return rule;
}

/// (gradient, output, dim, input_dtype).
std::optional<OpRule> softmaxBackward(const OpView &op) {
  OpRule rule = elementwise(op);
  addLinear(rule, {0});
  if (op.shape(0).empty())
    return rule;
  int64_t dim = wrapDim(op.intAt(2, 0), op.shape(0).size());
  std::string label = rule.results[0][dim].name;
  bool isLog = op.op.name == "aten::_log_softmax_backward_data";
  rule.lower = [dim, label, isLog](Lowering &lowering) {
    std::vector<int> axes = lowering.axesOf({label});
    if (axes.empty())
      return lowering.callItself();
    Body body(lowering);
    DType type = accumulationType(body.type(lowering.operands[0]));
    Local gradient = body.cast(lowering.operands[0], type);
    Local output = body.cast(lowering.operands[1], type);
    Local product = isLog ? gradient : body.mul(gradient, output);
    Local sum =
        body.allReduceSum(body.sum(product, {dim}, /*keepDims=*/true), axes);
    Local result = isLog ? body.sub(gradient, body.mul(body.exp(output), sum))
                         : body.mul(body.sub(gradient, sum), output);
    lowering.results = {body.cast(result, lowering.resultType(0))};
  };
  return rule;
}

} // namespace

void addSoftmaxRules(RuleTable &table) {
  table["aten::_softmax"] = softmax;
  table["aten::_log_softmax"] = softmax;
  table["aten::_softmax_backward_data"] = softmaxBackward;
  table["aten::_log_softmax_backward_data"] = softmaxBackward;
}

} // namespace monarch
