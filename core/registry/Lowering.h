//===- Lowering.h - from an op to local instructions ----------------------===//
//
// What a local body sees: the op, its operands and results as local tensors,
// which mesh axes split which label, and a writer of calls, collectives and
// index lists. Bodies spell every size (never -1): blocks may be empty. A rank
// that is not split along a label gets plain calls: collectives over no axes
// write nothing.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "core/program/Program.h"
#include "core/registry/Rule.h"

namespace monarch {

/// A local tensor inside a role under construction.
struct Local {
  int32_t value = None;
  bool defined() const { return value != None; }
};

/// Which values of a role are known to be contiguous: those with storage of
/// their own always are; a view is when its call keeps it so for any sizes.
class Contiguity {
public:
  bool isContiguous(const Role &role, int32_t value) const;
  void setContiguous(int32_t value);
  /// Whether this view call of a contiguous operand leaves its results so.
  static bool isKept(const std::string &name, const std::vector<CallArg> &args,
                     const std::vector<Expr> &operandShape);

private:
  std::vector<bool> views;
};

/// Appends instructions and values to one role; shards and index lists are
/// shared (the same list is materialised once). Sizes of uncut shards become
/// constants.
class RoleWriter {
public:
  explicit RoleWriter(Role &role);

  Local make(DType type, std::vector<Expr> shape, std::string name = "",
             Lifetime lifetime = Lifetime::Local);
  const ProgramValue &operator[](Local local) const {
    return role.values[local.value];
  }
  ShardRef shard(const Shard &shard);
  /// The persistent int64 tensor of an index list.
  Local index(const IndexList &list);
  bool isContiguous(Local local) const {
    return contiguity.isContiguous(role, local.value);
  }
  /// Constants where the expression does not depend on the rank.
  Expr fold(const Expr &expr) const;

  /// One call with one result of this type and shape. `operands` are referred
  /// to by OperandArg/OperandListArg in `args`. Results of view calls share
  /// their operand's storage. A view of what is not known to be contiguous is
  /// written as a clone and a view of that.
  Local call(std::string name, std::vector<Local> operands,
             std::vector<CallArg> args, DType type, std::vector<Expr> shape);
  std::vector<Local> call(std::string name, std::vector<Local> operands,
                          std::vector<CallArg> args,
                          std::vector<ProgramValue> results);
  /// In place; returns its argument. Nothing is written when axes are empty.
  Local allReduce(Local tensor, const std::vector<int> &axes,
                  std::string_view reduction);
  void append(Instruction instruction);

  Role &role;
  /// Where instructions go, and what they are tagged with.
  std::vector<Instruction> *target = nullptr;
  OpId op = None;

private:
  Contiguity contiguity;
  std::map<Shard, int> shardNumbers;
  std::map<IndexList, int32_t> indexValues;
};

/// One op under one strategy (a column per mesh axis).
class Lowering {
public:
  const Graph &graph;
  const Op &op;
  RoleWriter &writer;
  const Mesh &mesh;
  /// Structure and layout of each operand and result (empty where None).
  std::vector<const TensorStructure *> operandStructure = {};
  std::vector<const TensorStructure *> resultStructure = {};
  std::vector<Layout> operandLayout = {};
  std::vector<Layout> resultLayout = {};
  /// Labels split on each mesh axis.
  std::vector<std::vector<std::string>> labels = {};
  /// Local operands; shape-only operands may be undefined.
  std::vector<Local> operands = {};
  /// Filled by the body: None results stay undefined.
  std::vector<Local> results = {};
  /// The program's tables; null: any block may be empty.
  const OffsetTables *tables = nullptr;

  /// Axes that split any of these labels, ascending.
  std::vector<int> axesOf(std::initializer_list<std::string_view> names) const;
  std::vector<int> axesOf(const std::vector<std::string> &names) const;
  bool splits(std::string_view label) const;
  /// Shard of a dim; its global indices as an int64 tensor; its local size.
  ShardRef operandShard(int operand, int dim);
  ShardRef resultShard(int result, int dim);
  Local operandIndices(int operand, int dim);
  Local resultIndices(int result, int dim);
  std::vector<Expr> operandShape(int operand);
  std::vector<Expr> resultShape(int result);
  int64_t globalSize(ValueId value, int dim) const;
  DType resultType(int result) const;
  /// Local size of the sections of a dim that lie in [begin, end).
  Expr operandSectionSize(int operand, int dim, int64_t begin, int64_t end);
  Expr resultSectionSize(int result, int dim, int64_t begin, int64_t end);
  /// Some rank of the stage may hold nothing of this shard.
  bool mayBeEmpty(const ShardRef &shard) const;

  /// A literal of the op, with sizes those of the local results.
  CallArg localArg(size_t argument);
  /// The op itself on local operands: args with sizes of the local results.
  void callItself();
  /// Another op, or the op with other args, with the op's results.
  void callAs(std::string name, std::vector<Local> operands,
              std::vector<CallArg> args);
};

/// The rule's body, or the op itself when it has none.
void lower(const OpRule &rule, Lowering &lowering);

} // namespace monarch
