//===- VerifyTest.cpp -----------------------------------------------------===//
//
// The sample program is proved; each way of breaking it is found, named, and
// placed.
//
//===----------------------------------------------------------------------===//
#include "core/program/Verify.h"
#include "test/support/ProgramBuilder.h"

#include <algorithm>
#include <catch2/catch.hpp>

using namespace monarch;
using test::instructionOf;
using test::valueNamed;

namespace {

constexpr SegmentKind Count = SegmentKind::Count, Begin = SegmentKind::Begin,
                      Forward = SegmentKind::Forward,
                      Backward = SegmentKind::Backward,
                      Step = SegmentKind::Step;
using Kind = InstructionKind;

Program provedProgram() {
  Program program = test::sampleProgram();
  predict(program);
  return program;
}

std::vector<Instruction> &instructionsOf(Role &role, SegmentKind segment) {
  return role.segments[static_cast<size_t>(segment)].instructions;
}

/// Breaks the sample, predicts it again when that still makes sense, and wants
/// a finding of this id whose place and text contain these.
template <typename Break>
void checkFound(const std::string &id, const std::string &where,
                const std::string &what, Break breakIt) {
  Program program = provedProgram();
  breakIt(program, program.roles[0], program.roles[1]);
  std::vector<Error> errors = verify(program);
  std::string all;
  bool found = false;
  for (const Error &error : errors) {
    all += toString(error) + "\n";
    found = found ||
            (error.id == id && error.where.find(where) != std::string::npos &&
             error.what.find(what) != std::string::npos);
  }
  INFO("wanted " << id << " at " << where << ": " << what << "\n" << all);
  CHECK(found);
}

} // namespace

TEST_CASE("the sample program is proved") {
  std::string all;
  for (const Error &error : verify(provedProgram()))
    all += toString(error) + "\n";
  CHECK(all == "");
}

TEST_CASE("a program without stages, rows or ranks is refused") {
  auto where = "manifest";
  checkFound("MP2110", where, "no stages",
             [](Program &p, Role &, Role &) { p.roles.clear(); });
  checkFound("MP2110", where, "rows are not",
             [](Program &p, Role &, Role &) { p.globalRows = 5; });
  checkFound("MP2110", where, "mesh is empty",
             [](Program &p, Role &, Role &) { p.mesh.axes[0].size = 0; });
  checkFound("MP2110", where, "too large", [](Program &p, Role &, Role &) {
    p.mesh.axes[0].size = int64_t(1) << 40;
  });
  checkFound("MP2110", where, "out of order",
             [](Program &, Role &first, Role &) { first.stage = 1; });
  checkFound("MP2110", where, "data axes", [](Program &p, Role &, Role &) {
    p.mesh.axes.push_back({"dp", 1, AxisRole::Data});
  });
}

TEST_CASE("tables that point outside of tables are found") {
  auto where = "stage 0";
  checkFound("MP2110", where, "shard",
             [](Program &, Role &r, Role &) { r.shards[0].cuts[0].axis = 1; });
  checkFound("MP2110", where, "shard", [](Program &, Role &r, Role &) {
    r.shards[0].cuts[0].factors = {1};
  });
  checkFound("MP2110", where, "shard", [](Program &, Role &r, Role &) {
    r.shards[0].structure.size = 6;
  });
  checkFound("MP2110", where, "names no shard", [](Program &, Role &r, Role &) {
    r.values[valueNamed(r, "h")].shape[1] = Expr::size({7});
  });
  checkFound("MP2110", where, "names no shard", [](Program &, Role &r, Role &) {
    r.values[valueNamed(r, "h")].shape[1] = Expr::size({0, 0, 2});
  });
  checkFound("MP2110", where, "alias of none", [](Program &, Role &r, Role &) {
    r.values[valueNamed(r, "h")].aliasOf = 1000;
  });
  checkFound("MP2110", where, "alias of none", [](Program &, Role &r, Role &) {
    r.values[valueNamed(r, "h")].aliasOf = valueNamed(r, "h");
  });
  checkFound("MP2110", where, "origin of op 2", [](Program &, Role &r, Role &) {
    r.origins = {{2, "a", ""}, {2, "b", ""}};
  });
  checkFound("MP2110", where, "parameter w0",
             [](Program &, Role &r, Role &) { r.parameters[0].value = -1; });
  checkFound("MP2110", where, "not a persistent",
             [](Program &, Role &r, Role &) {
               r.values[r.parameters[0].value].lifetime = Lifetime::Carried;
             });
  checkFound("MP2110", where, "malformed layout",
             [](Program &, Role &r, Role &) {
               r.parameters[0].layout.states[0].dim = 2;
             });
  checkFound(
      "MP2110", where, "malformed structure",
      [](Program &, Role &r, Role &) { r.parameters[0].structure.pop_back(); });
  checkFound("MP2110", where, "without a name",
             [](Program &, Role &r, Role &) { r.parameters[0].names.clear(); });
  checkFound("MP2110", where, "gradient", [](Program &, Role &r, Role &) {
    r.parameters[0].gradient = 500;
  });
  checkFound("MP2110", where, "not a local",
             [](Program &, Role &r, Role &) { r.inputs[0].value = -1; });
  checkFound("MP2110", where, "malformed layout",
             [](Program &, Role &r, Role &) { r.inputs[0].rowDim = 2; });
  checkFound("MP2110", where, "vector of int64",
             [](Program &, Role &r, Role &) {
               r.values[r.indices[0].value].type = DType::Int32;
             });
  checkFound("MP2110", where, "index list",
             [](Program &, Role &r, Role &) { r.indices[0].list.in = {{9}}; });
  checkFound("MP2110", where, "two leaves", [](Program &, Role &r, Role &) {
    r.zeroed.push_back(r.zeroed[0]);
  });
  checkFound("MP2110", where, "carried scalar",
             [](Program &, Role &r, Role &) { r.scalars.loss = 0; });
  checkFound("MP2110", where, "out of order", [](Program &, Role &r, Role &) {
    std::swap(r.segments[2], r.segments[3]);
  });
}

TEST_CASE("malformed instructions are found") {
  auto breakFirst = [](SegmentKind segment, Kind kind, auto breakIt) {
    return [=](Program &, Role &r, Role &) {
      breakIt(instructionOf(r, segment, kind));
    };
  };
  checkFound("MP2111", "forward[0] aten::mm", "operand is no value",
             breakFirst(Forward, Kind::Call,
                        [](Instruction &i) { i.operands[0] = 4000; }));
  checkFound("MP2111", "forward[0] aten::mm", "result is no value",
             breakFirst(Forward, Kind::Call,
                        [](Instruction &i) { i.results[0] = -2; }));
  checkFound("MP2111", "aten::mm", "argument",
             breakFirst(Forward, Kind::Call,
                        [](Instruction &i) { i.args[0] = OperandArg{2}; }));
  checkFound("MP2111", "aten::mm", "argument",
             breakFirst(Forward, Kind::Call,
                        [](Instruction &i) { i.args[0] = Expr::size({99}); }));
  checkFound("MP2111", "all_gather", "missing or too many",
             breakFirst(Forward, Kind::AllGather,
                        [](Instruction &i) { i.receiveSizes.pop_back(); }));
  checkFound("MP2111", "all_gather", "ascending",
             breakFirst(Forward, Kind::AllGather,
                        [](Instruction &i) { i.axes = {1}; }));
  checkFound("MP2111", "all_gather", "axes are missing",
             breakFirst(Forward, Kind::AllGather,
                        [](Instruction &i) { i.axes.clear(); }));
  checkFound("MP2111", "reduce_scatter", "reduction",
             breakFirst(Forward, Kind::ReduceScatter,
                        [](Instruction &i) { i.name = "max"; }));
  checkFound(
      "MP2111", "send", "other stage",
      breakFirst(Forward, Kind::Send, [](Instruction &i) { i.peerStage = 0; }));
  checkFound(
      "MP2111", "free", "no results",
      breakFirst(Forward, Kind::Free, [](Instruction &i) { i.results = {0}; }));
  checkFound("MP2111", "update", "missing or too many",
             breakFirst(Step, Kind::Update,
                        [](Instruction &i) { i.operands.pop_back(); }));
}

TEST_CASE("sizes that no tensor has are found") {
  checkFound("MP2112", "stage 0", "'h' has shape [2, -1]",
             [](Program &, Role &r, Role &) {
               r.values[valueNamed(r, "h")].shape[1] = Expr::constant(-1);
             });
  checkFound("MP2112", "stage 0", "'h'", [](Program &, Role &r, Role &) {
    r.values[valueNamed(r, "h")].shape[1] =
        Expr::constant(int64_t(1) << 40) * Expr::constant(1 << 22);
  });
  checkFound("MP2113", "stage 0", "its layout gives 3",
             [](Program &, Role &r, Role &) {
               r.values[valueNamed(r, "w0")].shape[1] = Expr::constant(2);
             });
  checkFound("MP2113", "stage 0", "index list", [](Program &, Role &r, Role &) {
    r.indices[0].list.of.push_back({0});
  });
}

TEST_CASE("values used outside of their life are found") {
  checkFound("MP2120", "forward[1] aten::relu", "'h' is used before",
             [](Program &, Role &r, Role &) {
               instructionsOf(r, Forward)[0].results[0] = valueNamed(r, "back");
             });
  checkFound("MP2121", "forward[3]", "'h' is used after",
             [](Program &, Role &r, Role &) {
               instructionOf(r, Forward, Kind::Call, 2).operands[0] =
                   valueNamed(r, "h");
             });
  checkFound("MP2122", "free", "'h' is freed twice",
             [](Program &, Role &r, Role &) {
               instructionOf(r, Forward, Kind::Free, 1)
                   .operands.push_back(valueNamed(r, "h"));
             });
  checkFound("MP2122", "free", "'dh' is freed before",
             [](Program &, Role &r, Role &) {
               instructionOf(r, Forward, Kind::Free)
                   .operands.push_back(valueNamed(r, "dh"));
             });
  checkFound("MP2123", "forward", "'h' is never freed",
             [](Program &, Role &r, Role &) {
               std::erase(instructionOf(r, Forward, Kind::Free).operands,
                          valueNamed(r, "h"));
             });
  checkFound("MP2123", "backward", "'g' is never freed",
             [](Program &, Role &r, Role &) {
               std::erase(instructionOf(r, Backward, Kind::Free).operands,
                          valueNamed(r, "g"));
             });
  checkFound("MP2124", "forward[1] aten::relu", "'h' is defined twice",
             [](Program &, Role &r, Role &) {
               instructionsOf(r, Forward)[1].results[0] = valueNamed(r, "h");
             });
  checkFound("MP2120", "stage 1", "'loss' is reported",
             [](Program &, Role &, Role &r) {
               std::erase(r.zeroed, valueNamed(r, "loss"));
             });
  checkFound("MP2120", "stage 0", "gradient", [](Program &, Role &r, Role &) {
    std::erase(r.zeroed, valueNamed(r, "w0.grad"));
  });
}

TEST_CASE("saved values pass from forward to backward only") {
  checkFound("MP2125", "forward", "outlives", [](Program &, Role &r, Role &) {
    instructionOf(r, Forward, Kind::Free)
        .operands.push_back(valueNamed(r, "g"));
  });
  checkFound("MP2125", "backward[0] receive", "saved outside",
             [](Program &, Role &r, Role &) {
               r.values[valueNamed(r, "dg")].lifetime = Lifetime::Saved;
             });
  checkFound("MP2120", "step[0]", "'g' is used",
             [](Program &, Role &r, Role &) {
               r.values[valueNamed(r, "g")].lifetime = Lifetime::Local;
               instructionsOf(r, Step)[0].operands = {valueNamed(r, "g"),
                                                      valueNamed(r, "g")};
             });
  checkFound("MP2120", "backward[1]", "'g' is used before",
             [](Program &, Role &r, Role &) {
               r.values[valueNamed(r, "g")].lifetime = Lifetime::Local;
             });
  checkFound("MP2123", "forward", "'g' is never freed",
             [](Program &, Role &r, Role &) {
               r.segments.erase(r.segments.begin() + 3);
               std::erase_if(r.schedule, [](const Slot &slot) {
                 return slot.segment == Backward;
               });
             });
}

TEST_CASE("carried and persistent values are made where they may be") {
  checkFound("MP2125", "forward", "carried", [](Program &, Role &r, Role &) {
    r.values[valueNamed(r, "h")].lifetime = Lifetime::Carried;
  });
  checkFound("MP2125", "step", "outlives", [](Program &, Role &r, Role &) {
    instructionOf(r, Step, Kind::Free)
        .operands.push_back(valueNamed(r, "w0.grad"));
  });
  checkFound("MP2125", "forward[0]", "is a leaf",
             [](Program &, Role &r, Role &) {
               instructionsOf(r, Forward)[0].results[0] = valueNamed(r, "w0");
             });
  checkFound(
      "MP2120", "forward", "'inverse' is used before",
      [](Program &, Role &, Role &r) { instructionsOf(r, Begin).clear(); });
}

TEST_CASE("aliases share an operand's storage") {
  checkFound("MP2126", "forward[0] aten::mm", "no operand",
             [](Program &, Role &r, Role &) {
               r.values[valueNamed(r, "h")].aliasOf = valueNamed(r, "w0.grad");
             });
  checkFound("MP2126", "zero", "alias of the operand",
             [](Program &, Role &, Role &r) {
               r.values[valueNamed(r, "dg.zero")].aliasOf = None;
             });
  checkFound("MP2126", "receive", "no operand", [](Program &, Role &r, Role &) {
    r.values[valueNamed(r, "dg")].aliasOf = valueNamed(r, "w0");
  });
}

TEST_CASE("nothing is written that others still read") {
  checkFound("MP2127", "add_", "'g' is written while it is being sent",
             [](Program &, Role &r, Role &) {
               auto &list = instructionsOf(r, Forward);
               Instruction write;
               write.name = "aten::add_.Tensor";
               write.operands = {valueNamed(r, "g"), valueNamed(r, "g")};
               list.push_back(write);
             });
  checkFound("MP2127", "all_reduce", "persists and is reduced",
             [](Program &, Role &r, Role &) {
               instructionOf(r, Step, Kind::AllReduce).operands[0] =
                   valueNamed(r, "w0");
             });
}

TEST_CASE("schedules run every unit once, in order") {
  auto breakSchedule = [](size_t stage, auto breakIt) {
    return
        [=](Program &p, Role &, Role &) { breakIt(p.roles[stage].schedule); };
  };
  using Slots = std::vector<Slot>;
  checkFound("MP2130", "stage 0, schedule", "runs for 1 of 2 units",
             breakSchedule(0, [](Slots &s) { s.erase(s.begin()); }));
  checkFound("MP2130", "stage 0, schedule[1]", "runs twice",
             breakSchedule(0, [](Slots &s) { s[1].unit = 0; }));
  checkFound("MP2130", "stage 0, schedule[1]", "not a unit",
             breakSchedule(0, [](Slots &s) { s[1].unit = 2; }));
  checkFound("MP2130", "stage 0, schedule[1]", "before the unit's forward",
             breakSchedule(0, [](Slots &s) { std::swap(s[1], s[3]); }));
  checkFound("MP2130", "stage 0, schedule[4]", "runs after Step",
             breakSchedule(0, [](Slots &s) { std::swap(s[3], s[4]); }));
  checkFound("MP2130", "stage 1, schedule[2]", "runs after Begin",
             breakSchedule(1, [](Slots &s) { std::swap(s[1], s[2]); }));
  checkFound("MP2130", "stage 1, schedule[3]", "after a forward",
             breakSchedule(1, [](Slots &s) { std::swap(s[2], s[3]); }));
  checkFound("MP2130", "stage 1, schedule", "begin runs for 0 of 1",
             breakSchedule(1, [](Slots &s) { s.erase(s.begin() + 2); }));
  checkFound("MP2130", "stage 0, schedule[0]", "does not have",
             [](Program &, Role &r, Role &) {
               r.segments.erase(r.segments.begin() + 2);
             });
}

TEST_CASE("members of a group agree on sizes") {
  checkFound("MP2140", "all_reduce", "elements to reduce 6 and 4",
             [](Program &, Role &, Role &r) {
               instructionOf(r, Forward, Kind::AllReduce).operands[0] =
                   valueNamed(r, "g");
             });
  checkFound("MP2140", "all_gather", "the operand has 6 elements",
             [](Program &, Role &r, Role &) {
               auto &sizes =
                   instructionOf(r, Forward, Kind::AllGather).receiveSizes;
               std::swap(sizes[0], sizes[1]);
             });
  checkFound("MP2140", "all_gather", "the result has 10 elements",
             [](Program &, Role &r, Role &) {
               instructionOf(r, Forward, Kind::AllGather).receiveSizes[1] =
                   Expr::constant(5);
             });
  checkFound("MP2140", "reduce_scatter", "the result has",
             [](Program &, Role &r, Role &) {
               auto &sizes =
                   instructionOf(r, Forward, Kind::ReduceScatter).sendSizes;
               std::swap(sizes[0], sizes[1]);
             });
  checkFound("MP2140", "reduce_scatter", "a block sent and kept",
             [](Program &, Role &r, Role &) {
               // Right at each rank for itself, wrong between ranks.
               auto &scatter = instructionOf(r, Forward, Kind::ReduceScatter);
               Expr own = Expr::constant(2) * Expr::size({0});
               scatter.sendSizes = {own, own};
               scatter.operands[0] = valueNamed(r, "exchanged");
               std::swap(scatter, instructionOf(r, Forward, Kind::AllToAll));
             });
  checkFound("MP2140", "all_to_all", "a block sent and expected",
             [](Program &, Role &r, Role &) {
               auto &exchange = instructionOf(r, Forward, Kind::AllToAll);
               std::swap(exchange.sendSizes[0], exchange.sendSizes[1]);
             });
  checkFound("MP2140", "all_to_all", "a block of -1 elements",
             [](Program &, Role &r, Role &) {
               instructionOf(r, Forward, Kind::AllToAll).sendSizes[0] =
                   Expr::constant(-1);
             });
  checkFound("MP2142", "all_gather", "float32 in, float64 out",
             [](Program &, Role &r, Role &) {
               r.values[valueNamed(r, "all")].type = DType::Float64;
             });
}

TEST_CASE("updates take a trained parameter and its gradient") {
  checkFound("MP2151", "update", "no parameter that this stage trains",
             [](Program &, Role &r, Role &) { r.parameters[0].owner = false; });
  checkFound("MP2151", "update", "is no gradient of",
             [](Program &, Role &r, Role &) {
               instructionOf(r, Step, Kind::Update).operands[1] =
                   valueNamed(r, "norm");
             });
}

TEST_CASE("sends and receives match one to one") {
  checkFound("MP2143", "stage 0, forward", "tag 9 is never received",
             [](Program &, Role &r, Role &) {
               instructionOf(r, Forward, Kind::Send).tag = 9;
             });
  checkFound("MP2143", "stage 1, forward", "tag 7 is never sent",
             [](Program &, Role &r, Role &) {
               instructionOf(r, Forward, Kind::Send).tag = 9;
             });
  checkFound("MP2143", "stage 1, backward", "tag 7 is used twice",
             [](Program &, Role &, Role &r) {
               instructionOf(r, Backward, Kind::Send).tag = 7;
             });
  checkFound("MP2143", "receive", "rank 0 expects float32 [2, 3] where float32",
             [](Program &, Role &r, Role &) {
               instructionOf(r, Forward, Kind::Send).operands[0] =
                   valueNamed(r, "all");
             });
  checkFound("MP2143", "receive", "float64", [](Program &, Role &r, Role &) {
    r.values[valueNamed(r, "g")].type = DType::Float64;
  });
  checkFound("MP2143", "receive", "goes from stage 0 to 1",
             [](Program &p, Role &, Role &) {
               p.roles.push_back(p.roles[1]);
               p.roles[2].stage = 2;
               instructionOf(p.roles[1], Forward, Kind::Receive).peerStage = 2;
             });
}

TEST_CASE("stages that wait for each other are found") {
  // Stage 1 wants the gradient of unit 1 first, stage 0 sends unit 0 only after
  // it has received it.
  checkFound("MP2144", "stage 0, backward", "waits forever for tag 8 of unit 0",
             [](Program &, Role &first, Role &) {
               std::swap(first.schedule[1], first.schedule[2]);
               auto &list = instructionsOf(first, Forward);
               list.erase(list.end() - 1);
               Instruction send;
               send.kind = Kind::Send;
               send.operands = {valueNamed(first, "g")};
               send.peerStage = 1;
               send.tag = 7;
               auto &backward = instructionsOf(first, Backward);
               backward.insert(backward.begin() + 1, send);
             });
  checkFound("MP2144", "stage 1, forward", "waits forever for tag 7 of unit 0",
             [](Program &, Role &first, Role &) {
               auto &list = instructionsOf(first, Forward);
               Instruction send = list.back();
               list.pop_back();
               auto &backward = instructionsOf(first, Backward);
               backward.insert(backward.begin() + 1, send);
             });
}

TEST_CASE("a send whose unit is never received is found") {
  checkFound("MP2144", "stage 0, end of the step", "never arrives",
             [](Program &, Role &first, Role &second) {
               std::erase(first.schedule, Slot{Backward, 1});
               std::erase(second.schedule, Slot{Backward, 1});
               std::erase(second.schedule, Slot{Forward, 1});
             });
}

TEST_CASE("shapes of common calls follow from their operands") {
  auto setShape = [](const char *name, std::vector<Expr> shape) {
    return [=](Program &, Role &r, Role &) {
      r.values[valueNamed(r, name)].shape = shape;
    };
  };
  Expr two = Expr::constant(2), hidden = Expr::size({0});
  checkFound("MP2150", "forward[0] aten::mm", "gives [2, 3]",
             setShape("h", {two, two}));
  checkFound("MP2150", "forward[1] aten::relu", "gives",
             setShape("h", {hidden, two}));
  checkFound("MP2150", "aten::view", "elements are viewed as",
             setShape("flat", {hidden}));
  checkFound("MP2150", "aten::t", "gives", setShape("transposed", {two, two}));
  checkFound("MP2150", "aten::mul.Tensor", "gives",
             setShape("square", {two, two}));
  checkFound("MP2150", "aten::expand", "does not expand",
             [=](Program &, Role &, Role &r) {
               r.values[valueNamed(r, "dsum")].shape = {Expr::constant(3)};
             });
  checkFound("MP2150", "aten::relu", "mixes", [](Program &, Role &r, Role &) {
    r.values[valueNamed(r, "g")].type = DType::Float64;
  });
  checkFound("MP2150", "zero", "mixes", [](Program &, Role &, Role &r) {
    r.values[valueNamed(r, "dg.zero")].type = DType::Float64;
  });
}

TEST_CASE("predictions are what the program does") {
  checkFound(
      "MP2160", "manifest", "bytes of all_reduce",
      [](Program &p, Role &, Role &) { ++p.predicted.bytes["all_reduce"]; });
  checkFound("MP2160", "manifest", "0 collectives of broadcast, 1 are",
             [](Program &p, Role &, Role &) {
               p.predicted.collectives["broadcast"] = 1;
             });
  checkFound("MP2161", "stage", "are predicted",
             [](Program &p, Role &, Role &) { --p.predictedPeakBytes; });
}

TEST_CASE("findings are many but bounded") {
  Program program = provedProgram();
  Role &role = program.roles[0];
  for (int i = 0; i < 1000; ++i)
    instructionsOf(role, Forward)
        .push_back(instructionOf(role, Forward, Kind::Free));
  size_t count = verify(program).size();
  CHECK(count > 10);
  CHECK(count <= 100);
}
