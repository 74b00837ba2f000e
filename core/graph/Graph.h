//===- Graph.h - the joint graph of one unit ------------------------------===//
//
// The forward and backward of a model on one device, for one *unit* of b rows
// of the global batch. Capture makes it, the aten dialect carries it, analysis
// and the planner read it, resolve splits it. It holds names of weights, never
// weights. Invariants (checked by `verify`): operands are produced before they
// are used; forward ops come before backward ops; ids are dense indices.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "core/support/Error.h"

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace monarch {

enum class DType : uint8_t {
  Bool,
  UInt8,
  Int8,
  Int16,
  Int32,
  Int64,
  Float16,
  BFloat16,
  Float32,
  Float64,
  /// Stored and moved; arithmetic casts them first.
  Float8E4M3,
  Float8E5M2,
  Complex64,
  Complex128
};
/// The last of the enumeration.
inline constexpr DType LastDType = DType::Complex128;
int64_t byteWidth(DType type);
/// Takes gradients: real and complex numbers of two bytes or more.
bool isFloating(DType type);
bool isComplex(DType type);
/// "float32", "int64", ...: the spelling of the files.
std::string_view toString(DType type);
std::optional<DType> parseDType(std::string_view text);
/// By the code of torch._export.serde.schema.ScalarType (not c10's).
std::optional<DType> dtypeOfExport(int64_t code);

using ValueId = int32_t;
using OpId = int32_t;
inline constexpr int32_t None = -1;

//===- Literals -----------------------------------------------------------===//
// One Arg per argument of the op's schema, in schema order, defaults filled in.
// *Sizes* (arange ends too) are not stored: ResultSizes & co. name the dim of a
// result whose (local) size they are. *Counts* and *offsets* (slice bounds) are
// global; local bodies read index lists. A number in a tensor's place promotes
// as a Python number does. Factories give their type; devices are left out.

/// The op's operand at this index of Op::operands.
struct OperandArg {
  int index;
  bool operator==(const OperandArg &) const = default;
};
/// A list of operands; None stands for an absent element of a Tensor?[].
struct OperandListArg {
  std::vector<int> indices;
  bool operator==(const OperandListArg &) const = default;
};
/// int[]: every size of a result (view, expand, reshape, new_zeros).
struct ResultSizes {
  int result;
  bool operator==(const ResultSizes &) const = default;
};
/// int: one size of a result (embedding_dense_backward's num_weights).
struct ResultSize {
  int result;
  int dim;
  bool operator==(const ResultSize &) const = default;
};
/// int[]: the sizes of all results along one dim (split_with_sizes).
struct ResultsSizes {
  int dim;
  bool operator==(const ResultsSizes &) const = default;
};

using Arg = std::variant<std::monostate, OperandArg, OperandListArg, bool,
                         int64_t, double, std::string, std::vector<int64_t>,
                         std::vector<double>, std::vector<bool>, DType,
                         ResultSizes, ResultSize, ResultsSizes>;

//===- Ops and values -----------------------------------------------------===//

enum class Phase : uint8_t { Forward, Backward };

struct Op {
  /// Schema name with overload: "aten::mm", "aten::add.Tensor",
  /// "monarch::attention". Names are keys of the registry.
  std::string name;
  std::vector<ValueId> operands;
  std::vector<Arg> args;
  /// None where the result is undefined (a gradient that nobody needs).
  std::vector<ValueId> results;
  Phase phase = Phase::Forward;
  /// Backward: the forward op whose gradient this computes; None for sums of
  /// cotangents, which stand between nodes.
  OpId forward = None;
  /// Where it comes from: module path ("transformer.h.0.attn") and the user's
  /// source line ("model.py:12"). Not part of the digest.
  std::string module;
  std::string source;
};

enum class ValueKind : uint8_t {
  Parameter,
  Buffer,
  Input,
  /// A tensor stored in the model file (lifted constants, rotary tables).
  Constant,
  /// int64[3]: seed, step, unit. The only source of randomness.
  Random,
  /// 1 / (rows counted by one mean of the loss over the whole global batch).
  InverseCount,
  /// The gradient that the loss starts from: always 1.
  Seed,
  /// The result of an op.
  Result
};

struct Value {
  /// Symbol of a leaf (first FQN, input name); "" for results.
  std::string name;
  ValueKind kind = ValueKind::Result;
  DType type = DType::Float32;
  std::vector<int64_t> shape;
  /// Per dim: how often the unit's row count b is a factor of this size;
  /// shape[d] == batch[d] * b where batch[d] != 0, constant in b where it is 0.
  std::vector<int64_t> batch;
  OpId producer = None;
  int result = 0;
  /// Gradient values: the forward values whose cotangent this is. Equal shape
  /// and type. `add` passes one gradient on to several values.
  std::vector<ValueId> cotangentOf;
};

//===- Leaves -------------------------------------------------------------===//

/// Where a leaf's bytes lie in the model file.
struct Storage {
  /// Record in the archive ("data/weights/weight_3"); "" when weightless.
  std::string record;
  int64_t offsetBytes = 0;
  std::vector<int64_t> strides;
};

struct Parameter {
  ValueId value = None;
  /// Every FQN of the file with this storage, offset and strides; [0] names it.
  std::vector<std::string> names;
  bool trainable = true;
  Storage storage;
  /// One gradient value for each use, each accumulated where it is; their sum,
  /// over uses, units and ranks, is taken once, in the step.
  std::vector<ValueId> gradients;
};

struct Buffer {
  ValueId value = None;
  std::vector<std::string> names;
  Storage storage;
  /// The value after the unit, None if not mutated.
  ValueId updated = None;
  bool persistent = true;
};

struct Input {
  ValueId value = None;
  /// Name in the file's signature, or the name that --loss gave to labels.
  std::string name;
};

/// One mean of the loss: loss sums are multiplied by `inverseCount`.
struct LossCount {
  ValueId inverseCount = None;
  /// Counted: the elements of `target` that differ from `ignoreIndex`; target
  /// depends on inputs alone. None: `perUnit` elements in each unit.
  ValueId target = None;
  int64_t ignoreIndex = -100;
  int64_t perUnit = 0;
};

struct Graph {
  /// Rows in the unit that the shapes describe.
  int64_t unitRows = 1;
  /// False: exported with a fixed batch; the unit cannot be rescaled.
  bool dynamicBatch = false;
  /// False: the loss is not sum/count over the batch (said, never changed).
  bool separable = true;
  std::vector<Value> values;
  std::vector<Op> ops;
  std::vector<Parameter> parameters;
  std::vector<Buffer> buffers;
  std::vector<Input> inputs;
  std::vector<ValueId> constants;
  /// Parallel to `constants`.
  std::vector<Storage> constantStorage;
  std::vector<LossCount> counts;
  /// Scalar; None for a forward-only graph.
  ValueId loss = None;
  std::vector<ValueId> outputs;

  const Value &value(ValueId id) const { return values[id]; }
  const Op &op(OpId id) const { return ops[id]; }
};

/// "blocks.0.attn (model.py:31)", "" when neither is known.
std::string originText(std::string_view module, std::string_view source);

int64_t elementCount(const Value &value);
int64_t byteCount(const Value &value);

/// The invariants above; the first violation as an error.
std::optional<Error> verify(const Graph &graph);
/// The same graph for a unit of `rows` rows; an error when the batch is static.
Expected<Graph> withUnitRows(const Graph &graph, int64_t rows);
/// Whether the tensors of such a unit have sizes that can be counted.
bool canHaveUnitRows(const Graph &graph, int64_t rows);
/// `monarch.graph/1`: canonical JSON, write(read(x)) == x.
std::string writeGraph(const Graph &graph);
Expected<Graph> readGraph(std::string_view text);
/// SHA-256 over what the graph computes: ops, literals, shapes, types, names of
/// leaves; not module paths, sources or storage.
std::string digest(const Graph &graph);

} // namespace monarch
