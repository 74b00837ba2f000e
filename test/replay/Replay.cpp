//===- Replay.cpp - arguments, calls and the units of a step --------------===//
//
// A view runs as a reshape: strides of results are not part of a graph's
// meaning.
//
//===----------------------------------------------------------------------===//
#include "test/replay/Replay.h"
#include "runtime/ops/Ops.h"

#include <ATen/ATen.h>
#include <ATen/core/dispatch/Dispatcher.h>

namespace monarch {

namespace {

using c10::IValue;
using c10::TypeKind;

c10::TypePtr withoutOptional(const c10::TypePtr &type) {
  return type->kind() == TypeKind::OptionalType
             ? type->castRaw<c10::OptionalType>()->getElementType()
             : type;
}

class OpCall {
public:
  OpCall(const Graph &graph, const Op &op, std::vector<at::Tensor> &values)
      : graph(graph), op(op), values(values) {}

  void run() {
    std::string name = op.name, overload;
    if (size_t dot = name.find('.'); dot != std::string::npos) {
      overload = name.substr(dot + 1);
      name.resize(dot);
    }
    if (name == "aten::view")
      name = "aten::reshape";
    auto handle = c10::Dispatcher::singleton().findSchemaOrThrow(
        name.c_str(), overload.c_str());
    const auto &arguments = handle.schema().arguments();
    TORCH_CHECK(arguments.size() == op.args.size(), op.name, " has ",
                arguments.size(), " arguments, not ", op.args.size());
    torch::jit::Stack stack;
    for (size_t i = 0; i < arguments.size(); ++i)
      stack.push_back(
          convert(op.args[i], withoutOptional(arguments[i].real_type())));
    handle.callBoxed(&stack);
    size_t next = 0;
    for (const IValue &result : stack) {
      if (result.isTensor())
        keep(next, result.toTensor());
      else
        for (const at::Tensor &tensor : result.toTensorVector())
          keep(next, tensor);
    }
    TORCH_CHECK(next == op.results.size(), op.name, " gave ", next, " results");
  }

private:
  void keep(size_t &next, const at::Tensor &tensor) {
    ValueId id = op.results.at(next++);
    TORCH_CHECK((id == None) == !tensor.defined(), op.name,
                ": an undefined result is expected elsewhere");
    if (id == None)
      return;
    const Value &value = graph.value(id);
    TORCH_CHECK(tensor.sizes() == at::IntArrayRef(value.shape) &&
                    tensor.scalar_type() == scalarTypeOf(value.type),
                op.name, " gave ", tensor.sizes(), " ", tensor.scalar_type(),
                ", not ", at::IntArrayRef(value.shape), " ",
                toString(value.type));
    values[id] = tensor;
  }

  const at::Tensor &operand(int index) const {
    return values[op.operands.at(index)];
  }
  const std::vector<int64_t> &shape(int result) const {
    return graph.value(op.results.at(result)).shape;
  }

  IValue number(c10::Scalar scalar, const c10::TypePtr &type) const {
    if (type->kind() != TypeKind::TensorType)
      return type->kind() == TypeKind::FloatType ? IValue(scalar.toDouble())
                                                 : IValue(scalar);
    at::Tensor tensor = at::scalar_tensor(scalar, at::dtype(scalar.type()));
    tensor.unsafeGetTensorImpl()->set_wrapped_number(true);
    return tensor;
  }

  IValue convert(const Arg &arg, const c10::TypePtr &type) const {
    if (const auto *operandArg = std::get_if<OperandArg>(&arg))
      return operand(operandArg->index);
    if (const auto *list = std::get_if<OperandListArg>(&arg)) {
      bool isOptional =
          type->castRaw<c10::ListType>()->getElementType()->kind() ==
          TypeKind::OptionalType;
      c10::List<std::optional<at::Tensor>> optional;
      c10::List<at::Tensor> plain;
      for (int index : list->indices) {
        optional.push_back(index == None ? std::optional<at::Tensor>()
                                         : operand(index));
        if (index != None)
          plain.push_back(operand(index));
      }
      return isOptional ? IValue(optional) : IValue(plain);
    }
    if (const auto *value = std::get_if<bool>(&arg))
      return type->kind() == TypeKind::TensorType ? number(*value, type)
                                                  : IValue(*value);
    if (const auto *value = std::get_if<int64_t>(&arg))
      return number(*value, type);
    if (const auto *value = std::get_if<double>(&arg))
      return number(*value, type);
    if (const auto *text = std::get_if<std::string>(&arg))
      return type->kind() == TypeKind::MemoryFormatType ? memoryFormat(*text)
                                                        : IValue(*text);
    if (const auto *list = std::get_if<std::vector<int64_t>>(&arg))
      return c10::List<int64_t>(at::IntArrayRef(*list));
    if (const auto *list = std::get_if<std::vector<double>>(&arg))
      return c10::List<double>(at::ArrayRef<double>(*list));
    if (const auto *list = std::get_if<std::vector<bool>>(&arg)) {
      c10::List<bool> bools;
      for (bool value : *list)
        bools.push_back(value);
      return bools;
    }
    if (const auto *dtype = std::get_if<DType>(&arg))
      return static_cast<int64_t>(scalarTypeOf(*dtype));
    if (const auto *sizes = std::get_if<ResultSizes>(&arg))
      return c10::List<int64_t>(at::IntArrayRef(shape(sizes->result)));
    if (const auto *size = std::get_if<ResultSize>(&arg))
      return shape(size->result).at(size->dim);
    if (const auto *sizes = std::get_if<ResultsSizes>(&arg)) {
      c10::List<int64_t> list;
      for (size_t i = 0; i < op.results.size(); ++i)
        list.push_back(shape(static_cast<int>(i)).at(sizes->dim));
      return list;
    }
    return {};
  }

  static IValue memoryFormat(const std::string &name) {
    TORCH_CHECK(name == "contiguous_format" || name == "preserve_format",
                "memory format ", name);
    return static_cast<int64_t>(name == "contiguous_format"
                                    ? c10::MemoryFormat::Contiguous
                                    : c10::MemoryFormat::Preserve);
  }

  const Graph &graph;
  const Op &op;
  std::vector<at::Tensor> &values;
};

at::Tensor rowsOf(const Graph &graph, const Value &value,
                  const at::Tensor &whole, int64_t unit, int64_t units) {
  const int64_t rows = value.shape.empty() ? 0 : whole.size(0) / units;
  at::Tensor part = value.shape.empty()
                        ? whole
                        : whole.slice(0, unit * rows, (unit + 1) * rows);
  TORCH_CHECK(part.sizes() == at::IntArrayRef(value.shape), "input ",
              value.name, " of a unit of ", graph.unitRows, " rows has ",
              part.sizes());
  return part.to(scalarTypeOf(value.type));
}

} // namespace

at::ScalarType scalarTypeOf(DType type) {
  static const at::ScalarType types[] = {
      at::kBool,         at::kByte,          at::kChar,
      at::kShort,        at::kInt,           at::kLong,
      at::kHalf,         at::kBFloat16,      at::kFloat,
      at::kDouble,       at::kFloat8_e4m3fn, at::kFloat8_e5m2,
      at::kComplexFloat, at::kComplexDouble};
  return types[static_cast<size_t>(type)];
}

std::vector<at::Tensor> replay(const Graph &graph,
                               std::map<ValueId, at::Tensor> leaves) {
  registerOps();
  at::NoGradGuard noGradient;
  std::vector<at::Tensor> values(graph.values.size());
  for (const auto &[id, tensor] : leaves)
    values[id] = tensor;
  for (const Op &op : graph.ops)
    OpCall(graph, op, values).run();
  return values;
}

Step replayStep(const Graph &graph, const NamedTensors &leaves,
                const NamedTensors &batch, int64_t seed) {
  at::NoGradGuard noGradient;
  TORCH_CHECK(!graph.inputs.empty(), "a model without inputs");
  // Rows are those of the first input, as in import.
  const int64_t rows = batch.at(graph.inputs.front().name).size(0);
  TORCH_CHECK(rows % graph.unitRows == 0, rows, " rows do not make units of ",
              graph.unitRows);
  const int64_t units = rows / graph.unitRows;

  std::map<ValueId, at::Tensor> common;
  for (size_t id = 0; id < graph.values.size(); ++id) {
    const Value &value = graph.values[id];
    if (value.kind == ValueKind::Parameter || value.kind == ValueKind::Buffer ||
        value.kind == ValueKind::Constant)
      common[static_cast<ValueId>(id)] =
          leaves.at(value.name).to(scalarTypeOf(value.type));
    if (value.kind == ValueKind::Seed || value.kind == ValueKind::InverseCount)
      common[static_cast<ValueId>(id)] =
          at::ones({}, at::dtype(scalarTypeOf(value.type)));
  }
  auto leavesOf = [&](int64_t unit) {
    std::map<ValueId, at::Tensor> all = common;
    for (const Input &input : graph.inputs)
      all[input.value] = rowsOf(graph, graph.value(input.value),
                                batch.at(input.name), unit, units);
    for (size_t id = 0; id < graph.values.size(); ++id)
      if (graph.values[id].kind == ValueKind::Random)
        all[static_cast<ValueId>(id)] =
            at::tensor({seed, int64_t{0}, unit}, at::kLong);
    return all;
  };

  // The counts of the whole batch, before the first unit that uses them.
  std::vector<double> counts(graph.counts.size());
  for (int64_t unit = 0; unit < units; ++unit) {
    const auto values = replay(graph, leavesOf(unit));
    for (size_t i = 0; i < counts.size(); ++i) {
      const LossCount &count = graph.counts[i];
      counts[i] +=
          count.target == None
              ? static_cast<double>(count.perUnit)
              : values[count.target].ne(count.ignoreIndex).sum().item<double>();
    }
  }
  for (size_t i = 0; i < counts.size(); ++i)
    common[graph.counts[i].inverseCount].fill_(1 / counts[i]);

  Step step;
  for (int64_t unit = 0; unit < units; ++unit) {
    const auto values = replay(graph, leavesOf(unit));
    const at::Tensor &loss = values[graph.loss];
    step.loss = step.loss.defined() ? step.loss + loss : loss;
    for (const Parameter &parameter : graph.parameters)
      for (ValueId gradient : parameter.gradients) {
        at::Tensor &sum = step.gradients[parameter.names[0]];
        sum = sum.defined() ? sum + values[gradient] : values[gradient];
      }
    for (const Buffer &buffer : graph.buffers) {
      ValueId last = buffer.updated == None ? buffer.value : buffer.updated;
      step.buffers[buffer.names[0]] = values[last];
      common[buffer.value] = values[last];
    }
  }
  return step;
}

} // namespace monarch
