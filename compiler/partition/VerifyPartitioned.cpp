//===- VerifyPartitioned.cpp - pass verify-partitioned --------------------===//

#include "compiler/partition/Passes.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace monarch {

#define GEN_PASS_DEF_VERIFYPARTITIONED
#include "compiler/partition/Passes.h.inc"

namespace {

struct VerifyPartitioned : impl::VerifyPartitionedBase<VerifyPartitioned> {
  void runOnOperation() override {
    bool isSound = true;
    for (auto role : getOperation().getBody().getOps<dist::RoleOp>()) {
      isSound &= succeeded(checkLocalForm(role));
      isSound &= succeeded(checkNumbers(role));
    }
    isSound &= succeeded(checkTransfers());
    if (!isSound)
      signalPassFailure();
    markAllAnalysesPreserved();
  }

  static LogicalResult checkLocalForm(dist::RoleOp role) {
    LogicalResult result = success();
    role.walk([&](Operation *op) {
      if (isa<dist::OpOp, dist::ReshardOp, dist::TransferOp, dist::FinishOp,
              dist::GlobalLeafOp>(op))
        result = op->emitOpError("is not of the local form");
    });
    return result;
  }

  /// The values that an op gives numbers to.
  static SmallVector<dist::ValueInfo> infosOf(Operation *op) {
    SmallVector<dist::ValueInfo> infos;
    if (auto value = op->getAttrOfType<dist::ValueAttr>("value"))
      infos.push_back(value.getValue());
    if (auto call = dyn_cast<dist::CallOp>(op))
      for (Attribute each : call.getValues())
        if (auto value = dyn_cast<dist::ValueAttr>(each))
          infos.push_back(value.getValue());
    return infos;
  }

  static LogicalResult checkNumbers(dist::RoleOp role) {
    LogicalResult result = success();
    std::vector<char> seen;
    size_t count = 0;
    role.walk([&](Operation *op) { count += infosOf(op).size(); });
    seen.resize(count);
    role.walk([&](Operation *op) {
      for (const dist::ValueInfo &info : infosOf(op)) {
        auto inRange = [&](int32_t number) {
          return number >= 0 && static_cast<size_t>(number) < count;
        };
        if (!inRange(info.number) || seen[info.number])
          result = op->emitOpError("numbers a value ")
                   << info.number << ", which another one is, or which is not "
                   << "among the " << count << " of its role";
        else
          seen[info.number] = true;
        if (info.aliasOf != None && !inRange(info.aliasOf))
          result = op->emitOpError("makes an alias of value ")
                   << info.aliasOf << ", which its role does not have";
      }
    });
    return result;
  }

  LogicalResult checkTransfers() {
    using End = std::pair<int64_t, int64_t>; // role, tag
    llvm::DenseMap<End, dist::ReceiveOp> receives;
    LogicalResult result = success();
    getOperation().walk([&](dist::ReceiveOp receive) {
      auto role = receive->getParentOfType<dist::RoleOp>();
      if (!receives.try_emplace({role.getStage(), receive.getTag()}, receive)
               .second)
        result = receive.emitOpError("has the tag of another receive, ")
                 << receive.getTag();
    });
    getOperation().walk([&](dist::SendOp send) {
      auto role = send->getParentOfType<dist::RoleOp>();
      auto found = receives.find({send.getPeer(), send.getTag()});
      if (found == receives.end() ||
          found->second.getPeer() != role.getStage()) {
        result = send.emitOpError("has no receive in role ") << send.getPeer();
        return;
      }
      receives.erase(found);
    });
    for (auto &[end, receive] : receives)
      result = receive.emitOpError("has no send in role ") << receive.getPeer();
    return result;
  }
};

} // namespace

} // namespace monarch
