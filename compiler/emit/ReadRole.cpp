//===- ReadRole.cpp - one role of a dist module ---------------------------===//
//
// Values keep the numbers that they carry; tables are in the order of their
// ops.
//
//===----------------------------------------------------------------------===//
#include "compiler/emit/ReadRole.h"
#include "core/program/ProgramFormat.h"
#include "dialects/aten/Leaves.h"
#include "dialects/aten/Locations.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/TypeSwitch.h"

#include <fmt/format.h>
#include <map>

using namespace mlir;

namespace monarch {

namespace {

class RoleReader {
public:
  explicit RoleReader(std::string &mistake) : mistake(mistake) {}

  Role read(dist::RoleOp op) {
    role.stage = static_cast<int>(op.getStage());
    for (auto shard : op.getShards().getAsRange<dist::ShardAttr>())
      role.shards.push_back(shard.getValue());
    for (auto slot : op.getSchedule().getAsRange<dist::SlotAttr>())
      role.schedule.push_back(slot.getValue());
    for (Operation &each : op.getBody().front())
      readMember(each);
    for (size_t v = 0; v < isDefined.size(); ++v)
      if (!isDefined[v])
        fail(fmt::format("value {} of role {} is defined nowhere", v,
                         role.stage));
    for (auto &[op, origin] : origins)
      role.origins.push_back(std::move(origin));
    return std::move(role);
  }

private:
  void fail(std::string what) {
    if (mistake.empty())
      mistake = std::move(what);
  }

  //===- Values -----------------------------------------------------------===//

  int32_t define(mlir::Value made, dist::ValueAttr attr) {
    const dist::ValueInfo &info = attr.getValue();
    auto type = cast<RankedTensorType>(made.getType());
    std::optional<DType> dtype = aten::dtypeOf(type.getElementType());
    const auto index = static_cast<size_t>(info.number);
    // Numbers are dense: none is larger than the module has values.
    if (info.number < 0 || info.number > MaxValues || !dtype) {
      fail(fmt::format("value {} of role {} has a number or type that no "
                       "program has",
                       info.number, role.stage));
      return None;
    }
    if (index >= role.values.size()) {
      role.values.resize(index + 1);
      isDefined.resize(index + 1);
    }
    if (isDefined[index])
      fail(fmt::format("value {} of role {} is defined twice", info.number,
                       role.stage));
    isDefined[index] = true;
    role.values[index] = {*dtype, dist::shapeOf(type), info.lifetime,
                          info.aliasOf, info.name};
    numbers[made] = info.number;
    return info.number;
  }

  int32_t numberOf(mlir::Value value) const {
    return value ? numbers.lookup_or(value, None) : None;
  }
  template <typename Range> std::vector<int32_t> numbersOf(Range values) const {
    std::vector<int32_t> result;
    for (mlir::Value value : values)
      result.push_back(numberOf(value));
    return result;
  }

  //===- Leaves and roots -------------------------------------------------===//

  static TensorStructure structureOf(ArrayAttr dims) {
    TensorStructure structure;
    for (auto dim : dims.getAsRange<dist::DimAttr>())
      structure.push_back(dim.getValue());
    return structure;
  }
  static std::vector<ShardRef> shardsOf(dist::SizesAttr sizes) {
    std::vector<ShardRef> shards;
    for (const Expr &expr : sizes.getValue())
      shards.push_back(expr.terms[0].sizes[0]);
    return shards;
  }

  void readMember(Operation &member) {
    llvm::TypeSwitch<Operation *>(&member)
        .Case([&](dist::ParameterOp op) {
          ProgramParameter leaf;
          leaf.value = define(op.getLocal(), op.getValue());
          leaf.names = aten::namesOf(op.getNames());
          leaf.storage = aten::storageOf(op.getStorage());
          leaf.structure = structureOf(op.getStructure());
          leaf.layout = op.getLayout().getValue();
          leaf.trainable = !op.getFrozen();
          leaf.owner = !op.getCopy();
          role.parameters.push_back(std::move(leaf));
        })
        .Case([&](dist::BufferOp op) {
          role.buffers.push_back(
              {define(op.getLocal(), op.getValue()),
               aten::namesOf(op.getNames()), aten::storageOf(op.getStorage()),
               structureOf(op.getStructure()), op.getConstant()});
        })
        .Case([&](dist::InputOp op) {
          role.inputs.push_back(
              {define(op.getLocal(), op.getValue()), op.getSymbol().str(),
               structureOf(op.getStructure()), op.getLayout().getValue(),
               static_cast<int>(op.getRowDim()),
               static_cast<int64_t>(op.getBound())});
        })
        .Case([&](dist::IndexOp op) {
          role.indices.push_back(
              {define(op.getLocal(), op.getValue()),
               {shardsOf(op.getOf()), shardsOf(op.getIn())}});
        })
        .Case([&](dist::StateOp op) { define(op.getLocal(), op.getValue()); })
        .Case([&](dist::SegmentOp op) { readSegment(op); })
        .Case([&](dist::GradientOp op) {
          for (ProgramParameter &parameter : role.parameters)
            if (parameter.value == numberOf(op.getParameter())) {
              parameter.gradient = numberOf(op.getGradient());
              parameter.master = numberOf(op.getMaster());
            }
        })
        .Case([&](dist::RootsOp op) {
          role.zeroed = numbersOf(op.getZeroed());
          role.scalars = {numberOf(op.getRandom()), numberOf(op.getLoss()),
                          numberOf(op.getSquaredNorm()),
                          numberOf(op.getSeed())};
        })
        .Default([&](Operation *op) {
          fail("not in local form: " + op->getName().getStringRef().str());
        });
  }

  //===- Instructions -----------------------------------------------------===//

  void readSegment(dist::SegmentOp op) {
    Segment segment;
    segment.kind = *parseEnumerator<SegmentKind>(op.getKind().str());
    for (Operation &each : op.getBody().front().without_terminator()) {
      segment.instructions.push_back(readInstruction(each));
      readOrigin(segment.instructions.back().op, each.getLoc());
    }
    role.segments.push_back(std::move(segment));
    auto yield = cast<dist::YieldOp>(op.getBody().front().getTerminator());
    for (auto [inner, outer] :
         llvm::zip_equal(yield.getLocals(), op.getLocals()))
      numbers[outer] = numberOf(inner);
  }

  void readOrigin(OpId op, Location place) {
    if (op == None || isa<UnknownLoc>(place))
      return;
    Op origin;
    aten::readLocation(place, origin);
    origins[op] = {op, std::move(origin.module), std::move(origin.source)};
  }

  Instruction start(InstructionKind kind, ValueRange operands,
                    std::optional<uint32_t> op) const {
    Instruction instruction;
    instruction.kind = kind;
    instruction.operands = numbersOf(operands);
    if (op)
      instruction.op = static_cast<OpId>(*op);
    return instruction;
  }

  Instruction readCall(dist::CallOp op) {
    Instruction instruction =
        start(InstructionKind::Call, op.getOperands(), op.getOp());
    instruction.name = op.getCallee().str();
    for (Attribute argument : op.getArguments())
      instruction.args.push_back(*dist::callArgOf(argument));
    for (auto [value, made] : llvm::zip_equal(op.getValues(), op.getResults()))
      instruction.results.push_back(
          isa<UnitAttr>(value) ? None
                               : define(made, cast<dist::ValueAttr>(value)));
    return instruction;
  }

  template <typename OpT>
  Instruction readExchange(InstructionKind kind, OpT op) {
    Instruction instruction = start(kind, op.getTensor(), op.getOp());
    instruction.axes = op.getAxes().vec();
    instruction.results = {define(op.getResult(), op.getValue())};
    return instruction;
  }

  Instruction readInstruction(Operation &each) {
    using Kind = InstructionKind;
    return llvm::TypeSwitch<Operation *, Instruction>(&each)
        .Case([&](dist::CallOp op) { return readCall(op); })
        .Case([&](dist::AllReduceOp op) {
          Instruction made = start(Kind::AllReduce, op.getTensor(), op.getOp());
          made.name = op.getReduction().str();
          made.axes = op.getAxes().vec();
          return made;
        })
        .Case([&](dist::AllGatherOp op) {
          Instruction made = readExchange(Kind::AllGather, op);
          made.receiveSizes = op.getReceive().getValue();
          return made;
        })
        .Case([&](dist::ReduceScatterOp op) {
          Instruction made = readExchange(Kind::ReduceScatter, op);
          made.name = op.getReduction().str();
          made.sendSizes = op.getSend().getValue();
          return made;
        })
        .Case([&](dist::AllToAllOp op) {
          Instruction made = readExchange(Kind::AllToAll, op);
          made.sendSizes = op.getSend().getValue();
          made.receiveSizes = op.getReceive().getValue();
          return made;
        })
        .Case([&](dist::SendOp op) {
          Instruction made = start(Kind::Send, op.getTensor(), op.getOp());
          made.peerStage = static_cast<int>(op.getPeer());
          made.tag = static_cast<int64_t>(op.getTag());
          return made;
        })
        .Case([&](dist::ReceiveOp op) {
          Instruction made = start(Kind::Receive, {}, op.getOp());
          made.peerStage = static_cast<int>(op.getPeer());
          made.tag = static_cast<int64_t>(op.getTag());
          made.results = {define(op.getResult(), op.getValue())};
          return made;
        })
        .Case([&](dist::ZeroOp op) { return readExchange(Kind::Zero, op); })
        .Case([&](dist::UpdateOp op) {
          Instruction made = start(Kind::Update, op.getOperands(), op.getOp());
          made.name = op.getOptimizer().str();
          return made;
        })
        .Case([&](dist::FreeOp op) {
          return start(Kind::Free, op.getTensors(), op.getOp());
        })
        .Default([&](Operation *op) {
          fail("not in local form: " + op->getName().getStringRef().str());
          return Instruction();
        });
  }

  static constexpr int32_t MaxValues = 1 << 24;
  std::string &mistake;
  Role role;
  std::vector<char> isDefined;
  std::map<OpId, ProgramOrigin> origins;
  llvm::DenseMap<mlir::Value, int32_t> numbers;
};

} // namespace

Role readRole(dist::RoleOp op, std::string &mistake) {
  return RoleReader(mistake).read(op);
}

} // namespace monarch
