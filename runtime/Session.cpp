//===- Session.cpp - a whole program in one process -----------------------===//
//
// See Session.h.
//
//===----------------------------------------------------------------------===//
#include "runtime/Session.h"

#include "runtime/comm/ThreadCommunicator.h"

#include <ATen/Parallel.h>

#include <mutex>
#include <thread>

namespace monarch::runtime {

namespace {

/// A source that is asked by one thread at a time.
template <typename Source, typename Request>
class Locked final : public Source {
public:
  explicit Locked(Source &inner) : inner(inner) {}
  Expected<at::Tensor> read(const Request &request) override {
    std::lock_guard lock(mutex);
    return inner.read(request);
  }

private:
  Source &inner;
  std::mutex mutex;
};

/// One rank, on its thread. Only rank 0 writes what is whole.
std::optional<Error> runRank(const Program &program, Communicator &communicator,
                             MemoryTally &tally, WeightSource &weights,
                             BatchSource &batches,
                             const SessionOptions &options,
                             SessionResult &result) {
  std::map<int32_t, at::Tensor> gradients;
  ExecutorOptions executorOptions;
  executorOptions.seed = options.seed;
  executorOptions.optimizer = options.optimizer;
  executorOptions.onUpdate = [&](const ProgramParameter &parameter,
                                 const at::Tensor &,
                                 const at::Tensor &gradient) {
    gradients[updatedValue(parameter)] = gradient.clone();
  };
  if (options.onInstruction)
    executorOptions.onInstruction = [&](const InstructionPlace &place,
                                        const auto &values) {
      options.onInstruction(communicator.rank(), place, values);
    };
  auto executor = Executor::create(program, communicator, tally, weights,
                                   std::move(executorOptions));
  if (!executor)
    return executor.error();
  if (auto error = (*executor)->connect())
    return error;

  std::vector<SpreadTensor> parameters = spreadParameters(program);
  std::vector<SpreadTensor> trained = parameters;
  std::erase_if(trained, [](const SpreadTensor &t) { return !t.isTrained; });
  auto gather = [&](const std::vector<SpreadTensor> &tensors, auto block) {
    return gatherWhole(program, communicator, tensors, block);
  };
  for (int64_t step = 0; step < options.steps; ++step) {
    auto stepped = (*executor)->step(step, batches);
    if (!stepped)
      return stepped.error();
    result.ranks[communicator.rank()].push_back(*stepped);
    auto whole = gather(trained, [&](const SpreadTensor &tensor) {
      return gradients.at(tensor.value);
    });
    if (!whole)
      return whole.error();
    if (communicator.rank() == 0)
      result.gradients.push_back(std::move(*whole));
    gradients.clear();
  }
  auto current = [&](const SpreadTensor &tensor) {
    return (*executor)->value(tensor.value);
  };
  auto wholeWeights = gather(parameters, current);
  if (!wholeWeights)
    return wholeWeights.error();
  auto wholeBuffers = gather(spreadBuffers(program), current);
  if (!wholeBuffers)
    return wholeBuffers.error();
  if (communicator.rank() == 0) {
    result.weights = std::move(*wholeWeights);
    result.buffers = std::move(*wholeBuffers);
  }
  return std::nullopt;
}

} // namespace

Expected<SessionResult> runThreads(const Program &program,
                                   WeightSource &weights, BatchSource &batches,
                                   const SessionOptions &options) {
  installMemoryTally();
  int64_t ranks = program.worldSize();
  Locked<WeightSource, WeightRequest> lockedWeights(weights);
  Locked<BatchSource, BatchRequest> lockedBatches(batches);
  SessionOptions lockedOptions = options;
  std::mutex observing;
  if (options.onInstruction)
    lockedOptions.onInstruction = [&](int64_t rank, const auto &place,
                                      const auto &values) {
      std::lock_guard lock(observing);
      options.onInstruction(rank, place, values);
    };
  SessionResult result;
  result.ranks.resize(ranks);
  // Before the world, so that they outlive its tensors.
  std::vector<MemoryTally> tallies(ranks);
  ThreadWorld world(ranks, options.patience);
  std::vector<std::optional<Error>> errors(ranks);
  std::vector<std::thread> threads;
  for (int64_t rank = 0; rank < ranks; ++rank)
    threads.emplace_back([&, rank] {
      at::set_num_threads(1);
      auto communicator = world.communicator(rank);
      try {
        errors[rank] =
            runRank(program, *communicator, tallies[rank], lockedWeights,
                    lockedBatches, lockedOptions, result);
      } catch (const std::exception &exception) {
        errors[rank] = failedCall(messageOf(exception));
      }
      if (errors[rank])
        communicator->abort(*errors[rank]);
    });
  for (std::thread &thread : threads)
    thread.join();
  if (auto failure = world.failure())
    return *failure;
  for (const auto &rank : result.ranks) {
    for (size_t step = 0; step < rank.size() && result.losses.size() <= step;
         ++step)
      if (rank[step].loss)
        result.losses.push_back(*rank[step].loss);
  }
  return result;
}

} // namespace monarch::runtime
