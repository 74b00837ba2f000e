//===- RoleWriterTest.cpp - what the writer of a role says of views -------===//

#include "core/registry/Lowering.h"

#include <catch2/catch.hpp>

using namespace monarch;

namespace {

std::vector<Expr> sizes(std::vector<int64_t> shape) {
  std::vector<Expr> exprs;
  for (int64_t size : shape)
    exprs.push_back(Expr::constant(size));
  return exprs;
}

struct Fixture {
  Role role;
  RoleWriter writer{role};
  std::vector<Instruction> instructions;
  Local x = writer.make(DType::Float32, sizes({4, 6}));

  Fixture() { writer.target = &instructions; }
  Local transposed(Local t, std::vector<int64_t> shape) {
    return writer.call("aten::t", {t}, {OperandArg{0}}, DType::Float32,
                       sizes(shape));
  }
  Local viewed(Local t, std::vector<int64_t> shape) {
    return writer.call("aten::reshape", {t}, {OperandArg{0}, sizes(shape)},
                       DType::Float32, sizes(shape));
  }
  Local sliced(Local t, int64_t dim, std::vector<int64_t> shape) {
    return writer.call("aten::slice.Tensor", {t},
                       {OperandArg{0}, Expr::constant(dim), Expr::constant(0),
                        Expr::constant(2), Expr::constant(1)},
                       DType::Float32, sizes(shape));
  }
};

} // namespace

TEST_CASE("a view of a contiguous value shares its storage", "[registry]") {
  Fixture f;
  Local flat = f.viewed(f.x, {24});
  CHECK(f.writer[flat].aliasOf == f.x.value);
  CHECK(f.writer.isContiguous(flat));
  REQUIRE(f.instructions.size() == 1);
  CHECK(f.instructions[0].name == "aten::view");
}

TEST_CASE("a view of a transposed value is written as a clone and a view",
          "[registry]") {
  Fixture f;
  Local t = f.transposed(f.x, {6, 4});
  CHECK(f.writer[t].aliasOf == f.x.value);
  CHECK_FALSE(f.writer.isContiguous(t));
  Local flat = f.viewed(t, {24});
  REQUIRE(f.instructions.size() == 3);
  CHECK(f.instructions[1].name == "aten::clone");
  CHECK(f.instructions[2].name == "aten::view");
  Local clone{f.instructions[1].results[0]};
  CHECK(f.writer[clone].aliasOf == None);
  CHECK(f.writer[flat].aliasOf == clone.value);
}

TEST_CASE("a piece is contiguous when it is cut behind dims of size 1",
          "[registry]") {
  Fixture f;
  CHECK(f.writer.isContiguous(f.sliced(f.x, 0, {2, 6})));
  CHECK_FALSE(f.writer.isContiguous(f.sliced(f.x, 1, {4, 2})));
  CHECK_FALSE(f.writer.isContiguous(f.sliced(f.x, -1, {4, 2})));
  Local row = f.writer.make(DType::Float32, sizes({1, 6}));
  CHECK(f.writer.isContiguous(f.sliced(row, 1, {1, 2})));
  CHECK(f.writer.isContiguous(f.sliced(row, -1, {1, 2})));
}

TEST_CASE("other calls have storage of their own", "[registry]") {
  Fixture f;
  Local t = f.transposed(f.x, {6, 4});
  Local y = f.writer.call("aten::exp", {t}, {OperandArg{0}}, DType::Float32,
                          sizes({6, 4}));
  CHECK(f.writer[y].aliasOf == None);
  CHECK(f.writer.isContiguous(y));
}

TEST_CASE("shards and index lists are written once", "[registry]") {
  Fixture f;
  Shard cut{plainDim(8), {{0, {0}}}};
  ShardRef first = f.writer.shard(cut);
  CHECK(f.writer.shard(cut) == first);
  Local list = f.writer.index({{first}, {}});
  CHECK(f.writer.index({{first}, {}}).value == list.value);
  CHECK(f.role.indices.size() == 1);
  CHECK(f.writer[list].lifetime == Lifetime::Persistent);
  // A second writer of the role knows them.
  RoleWriter second(f.role);
  CHECK(second.shard(cut) == first);
  CHECK(second.index({{first}, {}}).value == list.value);
}

TEST_CASE("sizes of uncut shards are constants", "[registry]") {
  Fixture f;
  Expr whole = Expr::size(f.writer.shard({plainDim(8), {}}));
  Expr part = Expr::size(f.writer.shard({plainDim(8), {{0, {0}}}}));
  CHECK(f.writer.fold(whole * Expr::constant(3)) == Expr::constant(24));
  CHECK(f.writer.fold(whole * part) == Expr::constant(8) * part);
  Local made = f.writer.make(DType::Int64, {whole, part});
  CHECK(f.writer[made].shape == std::vector<Expr>{Expr::constant(8), part});
}

TEST_CASE("an all-reduce over no axes is not written", "[registry]") {
  Fixture f;
  CHECK(f.writer.allReduce(f.x, {}, "sum").value == f.x.value);
  CHECK(f.instructions.empty());
  f.writer.allReduce(f.x, {1}, "max");
  REQUIRE(f.instructions.size() == 1);
  CHECK(f.instructions[0].kind == InstructionKind::AllReduce);
  CHECK(f.instructions[0].axes == std::vector<int>{1});
}
