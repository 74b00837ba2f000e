//===- TablesTest.cpp - embedding tables on devices -----------------------===//
#include "planner/choose/EmbeddingTables.h"
#include "test/unit/planner/choose/Models.h"

#include <catch2/catch.hpp>
#include <random>
#include <set>

using namespace monarch;
using namespace monarch::planner;

namespace {

EmbeddingTable table(const std::string &name, double gigabytes) {
  EmbeddingTable made;
  made.name = name;
  made.width = 128;
  made.rows = static_cast<int64_t>(gigabytes * 1e9 / (128 * 4 + 4));
  made.lookups = 10;
  return made;
}

} // namespace

TEST_CASE("A table too large for any device is split, the others are not") {
  Target target = *findTarget("torchtitan");
  Machine machine = boxes("A100-SXM4-40GB", 4);
  TableRequest request;
  request.globalBatch = 8192;
  std::vector<EmbeddingTable> tables = {table("users", 60), table("items", 10),
                                        table("shops", 10)};
  auto plan = placeTables(tables, machine, target, request);
  REQUIRE(plan);
  CHECK(plan->placements[0].split != TableSplit::Whole);
  CHECK(plan->bytes <= plan->usableBytes);
  CHECK(plan->gap() >= 0);
  // One table that no split lets fit is named.
  tables.push_back(table("world", 400));
  auto refused = placeTables(tables, machine, target, request);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().what.find("world") != std::string::npos);
}

TEST_CASE("Hundreds of random tables: all placed once, none overfull") {
  Target target = *findTarget("torchtitan");
  Machine machine = boxes("A100-SXM4-40GB", 32);
  for (unsigned seed = 1; seed <= 20; ++seed) {
    INFO("seed " << seed);
    std::mt19937 engine(seed);
    std::vector<EmbeddingTable> tables;
    for (int i = 0; i < 300; ++i) {
      EmbeddingTable made;
      made.name = std::to_string(i);
      made.rows = 1000LL << (engine() % 13);
      made.width = 16LL << (engine() % 5);
      made.lookups = static_cast<double>(1 + engine() % 50);
      tables.push_back(made);
    }
    TableRequest request;
    request.globalBatch = 65536;
    request.denseBytes = 2e9;
    request.denseSeconds = 0.01;
    auto plan = placeTables(tables, machine, target, request);
    REQUIRE(plan);
    CHECK(plan->gap() >= 0);
    CHECK(plan->gap() < 0.1);
    std::vector<double> bytes(32, 2e9);
    for (size_t index = 0; index < tables.size(); ++index) {
      const TablePlacement &placement = plan->placements[index];
      const std::set<int64_t> distinct(placement.devices.begin(),
                                       placement.devices.end());
      CHECK(distinct.size() == placement.devices.size());
      for (int64_t device : placement.devices)
        bytes[static_cast<size_t>(device)] +=
            tables[index].bytes() /
            static_cast<double>(placement.devices.size());
    }
    for (double held : bytes)
      CHECK(held <= plan->usableBytes);
  }
}
