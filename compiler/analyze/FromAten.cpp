//===- FromAten.cpp - the joint graph of an aten module -------------------===//
//
// Definitions in their order number values and ops.
//
//===----------------------------------------------------------------------===//
#include "compiler/analyze/AtenGraph.h"
#include "dialects/aten/AtenDialect.h"
#include "dialects/aten/Leaves.h"
#include "dialects/aten/Locations.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace monarch {

namespace {

class GraphReader {
public:
  Expected<Graph> read(aten::GraphOp op) {
    graph.unitRows = static_cast<int64_t>(op.getRows());
    graph.dynamicBatch = op.getDynamic();
    graph.separable = !op.getInseparable();
    for (Operation &each : op.getBody().front())
      readOp(each);
    if (error)
      return *error;
    return std::move(graph);
  }

private:
  ValueId idOf(mlir::Value value) const { return value ? ids.at(value) : None; }
  template <typename Range> std::vector<ValueId> idsOf(Range values) const {
    std::vector<ValueId> result;
    for (mlir::Value value : values)
      result.push_back(ids.at(value));
    return result;
  }

  ValueId define(mlir::Value made, ValueKind kind, StringRef name = "") {
    auto type = cast<RankedTensorType>(made.getType());
    Value value;
    value.kind = kind;
    value.name = name.str();
    if (std::optional<DType> dtype = aten::dtypeOf(type.getElementType()))
      value.type = *dtype;
    else if (!error)
      error = Error{"MP1023", ExitCode::BadInput,
                    "the module has a tensor of an element type that PyTorch "
                    "does not have",
                    "", "use the element types of aten.call"};
    value.shape = type.getShape().vec();
    if (auto batch = dyn_cast_or_null<aten::BatchAttr>(type.getEncoding()))
      value.batch = batch.getFactors().vec();
    else
      value.batch.assign(value.shape.size(), 0);
    const auto id = static_cast<ValueId>(graph.values.size());
    ids[made] = id;
    graph.values.push_back(std::move(value));
    return id;
  }

  void readCall(aten::CallOp call) {
    const auto id = static_cast<OpId>(graph.ops.size());
    Op op;
    op.name = call.getCallee().str();
    op.operands = idsOf(call.getOperands());
    for (Attribute argument : call.getArguments())
      op.args.push_back(*aten::argOf(argument));
    for (OpResult made : call.getResults()) {
      if (isa<NoneType>(made.getType())) {
        op.results.push_back(None);
        continue;
      }
      ValueId result = define(made, ValueKind::Result);
      graph.values[result].producer = id;
      graph.values[result].result = static_cast<int>(made.getResultNumber());
      op.results.push_back(result);
    }
    op.phase = call.getBackward() ? Phase::Backward : Phase::Forward;
    if (call.getNode())
      nodes[*call.getNode()] = id;
    if (call.getForwardNode())
      op.forward = nodes.at(*call.getForwardNode());
    aten::readLocation(call.getLoc(), op);
    graph.ops.push_back(std::move(op));
  }

  void readOp(Operation &op) {
    llvm::TypeSwitch<Operation *>(&op)
        .Case([&](aten::ParameterOp leaf) {
          Parameter parameter;
          parameter.names = aten::namesOf(leaf.getNames());
          parameter.value =
              define(leaf.getValue(), ValueKind::Parameter, parameter.names[0]);
          parameter.trainable = !leaf.getFrozen();
          parameter.storage = aten::storageOf(leaf.getStorage());
          parameterOf[parameter.value] = graph.parameters.size();
          graph.parameters.push_back(std::move(parameter));
        })
        .Case([&](aten::BufferOp leaf) {
          Buffer buffer;
          buffer.names = aten::namesOf(leaf.getNames());
          buffer.value =
              define(leaf.getValue(), ValueKind::Buffer, buffer.names[0]);
          buffer.persistent = !leaf.getTemporary();
          buffer.storage = aten::storageOf(leaf.getStorage());
          bufferOf[buffer.value] = graph.buffers.size();
          graph.buffers.push_back(std::move(buffer));
        })
        .Case([&](aten::InputOp leaf) {
          ValueId id =
              define(leaf.getValue(), ValueKind::Input, leaf.getSymbol());
          graph.inputs.push_back({id, leaf.getSymbol().str()});
        })
        .Case([&](aten::ConstantOp leaf) {
          graph.constants.push_back(
              define(leaf.getValue(), ValueKind::Constant, leaf.getSymbol()));
          graph.constantStorage.push_back(aten::storageOf(leaf.getStorage()));
        })
        .Case([&](aten::RandomOp leaf) {
          define(leaf.getValue(), ValueKind::Random, leaf.getSymbol());
        })
        .Case([&](aten::InverseCountOp leaf) {
          define(leaf.getValue(), ValueKind::InverseCount, leaf.getSymbol());
        })
        .Case([&](aten::SeedOp leaf) {
          define(leaf.getValue(), ValueKind::Seed, leaf.getSymbol());
        })
        .Case([&](aten::CallOp call) { readCall(call); })
        .Case([&](aten::CotangentOp pair) {
          std::vector<ValueId> values = idsOf(pair.getValues());
          std::vector<ValueId> &known =
              graph.values[idOf(pair.getGradient())].cotangentOf;
          known.insert(known.end(), values.begin(), values.end());
        })
        .Case([&](aten::GradientsOp fact) {
          graph.parameters[parameterOf.at(idOf(fact.getParameter()))]
              .gradients = idsOf(fact.getUses());
        })
        .Case([&](aten::UpdateOp fact) {
          graph.buffers[bufferOf.at(idOf(fact.getBuffer()))].updated =
              idOf(fact.getUpdated());
        })
        .Case([&](aten::CountOp fact) {
          graph.counts.push_back({idOf(fact.getInverseCount()),
                                  idOf(fact.getTarget()),
                                  static_cast<int64_t>(fact.getIgnoreIndex()),
                                  static_cast<int64_t>(fact.getPerUnit())});
        })
        .Case([&](aten::ReturnOp roots) {
          graph.loss = idOf(roots.getLoss());
          graph.outputs = idsOf(roots.getOutputs());
        })
        .Default([&](Operation *other) {
          if (!error)
            error = Error{"MP1023", ExitCode::BadInput,
                          "aten.graph holds an op of another dialect: " +
                              other->getName().getStringRef().str(),
                          "", "lower it to aten.call first"};
        });
  }

  Graph graph;
  llvm::DenseMap<mlir::Value, ValueId> ids;
  llvm::DenseMap<int64_t, OpId> nodes;
  llvm::DenseMap<ValueId, size_t> parameterOf, bufferOf;
  std::optional<Error> error;
};

} // namespace

Expected<Graph> graphOf(ModuleOp module) {
  auto graphs = module.getOps<aten::GraphOp>();
  if (!llvm::hasSingleElement(graphs))
    return Error{"MP1023", ExitCode::BadInput,
                 "the module does not hold exactly one aten.graph", "",
                 "split it into modules of one graph each"};
  return GraphReader().read(*graphs.begin());
}

} // namespace monarch
