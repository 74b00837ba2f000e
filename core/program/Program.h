//===- Program.h - what ranks execute -------------------------------------===//
//
// One *role* per pipeline stage; its program is SPMD over the mesh of the
// stage, with sizes and index lists as expressions of the rank's coordinates. A
// role has value, shard and index tables, parameters, inputs, *segments* of
// instructions over local tensors, and a *schedule*: which segment runs on
// which unit. Nothing is decided at run time: every collective, exchange and
// free is spelled out, and `verify` proves the whole from the files alone.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "core/graph/Graph.h"
#include "core/layout/Expr.h"

namespace monarch {

/// Persistent: lives through the run (parameters, their master copies, index
/// lists). Carried: lives through a step (accumulators, counts). Saved: one
/// slot per unit in flight, from forward to backward. Local: within one run of
/// a segment.
enum class Lifetime : uint8_t { Persistent, Carried, Saved, Local };

struct ProgramValue {
  DType type = DType::Float32;
  std::vector<Expr> shape;
  Lifetime lifetime = Lifetime::Local;
  /// The value whose storage this one shares (a view), None if it has its own.
  int32_t aliasOf = None;
  /// For people and errors: "transformer.h.0.attn.c_attn.weight", "%12".
  std::string name;
};

/// Arg of Graph.h with sizes made expressions of the rank. ints are Exprs.
using CallArg = std::variant<std::monostate, OperandArg, OperandListArg, bool,
                             Expr, double, std::string, std::vector<Expr>,
                             std::vector<double>, std::vector<bool>, DType>;

enum class InstructionKind : uint8_t {
  /// `name` is the schema of an ATen or monarch:: op; args in schema order.
  Call,
  /// In place on a contiguous tensor; `name` is "sum" or "max".
  AllReduce,
  /// Flat buffers, blocks in group order: own block -> all blocks. Block i of
  /// the
  /// result has receiveSizes[i] elements.
  AllGather,
  /// Flat buffers: sends block i (sendSizes[i] elements) to group member i,
  /// adds
  /// what arrives in group order; the result has the size of the own block.
  ReduceScatter,
  /// Flat buffers: sendSizes[i] elements to, receiveSizes[i] from member i.
  AllToAll,
  /// The same coordinates in `peerStage`; contiguous; `tag` is unique in the
  /// program, the unit is told apart by the runtime. A send started for unit u
  /// is
  /// waited for at the end of the Backward of unit u + 1, else of the step;
  /// until
  /// then it holds its tensor.
  Send,
  Receive,
  /// Zeros in place of the operand off coordinate 0 of axes[0]; else the
  /// operand
  /// itself (the result aliases it).
  Zero,
  /// The optimizer: operands = parameter or its master copy, gradient; in
  /// place.
  Update,
  /// Drops operands; their storage is reused when no alias is left.
  Free
};
std::string_view toString(InstructionKind kind);

struct Instruction {
  InstructionKind kind = InstructionKind::Call;
  std::string name;
  std::vector<int32_t> operands;
  /// None: what the op returns there is dropped (in-place ops).
  std::vector<int32_t> results;
  std::vector<CallArg> args;
  /// Group of a collective: the ranks of the stage that differ on these axes
  /// only, in row-major order of their coordinates.
  std::vector<int> axes;
  /// In elements, by group order.
  std::vector<Expr> sendSizes;
  std::vector<Expr> receiveSizes;
  int peerStage = -1;
  int64_t tag = 0;
  /// The graph's op that this belongs to, None for reshards and the step.
  OpId op = None;
};

enum class SegmentKind : uint8_t {
  /// Per unit, before the first forward: counts what a mean of the loss counts.
  Count,
  /// Once, after all Counts: reduces them over ranks, takes the reciprocal.
  Begin,
  Forward,
  Backward,
  /// Once, after the last backward: reduces gradients, norm, optimizer, sends
  /// updated values to stages that hold copies.
  Step
};
std::string_view toString(SegmentKind kind);

struct Segment {
  SegmentKind kind = SegmentKind::Forward;
  std::vector<Instruction> instructions;
};

/// A run of a segment; `unit` counts the units of this replica, -1 for Begin
/// and Step.
struct Slot {
  SegmentKind segment = SegmentKind::Forward;
  int64_t unit = -1;
  bool operator==(const Slot &) const = default;
};

struct ProgramParameter {
  int32_t value = None;
  /// All FQNs; [0] is the graph's name.
  std::vector<std::string> names;
  Storage storage;
  TensorStructure structure;
  Layout layout; // at rest
  bool trainable = true;
  /// This stage owns it: reads it, updates it, saves it. Others hold a copy
  /// that the owner refreshes in the step.
  bool owner = true;
  /// The gradient at rest after the step's reductions (owner and trainable).
  int32_t gradient = None;
  /// A float32 copy that the optimizer updates; the parameter is its rounding.
  /// The gradient is float32, too. None: the parameter itself is updated.
  int32_t master = None;
};

/// Parameters of these types may have float32 master copies.
inline bool mayHaveMaster(DType type) {
  return type == DType::BFloat16 || type == DType::Float16;
}
/// What the optimizer writes: the master copy, where there is one.
inline int32_t updatedValue(const ProgramParameter &parameter) {
  return parameter.master == None ? parameter.value : parameter.master;
}

struct ProgramBuffer {
  int32_t value = None;
  std::vector<std::string> names;
  Storage storage;
  TensorStructure structure;
  /// Constants of the file are buffers that nothing updates.
  bool constant = false;
};

/// Filled from the batch before each run of a segment that reads it; dropped by
/// its Free there.
struct ProgramInput {
  int32_t value = None;
  std::string name;
  TensorStructure structure;
  Layout layout; // the slice of the unit's rows that this rank reads
  /// The dim that holds the batch's rows (unit u of the batch starts at row
  /// u * size), -1 when every unit reads the same tensor.
  int rowDim = 0;
  /// Synthetic data of an integer input: values in [0, bound); 0: ones.
  int64_t bound = 0;
};

struct ProgramIndex {
  int32_t value = None;
  IndexList list;
};

/// Carried scalars that the runtime fills or reads.
struct ProgramScalars {
  /// int64[3] seed, step, unit: set before every segment run; None if unused.
  int32_t random = None;
  /// Whole tensor of the loss after Step (last stage that has it), else None.
  int32_t loss = None;
  /// Sum of squares of all gradients after Step's reduction, on every rank.
  int32_t squaredNorm = None;
  /// Leaf 1.0 that the backward starts from; None if unused.
  int32_t seed = None;
};

/// Where an op of the graph comes from, for errors of its instructions.
struct ProgramOrigin {
  OpId op = None;
  std::string module;
  std::string source;
};

struct Role {
  int stage = 0;
  std::vector<ProgramValue> values;
  std::vector<Shard> shards;
  std::vector<ProgramParameter> parameters;
  std::vector<ProgramBuffer> buffers;
  std::vector<ProgramInput> inputs;
  std::vector<ProgramIndex> indices;
  /// Carried values that start each step as zeros (accumulators, counts, loss).
  std::vector<int32_t> zeroed;
  ProgramScalars scalars;
  std::vector<Segment> segments; // at most one of each kind, in enum order
  std::vector<Slot> schedule;
  /// Of the ops that instructions belong to, as far as known, ascending.
  std::vector<ProgramOrigin> origins;
};
/// "op 12 of blocks.0.attn (model.py:31)".
std::string textOfOp(const Role &role, OpId op);

enum class OptimizerKind : uint8_t { SGD, AdamW };
std::string_view toString(OptimizerKind kind);

/// Per rank and step, by kind: all_reduce, all_gather, reduce_scatter,
/// all_to_all, send.
struct Traffic {
  std::map<std::string, int64_t> bytes;
  std::map<std::string, int64_t> collectives;
  bool operator==(const Traffic &) const = default;
};

struct Program {
  std::string modelDigest;
  std::string planDigest;
  Mesh mesh;
  OffsetTables tables;
  OptimizerKind optimizer = OptimizerKind::SGD;
  int64_t globalRows = 0;
  int64_t unitRows = 0;
  /// Units that each replica (coordinates on the data axes) runs in a step.
  int64_t unitsPerReplica = 1;
  std::vector<Role> roles; // by stage
  /// Sums over the ranks of one step, and the largest rank's peak.
  Traffic predicted;
  int64_t predictedPeakBytes = 0;

  int64_t worldSize() const {
    return static_cast<int64_t>(roles.size()) * mesh.size();
  }
};

/// Writes manifest.json and role-N.json (monarch.program/1) into a directory
/// that it makes; nothing is left half written. Reading checks digests and
/// schema.
std::optional<Error> writeProgram(const Program &program,
                                  const std::string &directory);
Expected<Program> readProgram(const std::string &directory);

} // namespace monarch
