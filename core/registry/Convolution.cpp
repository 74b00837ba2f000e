//===- Convolution.cpp - rules and bodies of convolution ------------------===//
//
// Rows and output channels are split as they are; split input channels leave
// partial sums, and the bias must be partial too. A depthwise convolution has
// one channel a group: its groups are split. Other groups, and the dims that
// the window slides over, are whole. Kernels refuse tensors without channels:
// where a block may be empty, a channel of zeros goes in front of it.
//
//===----------------------------------------------------------------------===//
#include "core/registry/Body.h"
#include "core/registry/Registry.h"

namespace monarch {

namespace {

/// Places of x and weight among operands, and their channels.
struct Convolution {
  int x = 0, weight = 1, bias = -1;
  size_t groupsArgument = 0;
  /// Dims of the weight's output and input channels.
  int64_t weightOut = 0, weightIn = 1;
  bool isDepthwise = false;
  /// "g" for both when depthwise; "" where channels are whole.
  const char *out = "", *in = "";
};

Convolution convolutionOf(const OpView &op, int x, int weight,
                          size_t transposedArgument) {
  Convolution conv;
  conv.x = x;
  conv.weight = weight;
  conv.groupsArgument = transposedArgument + 2;
  const int64_t groups = op.intAt(conv.groupsArgument, 1);
  const bool isTransposed = op.boolAt(transposedArgument, false);
  if (isTransposed)
    std::swap(conv.weightOut, conv.weightIn);
  if (groups == 1) {
    conv.out = "k";
    conv.in = "c";
  } else if (!isTransposed && groups == op.shape(x)[1] &&
             groups == op.shape(weight)[0]) {
    conv.isDepthwise = true;
    conv.out = conv.in = "g";
  }
  return conv;
}

Labels activation(size_t rank, const char *channels) {
  Labels names(rank);
  names[0] = {"n"};
  names[1] = {channels};
  return names;
}

Labels weightLabels(const Convolution &conv, size_t rank) {
  Labels names(rank);
  names[conv.weightOut] = {conv.out};
  if (!conv.isDepthwise)
    names[conv.weightIn] = {conv.in};
  return names;
}

//===- Channels of zeros --------------------------------------------------===//

Local withZerosInFront(Lowering &lowering, Local x, int64_t dim) {
  Body body(lowering);
  std::vector<Expr> zero = body.shape(x), longer = zero;
  zero[dim] = Expr::constant(1);
  longer[dim] = Expr::constant(1) + longer[dim];
  return lowering.writer.call(
      "aten::cat", {body.full(zero, 0, body.type(x)), x},
      {OperandListArg{{0, 1}}, Expr::constant(dim)}, body.type(x), longer);
}

Local withoutFront(Lowering &lowering, Local x, int64_t dim) {
  Body body(lowering);
  std::vector<Expr> shape = body.shape(x);
  const Expr end = shape[dim];
  shape[dim] = end + Expr::constant(-1);
  return body.copy(
      lowering.writer.call("aten::slice.Tensor", {x},
                           {OperandArg{0}, Expr::constant(dim),
                            Expr::constant(1), end, Expr::constant(1)},
                           body.type(x), shape));
}

/// Which channels get one more on this rank.
struct Padding {
  bool out = false, in = false;
};

Padding paddingOf(Lowering &lowering, const Convolution &conv) {
  auto mayBeEmpty = [&](const char *label, int64_t dim) {
    return lowering.splits(label) && lowering.mayBeEmpty(lowering.operandShard(
                                         conv.weight, static_cast<int>(dim)));
  };
  Padding padding;
  padding.out = *conv.out && mayBeEmpty(conv.out, conv.weightOut);
  padding.in = conv.isDepthwise
                   ? padding.out
                   : *conv.in && mayBeEmpty(conv.in, conv.weightIn);
  return padding;
}

Local paddedWeight(Lowering &lowering, const Convolution &conv,
                   const Padding &padding, Local weight) {
  if (padding.out)
    weight = withZerosInFront(lowering, weight, conv.weightOut);
  if (padding.in && !conv.isDepthwise)
    weight = withZerosInFront(lowering, weight, conv.weightIn);
  return weight;
}

std::vector<CallArg> argsOf(Lowering &lowering, const Convolution &conv,
                            Local x) {
  std::vector<CallArg> args;
  for (size_t k = 0; k < lowering.op.args.size(); ++k)
    args.push_back(lowering.localArg(k));
  if (conv.isDepthwise)
    args[conv.groupsArgument] = lowering.writer[x].shape[1];
  return args;
}

//===- Forward ------------------------------------------------------------===//

void lowerForward(Lowering &lowering, const Convolution &conv) {
  const Padding padding = paddingOf(lowering, conv);
  std::vector<Local> operands = lowering.operands;
  Local &x = operands[conv.x];
  if (padding.in)
    x = withZerosInFront(lowering, x, 1);
  operands[conv.weight] =
      paddedWeight(lowering, conv, padding, operands[conv.weight]);
  if (!padding.out)
    return lowering.callAs(lowering.op.name, operands,
                           argsOf(lowering, conv, x));
  if (conv.bias >= 0)
    operands[conv.bias] = withZerosInFront(lowering, operands[conv.bias], 0);
  std::vector<Expr> shape = lowering.resultShape(0);
  shape[1] = Expr::constant(1) + shape[1];
  Local y = lowering.writer.call(lowering.op.name, operands,
                                 argsOf(lowering, conv, x),
                                 lowering.resultType(0), shape);
  lowering.results = {withoutFront(lowering, y, 1)};
}

/// convolution(x, weight, bias?, stride, padding, dilation, transposed,
/// output_padding, groups).
std::optional<OpRule> convolution(const OpView &op) {
  Convolution conv =
      convolutionOf(op, op.operandAt(0), op.operandAt(1), /*transposed=*/6);
  conv.bias = op.operandAt(2);
  const size_t rank = op.shape(conv.x).size();
  if (rank != op.resultShape(0).size() || rank < 3)
    return std::nullopt;
  OpRule rule;
  rule.operands.resize(op.operandCount());
  rule.operands[conv.x] = activation(rank, conv.in);
  rule.operands[conv.weight] = weightLabels(conv, rank);
  if (conv.bias >= 0)
    rule.operands[conv.bias] = labels({conv.out});
  rule.results = {activation(rank, conv.out)};
  if (!conv.isDepthwise && *conv.in)
    makePartial(rule, conv.in);
  if (conv.bias >= 0) {
    if (!conv.isDepthwise && *conv.in) {
      auto &operands = rule.effects[conv.in].operands;
      operands.assign(op.operandCount(), AxisStateKind::Replicated);
      operands[conv.bias] = AxisStateKind::Partial;
    }
    addLinear(rule, {conv.bias, conv.x});
    addLinear(rule, {conv.bias, conv.weight});
  } else {
    addLinear(rule, {conv.x});
    addLinear(rule, {conv.weight});
  }
  rule.lower = [conv](Lowering &lowering) { lowerForward(lowering, conv); };
  return rule;
}

//===- Backward -----------------------------------------------------------===//

void lowerBackward(Lowering &lowering, const Convolution &conv) {
  const Padding padding = paddingOf(lowering, conv);
  std::vector<Local> operands = lowering.operands;
  Local &gradient = operands[0], &x = operands[conv.x];
  if (padding.out)
    gradient = withZerosInFront(lowering, gradient, 1);
  if (padding.in)
    x = withZerosInFront(lowering, x, 1);
  Local &weight = operands[conv.weight];
  weight = paddedWeight(lowering, conv, padding, weight);
  std::vector<CallArg> args = argsOf(lowering, conv, x);
  if (!padding.out && !padding.in)
    return lowering.callAs(lowering.op.name, operands, args);

  // Results are like x and weight, and one number for each output channel.
  const std::vector<Expr> channels = {lowering.writer[gradient].shape[1]};
  if (lowering.op.results[2] != None)
    args[3] = channels;
  const std::vector<Expr> shapes[] = {lowering.writer[x].shape,
                                      lowering.writer[weight].shape, channels};
  std::vector<ProgramValue> values;
  std::vector<int32_t> all(3, None);
  for (int k = 0; k < 3; ++k)
    if (lowering.op.results[k] != None) {
      values.emplace_back();
      values.back().type = lowering.resultType(k);
      values.back().shape = shapes[k];
    }
  std::vector<Local> made =
      lowering.writer.call(lowering.op.name, operands, args, values);
  lowering.results.assign(3, Local());
  for (size_t k = 0, next = 0; k < 3; ++k)
    if (lowering.op.results[k] != None) {
      lowering.results[k] = made[next++];
      all[k] = lowering.results[k].value;
    }
  lowering.writer.target->back().results = all;

  auto cutFront = [&](Local &result, bool isPadded, int64_t dim) {
    if (result.defined() && isPadded)
      result = withoutFront(lowering, result, dim);
  };
  cutFront(lowering.results[0], padding.in, 1);
  cutFront(lowering.results[1], padding.out, conv.weightOut);
  cutFront(lowering.results[1], padding.in && !conv.isDepthwise, conv.weightIn);
  cutFront(lowering.results[2], padding.out, 0);
}

/// convolution_backward(gradient, x, weight, bias_sizes, stride, padding,
/// dilation, transposed, output_padding, groups, mask) -> (dx, dweight, dbias).
std::optional<OpRule> convolutionBackward(const OpView &op) {
  const Convolution conv =
      convolutionOf(op, op.operandAt(1), op.operandAt(2), /*transposed=*/7);
  const size_t rank = op.shape(conv.x).size();
  if (op.operandAt(0) != 0 || rank < 3)
    return std::nullopt;
  OpRule rule;
  rule.operands.resize(op.operandCount());
  rule.operands[0] = activation(rank, conv.out);
  rule.operands[conv.x] = activation(rank, conv.in);
  rule.operands[conv.weight] = weightLabels(conv, rank);
  rule.results = {rule.operands[conv.x], rule.operands[conv.weight],
                  labels({conv.out})};
  for (size_t k = 0; k < rule.results.size(); ++k)
    if (op.op.results[k] == None)
      rule.results[k].clear();
  makePartial(rule, "n");
  if (*conv.out && !conv.isDepthwise)
    makePartial(rule, conv.out);
  addLinear(rule, {0});
  rule.lower = [conv](Lowering &lowering) { lowerBackward(lowering, conv); };
  return rule;
}

} // namespace

void addConvolutionRules(RuleTable &table) {
  table["aten::convolution"] = convolution;
  table["aten::convolution_backward"] = convolutionBackward;
}

} // namespace monarch
