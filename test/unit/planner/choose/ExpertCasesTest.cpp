//===- ExpertCasesTest.cpp - tables and serving as practitioners met them -===//
//
// Cases of users' reports, by number, of what no verb asks for yet. The others
// are in test/command_line.
//
//===----------------------------------------------------------------------===//
#include "planner/choose/EmbeddingTables.h"
#include "planner/choose/Inference.h"
#include "test/unit/planner/choose/Models.h"

#include <catch2/catch.hpp>
#include <random>

using namespace monarch;
using namespace monarch::planner;

namespace {

InferenceRequest serving(int64_t concurrency, double length) {
  InferenceRequest request;
  request.concurrency = concurrency;
  request.length = length;
  return request;
}

} // namespace

TEST_CASE("C74: Two thousand embedding tables are placed, with a gap") {
  std::mt19937 engine(74);
  std::vector<EmbeddingTable> tables(2000);
  for (size_t index = 0; index < tables.size(); ++index) {
    tables[index].name = "table " + std::to_string(index);
    tables[index].rows = 1000LL << (engine() % 12);
    tables[index].width = 16LL << (engine() % 4);
    tables[index].lookups = static_cast<double>(1 + engine() % 20);
  }
  TableRequest request;
  request.globalBatch = 65536;
  const auto plan = placeTables(tables, boxes("A100-SXM4-80GB", 128),
                                *findTarget("torchtitan"), request);
  REQUIRE(plan);
  CHECK(plan->placements.size() == tables.size());
  CHECK(plan->bytes <= plan->usableBytes);
  CHECK(plan->gap() < 0.1);
}

TEST_CASE("C107: What fits one device is served whole, what fits a node is "
          "split inside it") {
  const Target target = *findTarget("megatron");
  const auto small = chooseInference(
      llama8b(target), boxes("H100-SXM5-80GB", 1), target, serving(1, 4096));
  REQUIRE(small);
  CHECK(small->tp * small->pp == 1);
  // A node for 70B; heads over two nodes are no better than stages.
  const ModelWork large = llama70b(target);
  const auto node = chooseInference(large, boxes("H100-SXM5-80GB", 8), target,
                                    serving(1, 4096));
  REQUIRE(node);
  CHECK(node->fits);
  CHECK(node->tp > 1);
  CHECK(node->tp <= 8);
  const Machine nodes = boxes("H100-SXM5-80GB", 16);
  const auto inside =
      estimateInference(large, nodes, target, serving(1, 4096), 8, 2);
  const auto across =
      estimateInference(large, nodes, target, serving(1, 4096), 16, 1);
  REQUIRE(inside);
  REQUIRE(across);
  CHECK(inside->fits);
  CHECK(chooseInference(large, nodes, target, serving(1, 4096))->tp <= 8);
  // 70B on four cards of 48 GB: 35 GB of weights each.
  const auto cards = estimateInference(large, boxes("L40S", 4), target,
                                       serving(1, 4096), 4, 1);
  REQUIRE(cards);
  CHECK(cards->fits);
  CHECK(cards->weights == Approx(35e9).epsilon(0.02));
}

TEST_CASE("C110: 24 devices have memory enough, 128 heads do not divide by "
          "them") {
  const Target target = *findTarget("megatron");
  const ModelWork work = llamaWork(126, llamaShape(16384, 128, 53248), target);
  const Machine machine = boxes("H100-SXM5-80GB", 24);
  const auto wide =
      estimateInference(work, machine, target, serving(1, 4096), 24, 1);
  REQUIRE_FALSE(wide);
  CHECK(wide.error().what.find("128 heads") != std::string::npos);
  const auto stages =
      estimateInference(work, machine, target, serving(1, 4096), 8, 3);
  REQUIRE(stages);
  CHECK(stages->fits);
}
