//===- CommunicatorTest.cpp - what every transport does -------------------===//
//
// One suite for all transports: ranks run the same function, on threads and as
// Gloo groups. Every value is a function of rank and position, so a block that
// goes astray shows.
//
//===----------------------------------------------------------------------===//
#include "test/unit/runtime/Worlds.h"

#include "runtime/support/Tensors.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <catch2/catch.hpp>

#include <numeric>

using namespace monarch;
using namespace monarch::runtime;
using namespace monarch::test;

namespace {

at::TensorOptions of(at::ScalarType type) { return at::TensorOptions(type); }

RankList everyone(int64_t size) {
  RankList ranks(size);
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

/// Block sizes that differ, one of them empty.
std::vector<int64_t> unevenSizes(int64_t count) {
  std::vector<int64_t> sizes;
  for (int64_t i = 0; i < count; ++i)
    sizes.push_back(i == 1 ? 0 : i + 2);
  return sizes;
}

int64_t sum(const std::vector<int64_t> &sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), int64_t{0});
}

at::Tensor block(int64_t from, int64_t to, int64_t size, at::ScalarType type) {
  return at::full({size}, 10 * from + to, of(type));
}

std::optional<Error> wrong(const std::string &what) {
  return Error{"TEST", ExitCode::Internal, what, "", ""};
}

std::optional<Error> checkCollectives(Communicator &c, const Group &group,
                                      at::ScalarType type) {
  int64_t n = group.size();
  int64_t me = group.own;
  at::Tensor reduced = at::arange(11, of(type)) + group.ranks[me];
  at::Tensor expected = at::arange(11, of(type)) * n + sum(group.ranks);
  if (auto error = c.allReduce(group, reduced, Reduction::Sum))
    return error;
  if (!reduced.equal(expected))
    return wrong("sum of all_reduce");
  at::Tensor largest = at::full({3}, group.ranks[me], of(type));
  if (auto error = c.allReduce(group, largest, Reduction::Max))
    return error;
  if (!largest.equal(at::full({3}, group.ranks.back(), of(type))))
    return wrong("max of all_reduce");

  for (bool isEven : {true, false}) {
    std::vector<int64_t> sizes =
        isEven ? std::vector<int64_t>(n, 3) : unevenSizes(n);
    at::Tensor own = block(me, 0, sizes[me], type);
    at::Tensor all = at::empty({sum(sizes)}, of(type));
    if (auto error = c.allGather(group, own, all, sizes))
      return error;
    std::vector<at::Tensor> parts;
    for (int64_t i = 0; i < n; ++i)
      parts.push_back(block(i, 0, sizes[i], type));
    if (!all.equal(at::cat(parts)))
      return wrong("all_gather");

    parts.clear();
    for (int64_t i = 0; i < n; ++i)
      parts.push_back(block(me, i, sizes[i], type));
    at::Tensor total = at::empty({sizes[me]}, of(type));
    if (auto error = c.reduceScatter(group, at::cat(parts), total, sizes))
      return error;
    if (!total.equal(
            at::full({sizes[me]}, 10 * n * (n - 1) / 2 + n * me, of(type))))
      return wrong("reduce_scatter");

    // Rank r sends (r + i) % 3 elements to i.
    std::vector<int64_t> sends, receives;
    parts.clear();
    std::vector<at::Tensor> arrivals;
    for (int64_t i = 0; i < n; ++i) {
      sends.push_back(isEven ? 2 : (me + i) % 3);
      receives.push_back(sends.back());
      parts.push_back(block(me, i, sends[i], type));
      arrivals.push_back(block(i, me, receives[i], type));
    }
    at::Tensor in = at::empty({sum(receives)}, of(type));
    if (auto error = c.allToAll(group, at::cat(parts), in, sends, receives))
      return error;
    if (!in.equal(at::cat(arrivals)))
      return wrong("all_to_all");
  }
  return std::nullopt;
}

TransportKind transport() {
  return GENERATE(TransportKind::Threads, TransportKind::Gloo);
}

} // namespace

TEST_CASE("Collectives of every element type give what their names say") {
  TransportKind kind = transport();
  int64_t size = GENERATE(2, 3);
  auto errors = runWorld(kind, size, [&](Communicator &c) {
    if (auto error = c.connect({everyone(size)}))
      return error;
    for (at::ScalarType type : {at::kFloat, at::kDouble, at::kBFloat16,
                                at::kHalf, at::kLong, at::kInt})
      if (auto error = checkCollectives(c, c.group(everyone(size)), type)) {
        error->what += std::string(" of ") + c10::toString(type);
        return error;
      }
    return std::optional<Error>();
  });
  CHECK(textOf(errors) == "");
}

TEST_CASE("Groups of lists of ranks work side by side") {
  TransportKind kind = transport();
  // Rows and columns of a 2 x 2 mesh, and the world.
  auto errors = runWorld(kind, 4, [](Communicator &c) -> std::optional<Error> {
    RankList row = c.rank() < 2 ? RankList{0, 1} : RankList{2, 3};
    RankList column = c.rank() % 2 ? RankList{1, 3} : RankList{0, 2};
    if (auto error = c.connect({row, column, everyone(4)}))
      return error;
    for (const RankList &ranks : {column, row, everyone(4), row})
      if (auto error = checkCollectives(c, c.group(ranks), at::kFloat))
        return error;
    return c.barrier();
  });
  CHECK(textOf(errors) == "");
}

TEST_CASE("Sums of narrow types are rounded once") {
  TransportKind kind = transport();
  // In bfloat16, 256 + 1 is 256: four ones are lost if added one by one.
  auto errors = runWorld(kind, 5, [](Communicator &c) -> std::optional<Error> {
    if (auto error = c.connect({everyone(5)}))
      return error;
    at::Tensor term = at::full({7}, c.rank() == 0 ? 256 : 1, of(at::kBFloat16));
    if (auto error = c.allReduce(c.group(everyone(5)), term, Reduction::Sum))
      return error;
    if (!term.equal(at::full({7}, 260, of(at::kBFloat16))))
      return wrong("sum is " + std::to_string(term[0].item().toDouble()));
    return std::nullopt;
  });
  CHECK(textOf(errors) == "");
}

TEST_CASE("Sends pass each other and are told apart by tag") {
  TransportKind kind = transport();
  auto errors = runWorld(kind, 2, [](Communicator &c) -> std::optional<Error> {
    int64_t peer = 1 - c.rank();
    for (int64_t tag : {7, 8})
      if (auto error =
              c.send(block(c.rank(), tag, 5, at::kFloat), peer, tag, tag))
        return error;
    for (int64_t tag : {8, 7}) {
      at::Tensor tensor = at::empty({5}, of(at::kFloat));
      if (auto error = c.receive(tensor, peer, tag))
        return error;
      if (!tensor.equal(block(peer, tag, 5, at::kFloat)))
        return wrong("tag " + std::to_string(tag));
    }
    for (int64_t bundle : {7, 8})
      if (auto error = c.waitForSends(bundle))
        return error;
    return std::nullopt;
  });
  CHECK(textOf(errors) == "");
}

TEST_CASE("Bytes are counted from the tensors of the calls") {
  TransportKind kind = transport();
  std::vector<Traffic> traffic(3);
  auto errors = runWorld(kind, 3, [&](Communicator &c) -> std::optional<Error> {
    if (auto error = c.connect({everyone(3)}))
      return error;
    const Group &group = c.group(everyone(3));
    at::Tensor five = at::full({5}, 1, of(at::kFloat));
    if (auto error = c.allReduce(group, five, Reduction::Sum))
      return error;
    c.setCounting(true);
    if (auto error = c.allReduce(group, five, Reduction::Sum))
      return error;
    at::Tensor own = at::full({c.rank() + 1}, 1, of(at::kDouble));
    at::Tensor all = at::empty({6}, of(at::kDouble));
    if (auto error = c.allGather(group, own, all, {1, 2, 3}))
      return error;
    if (auto error = c.reduceScatter(group, all, own, {1, 2, 3}))
      return error;
    c.setCounting(false);
    traffic[c.rank()] = c.takeTraffic();
    return std::nullopt;
  });
  REQUIRE(textOf(errors) == "");
  for (int64_t rank = 0; rank < 3; ++rank) {
    // 2 (n-1)/n of 20 B; the own block to two others; the others' blocks.
    CHECK(traffic[rank].bytes == std::map<std::string, int64_t>{
                                     {"all_reduce", 26},
                                     {"all_gather", 2 * 8 * (rank + 1)},
                                     {"reduce_scatter", 8 * (6 - (rank + 1))}});
    CHECK(traffic[rank].collectives ==
          std::map<std::string, int64_t>{
              {"all_reduce", 1}, {"all_gather", 1}, {"reduce_scatter", 1}});
  }
}

TEST_CASE("A rank that gives up ends the others") {
  TransportKind kind = transport();
  auto errors = runWorld(kind, 3, [](Communicator &c) -> std::optional<Error> {
    if (auto error = c.connect({everyone(3)}))
      return error;
    if (c.rank() == 1) {
      Error error = failedCall("out of ideas");
      c.abort(error);
      return error;
    }
    at::Tensor tensor = at::full({5}, 1, of(at::kFloat));
    return c.allReduce(c.group(everyone(3)), tensor, Reduction::Sum);
  });
  for (const auto &error : errors)
    CHECK(error.has_value());
  CHECK(errors[1]->what == "out of ideas");
}

TEST_CASE("Buffers that do not fit their split sizes are refused") {
  ThreadWorld world(1);
  auto c = world.communicator(0);
  REQUIRE(!c->connect({{0}}));
  at::Tensor three = at::full({3}, 1, of(at::kFloat));
  at::Tensor four = at::full({4}, 1, of(at::kFloat));
  const Group &self = c->group({0});
  CHECK(c->allGather(self, three, four, {4})->id == "MP4003");
  CHECK(c->reduceScatter(self, three, three, {4})->id == "MP4003");
  CHECK(c->allToAll(self, three, four, {3}, {4})->id == "MP4003");
  CHECK(c->allReduce(self, at::full({2, 2}, 1, of(at::kFloat)).t(),
                     Reduction::Sum)
            ->id == "MP4003");
}

TEST_CASE("Threads that disagree are told who and how") {
  auto errors = runWorld(
      TransportKind::Threads, 2, [](Communicator &c) -> std::optional<Error> {
        if (auto error = c.connect({everyone(2)}))
          return error;
        at::Tensor tensor = at::full({5 + c.rank()}, 1, of(at::kFloat));
        return c.allReduce(c.group(everyone(2)), tensor, Reduction::Sum);
      });
  for (const auto &error : errors) {
    REQUIRE(error);
    CHECK(error->what ==
          "ranks 0 and 1 disagree: all_reduce of 5 against 6 elements");
  }
}

TEST_CASE("A rank that never comes is lost, not waited for") {
  auto errors = runWorld(
      TransportKind::Threads, 2,
      [](Communicator &c) -> std::optional<Error> {
        if (auto error = c.connect({everyone(2)}))
          return error;
        if (c.rank() == 1)
          return std::nullopt;
        at::Tensor tensor = at::full({5}, 1, of(at::kFloat));
        return c.allReduce(c.group(everyone(2)), tensor, Reduction::Sum);
      },
      std::chrono::milliseconds(50));
  REQUIRE(errors[0]);
  CHECK(errors[0]->code == ExitCode::LostRank);
}
