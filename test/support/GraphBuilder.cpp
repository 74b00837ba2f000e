//===- GraphBuilder.cpp - joint graphs by hand, for tests -----------------===//

#include "test/support/GraphBuilder.h"

#include <stdexcept>

namespace monarch::test {

ValueId GraphBuilder::leaf(ValueKind kind, std::string name, Shape shape,
                           DType type) {
  Value value;
  value.name = std::move(name);
  value.kind = kind;
  value.type = type;
  value.batch.assign(shape.size(), 0);
  value.shape = std::move(shape);
  graph.values.push_back(std::move(value));
  return static_cast<ValueId>(graph.values.size() - 1);
}

ValueId GraphBuilder::parameter(std::string name, Shape shape, DType type) {
  Parameter parameter;
  parameter.names = {name};
  parameter.value =
      leaf(ValueKind::Parameter, std::move(name), std::move(shape), type);
  graph.parameters.push_back(parameter);
  return parameter.value;
}

ValueId GraphBuilder::buffer(std::string name, Shape shape, DType type) {
  Buffer buffer;
  buffer.names = {name};
  buffer.value =
      leaf(ValueKind::Buffer, std::move(name), std::move(shape), type);
  graph.buffers.push_back(buffer);
  return buffer.value;
}

ValueId GraphBuilder::input(std::string name, Shape shape, DType type) {
  Input input;
  input.name = name;
  input.value = leaf(ValueKind::Input, std::move(name), std::move(shape), type);
  graph.inputs.push_back(input);
  return input.value;
}

ValueId GraphBuilder::constant(std::string name, Shape shape, DType type) {
  ValueId value =
      leaf(ValueKind::Constant, std::move(name), std::move(shape), type);
  graph.constants.push_back(value);
  graph.constantStorage.emplace_back();
  return value;
}

ValueId GraphBuilder::random() {
  return leaf(ValueKind::Random, "random", {3}, DType::Int64);
}

ValueId GraphBuilder::seed(DType type) {
  return leaf(ValueKind::Seed, "seed", {}, type);
}

ValueId GraphBuilder::inverseCount(ValueId target, DType type) {
  LossCount count;
  count.inverseCount = leaf(ValueKind::InverseCount, "inverse_count", {}, type);
  count.target = target;
  graph.counts.push_back(count);
  return count.inverseCount;
}

ValueId GraphBuilder::op(std::string name, std::vector<ValueId> operands,
                         std::vector<Arg> args, Shape shape, DType type) {
  return ops(std::move(name), std::move(operands), std::move(args),
             {std::move(shape)}, type)[0];
}

std::vector<ValueId> GraphBuilder::ops(std::string name,
                                       std::vector<ValueId> operands,
                                       std::vector<Arg> args,
                                       std::vector<std::optional<Shape>> shapes,
                                       DType type) {
  Op op;
  op.name = std::move(name);
  op.operands = std::move(operands);
  op.args = std::move(args);
  op.phase = phase;
  op.forward = forward;
  op.module = module;
  for (std::optional<Shape> &shape : shapes) {
    if (!shape) {
      op.results.push_back(None);
      continue;
    }
    ValueId id = leaf(ValueKind::Result, "", std::move(*shape), type);
    graph.values[id].producer = static_cast<OpId>(graph.ops.size());
    graph.values[id].result = static_cast<int>(op.results.size());
    op.results.push_back(id);
  }
  graph.ops.push_back(op);
  return op.results;
}

void GraphBuilder::backwardOf(ValueId result) {
  phase = Phase::Backward;
  forward = result == None ? None : producer(result);
}

void GraphBuilder::cotangent(ValueId gradient, std::vector<ValueId> primals) {
  for (ValueId primal : primals) {
    graph.values[gradient].cotangentOf.push_back(primal);
    for (Parameter &parameter : graph.parameters)
      if (parameter.value == primal)
        parameter.gradients.push_back(gradient);
  }
}

Graph GraphBuilder::finish() const {
  if (std::optional<Error> error = verify(graph))
    throw std::logic_error(toString(*error));
  return graph;
}

} // namespace monarch::test
