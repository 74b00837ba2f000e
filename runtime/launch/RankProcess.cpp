//===- RankProcess.cpp - the life of one rank's process -------------------===//
//
// See RankProcess.h. Everything between ranks that is not a step (proofs,
// losses, reports) goes through the store and is not counted.
//
//===----------------------------------------------------------------------===//
#include "runtime/launch/RankProcess.h"

#include "core/program/Verify.h"
#include "core/support/Files.h"
#include "core/support/Safetensors.h"
#include "core/support/Sha256.h"
#include "runtime/comm/Failure.h"
#include "runtime/comm/GlooCommunicator.h"
#include "runtime/comm/ThreadCommunicator.h"
#include "runtime/data/FileSources.h"
#include "runtime/data/Generators.h"
#include "runtime/launch/EndOfJob.h"
#include "runtime/launch/Monitor.h"
#include "runtime/launch/Report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <limits>
#include <thread>

namespace monarch::runtime {

namespace {

/// For other ranks to start.
constexpr std::chrono::seconds startPatience{60};

/// Their ops are known to LibTorch from here on.
std::optional<Error> loadLibraries(const std::vector<std::string> &paths) {
  for (const std::string &path : paths)
    if (::dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL) == nullptr) {
      const char *why = ::dlerror();
      return Error{"MP4016", ExitCode::BadInput,
                   std::string("cannot load a library: ") +
                       (why != nullptr ? why : "unknown reason"),
                   path, "give one that was built for this PyTorch"};
    }
  return std::nullopt;
}

Expected<std::unique_ptr<WeightSource>> weightsOf(const RunOptions &options) {
  std::unique_ptr<WeightSource> file;
  if (!options.weights.empty()) {
    auto opened = openWeights(options.weights);
    if (!opened)
      return opened.error();
    file = std::move(*opened);
  }
  if (options.initSeed)
    file = std::make_unique<InitialWeights>(*options.initSeed, std::move(file));
  if (!file)
    return Error{"MP4010", ExitCode::Usage, "no weights", "command line",
                 "give --weights FILE, or --init SEED for fresh ones"};
  return file;
}

class RankProcess {
public:
  RankProcess(const RunOptions &options, const JobPlace &place)
      : options(options), place(place),
        shared(place.progressFile < 0
                   ? std::nullopt
                   : SharedProgress::open(place.progressFile)) {}

  std::optional<Error> run() {
    if (auto error = loadLibraries(options.libraries))
      return error;
    if (auto error = prove())
      return error;
    if (auto error = meet())
      return error;
    if (auto error = load())
      return reported(*error);
    if (auto error = train())
      return reported(*error);
    if (auto error = finish())
      return reported(*error);
    return leave();
  }

private:
  bool isAlone() const { return place.worldSize == 1; }
  bool isFirst() const { return place.rank == 0; }
  Progress &progress() { return shared ? shared->progress() : own; }
  const Role &role() const {
    return program.roles[place.rank / program.mesh.size()];
  }

  /// The others are told; what was said before counts.
  Error reported(Error error) {
    if (error.where.empty())
      error.where = fmt::format("rank {}", place.rank);
    if (!store)
      return error;
    error = reportFailure(*store, error);
    // The store goes with this rank: the others' monitors look at it first.
    if (place.store.isServer)
      std::this_thread::sleep_for(2 * beatInterval);
    return error;
  }

  std::optional<Error> prove() {
    auto read = readProgram(options.directory);
    if (!read)
      return read.error();
    program = std::move(*read);
    if (program.worldSize() != place.worldSize)
      return Error{"MP4005", ExitCode::Usage,
                   fmt::format("the program is for {} ranks, there are {}",
                               program.worldSize(), place.worldSize),
                   options.directory, "start as many ranks as it has"};
    std::vector<Error> violations = verify(program);
    if (!violations.empty())
      return joined(violations);
    return std::nullopt;
  }

  std::optional<Error> meet() {
    if (isAlone()) {
      communicator = aloneWorld.communicator(0);
      return std::nullopt;
    }
    StoreAddress address = place.store;
    address.patience = startPatience;
    auto opened = JobStore::open(address);
    if (!opened)
      return opened.error();
    store = *opened;
    if (auto error = compareManifests())
      return reported(*error);
    address.isServer = false;
    auto second = JobStore::open(address);
    if (!second)
      return reported(second.error());
    monitor = std::make_unique<Monitor>(
        *second, place.rank, place.worldSize,
        [this] { return textOf(progress(), role()); },
        [this](const Error &error) { endJob(place, error); });
    GlooOptions gloo;
    gloo.interface = options.interface;
    if (const char *name = std::getenv("GLOO_SOCKET_IFNAME");
        name && gloo.interface.empty())
      gloo.interface = name;
    bool isLocal =
        place.store.host == "localhost" || place.store.host.starts_with("127.");
    gloo.address = isLocal ? "127.0.0.1" : "";
    gloo.patience = options.timeout;
    gloo.causePatience = heartbeatWindow + std::chrono::seconds(1);
    auto connected = connectGloo(store, place.rank, place.worldSize, gloo);
    if (!connected)
      return reported(connected.error());
    communicator = std::move(*connected);
    return std::nullopt;
  }

  std::optional<Error> compareManifests() {
    auto manifest = readFile(options.directory + "/manifest.json");
    if (!manifest)
      return manifest.error();
    std::string digest = sha256(*manifest);
    if (isFirst())
      return store->set("manifest", digest);
    auto first = store->get("manifest", startPatience);
    if (!first)
      return first.error();
    if (*first == digest)
      return std::nullopt;
    return Error{"MP4012", ExitCode::Stale,
                 fmt::format("rank {} has another program than rank 0: "
                             "manifest {} against {}",
                             place.rank, digest, *first),
                 options.directory, "give every host the same program files"};
  }

  /// What ranks find by themselves is found by several at once: the error of
  /// the lowest is the job's, whoever was first. Nobody starts before all have
  /// loaded.
  std::optional<Error> load() {
    std::optional<Error> own = loadOwn();
    if (isAlone())
      return own ? own : executor->connect();
    if (own && own->where.empty())
      own->where = fmt::format("rank {}", place.rank);
    auto key = [](int64_t rank) { return fmt::format("loaded/{}", rank); };
    if (auto error = store->set(key(place.rank), own ? packError(*own) : ""))
      return error;
    auto arrived = store->add("loaded", 1);
    if (!arrived)
      return arrived.error();
    if (*arrived == place.worldSize) {
      std::vector<std::string> keys;
      for (int64_t rank = 0; rank < place.worldSize; ++rank)
        keys.push_back(key(rank));
      auto words = store->peek(keys);
      if (!words)
        return words.error();
      auto first = std::ranges::find_if(
          *words, [](const auto &word) { return word && !word->empty(); });
      if (auto error =
              store->set("all-loaded", first == words->end() ? "" : **first))
        return error;
    }
    auto verdict = store->get("all-loaded", options.timeout);
    if (!verdict)
      return verdict.error();
    if (auto error = unpackError(*verdict))
      return error;
    return executor->connect();
  }

  std::optional<Error> loadOwn() {
    auto opened = weightsOf(options);
    if (!opened)
      return opened.error();
    weights = std::move(*opened);
    if (auto error = openBatches())
      return error;
    ExecutorOptions executorOptions;
    executorOptions.seed = options.seed;
    executorOptions.optimizer = options.optimizer;
    executorOptions.progress = &progress();
    if (options.verify)
      executorOptions.onUpdate = [this](const ProgramParameter &parameter,
                                        const at::Tensor &,
                                        const at::Tensor &gradient) {
        gradients[updatedValue(parameter)] = gradient.clone();
      };
    auto created = Executor::create(program, *communicator, tally(), *weights,
                                    std::move(executorOptions));
    if (!created)
      return created.error();
    executor = std::move(*created);
    if (options.verify && isFirst()) {
      auto read = readProgram(options.directory + "/one_process");
      if (!read)
        return read.error();
      oneProcess = std::move(*read);
      auto verification = Verification::create(program, oneProcess, *weights,
                                               options.seed, options.optimizer);
      if (!verification)
        return verification.error();
      reference = std::move(*verification);
    }
    return std::nullopt;
  }

  std::optional<Error> openBatches() {
    steps = options.steps.value_or(1);
    if (options.data.empty()) {
      batches = std::make_unique<SyntheticBatches>(options.seed);
      return std::nullopt;
    }
    auto file = FileBatches::open(options.data);
    if (!file)
      return file.error();
    int64_t available = (*file)->steps(program);
    const bool isEndless = available == std::numeric_limits<int64_t>::max();
    steps =
        std::min(options.steps.value_or(isEndless ? 1 : available), available);
    if (steps == 0)
      return Error{
          "MP4011", ExitCode::BadInput, "the data holds no whole global batch",
          options.data,
          fmt::format("a step takes {} rows of the batch", program.globalRows)};
    batches = std::move(*file);
    return std::nullopt;
  }

  std::optional<Error> train() {
    Traffic expected = trafficOf(program, place.rank);
    report.rank = place.rank;
    report.stage = executor->role().stage;
    report.coordinates = executor->view().coordinates();
    for (int64_t step = 0; step < steps; ++step) {
      auto result = executor->step(step, *batches);
      if (!result)
        return result.error();
      report.traffic = result->traffic;
      report.peakTensorBytes =
          std::max(report.peakTensorBytes, result->peakBytes);
      report.stepSeconds.push_back(result->seconds);
      report.segmentSeconds = result->secondsPerSegment;
      if (!(result->traffic == expected))
        return Error{"MP4008", ExitCode::RunFailed,
                     "executed traffic is not that of the program's files",
                     fmt::format("rank {}, step {}", place.rank, step + 1), ""};
      if (auto error = shareLoss(step, *result))
        return error;
      if (options.verify)
        if (auto error = verifyStep(step))
          return error;
    }
    return std::nullopt;
  }

  /// The rank that tells the loss: the first of the last stage that has it.
  int64_t lossRank() const {
    for (size_t stage = program.roles.size(); stage-- > 0;)
      if (program.roles[stage].scalars.loss != None)
        return static_cast<int64_t>(stage) * program.mesh.size();
    return -1;
  }

  std::optional<Error> shareLoss(int64_t step, const StepResult &result) {
    if (place.rank != lossRank() || !result.loss)
      return std::nullopt;
    std::printf("step %ld  loss %.6f\n", static_cast<long>(step + 1),
                *result.loss);
    std::fflush(stdout);
    if (isAlone()) {
      losses.push_back(*result.loss);
      return std::nullopt;
    }
    return store->set(fmt::format("loss/{}", step),
                      fmt::format("{}", *result.loss));
  }

  /// On rank 0; NaN when the program has no loss.
  Expected<double> lossOf(int64_t step) {
    if (lossRank() < 0)
      return std::numeric_limits<double>::quiet_NaN();
    if (isAlone())
      return losses[step];
    auto text = store->get(fmt::format("loss/{}", step), options.timeout);
    if (!text)
      return text.error();
    return std::strtod(text->c_str(), nullptr);
  }

  std::optional<Error> verifyStep(int64_t step) {
    std::vector<SpreadTensor> trained = spreadParameters(program);
    std::erase_if(trained, [](const SpreadTensor &t) { return !t.isTrained; });
    auto whole = gatherWhole(
        program, *communicator, trained,
        [&](const SpreadTensor &tensor) { return gradients.at(tensor.value); });
    gradients.clear();
    if (!whole)
      return whole.error();
    if (isFirst()) {
      auto loss = lossOf(step);
      if (!loss)
        return loss.error();
      if (auto error = reference->step(step, *batches, *loss, *whole))
        return error;
    }
    return communicator->barrier();
  }

  Expected<NamedTensors> current(const std::vector<SpreadTensor> &tensors) {
    return gatherWhole(
        program, *communicator, tensors,
        [&](const SpreadTensor &t) { return executor->value(t.value); });
  }

  std::optional<Error> finish() {
    if (options.verify) {
      auto wholeBuffers = current(spreadBuffers(program));
      if (!wholeBuffers)
        return wholeBuffers.error();
      auto wholeWeights = current(spreadParameters(program));
      if (!wholeWeights)
        return wholeWeights.error();
      if (isFirst()) {
        reference->compareBuffers(*wholeBuffers);
        reference->compareWeights(*wholeWeights);
      }
    }
    if (!options.saveWeights.empty())
      if (auto error = saveWeights())
        return error;
    return writeReports();
  }

  /// Tensor by tensor: rank 0 never holds the whole model.
  std::optional<Error> saveWeights() {
    std::vector<SpreadTensor> all = spreadParameters(program);
    for (SpreadTensor &buffer : spreadBuffers(program, /*constants=*/true))
      all.push_back(std::move(buffer));
    std::optional<SafetensorsWriter> writer;
    if (isFirst()) {
      std::vector<SafetensorsTensor> declared;
      for (const SpreadTensor &tensor : all)
        for (const std::string &name : tensor.names)
          declared.push_back(
              {name, tensor.type, wholeShape(tensor.structure), 0, 0});
      auto created =
          SafetensorsWriter::create(options.saveWeights, std::move(declared));
      if (!created)
        return created.error();
      writer.emplace(std::move(*created));
    }
    for (const SpreadTensor &tensor : all) {
      auto whole = current({tensor});
      if (!whole)
        return whole.error();
      for (const std::string &name : tensor.names)
        if (writer) {
          const at::Tensor &data = whole->begin()->second;
          if (auto error = writer->write(name, 0, data.const_data_ptr(),
                                         static_cast<int64_t>(data.nbytes())))
            return error;
        }
    }
    return writer ? writer->commit() : std::nullopt;
  }

  std::optional<Error> writeReports() {
    if (!isFirst())
      return store->set(fmt::format("report/{}", place.rank),
                        writeRankReport(report));
    RunReport whole;
    whole.ranks.push_back(report);
    for (int64_t rank = 1; rank < place.worldSize; ++rank) {
      auto text = store->get(fmt::format("report/{}", rank), options.timeout);
      if (!text)
        return text.error();
      auto read = readRankReport(*text);
      if (!read)
        return read.error();
      whole.ranks.push_back(std::move(*read));
    }
    if (lossRank() >= 0)
      for (int64_t step = 0; step < steps; ++step) {
        auto loss = lossOf(step);
        if (!loss)
          return loss.error();
        whole.losses.push_back(*loss);
      }
    if (reference)
      whole.verify = reference->figures();
    if (!options.report.empty())
      if (auto error = writeFile(options.report, writeReport(whole, program)))
        return error;
    std::fputs(summaryOf(whole).c_str(), stdout);
    std::fflush(stdout);
    if (auto error = checkTraffic(whole.ranks, program))
      return error;
    if (whole.verify && !whole.verify->holds())
      return Error{"MP4013", ExitCode::RunFailed,
                   "the ranks' numbers are not those of one process",
                   whole.verify->worst, ""};
    return std::nullopt;
  }

  /// Nobody's sockets close before everybody is done.
  std::optional<Error> leave() {
    if (isAlone())
      return std::nullopt;
    if (auto error = communicator->barrier())
      return reported(*error);
    monitor.reset();
    auto left = store->add("left", 1);
    if (!left)
      return left.error();
    if (*left == place.worldSize)
      if (auto error = store->set("empty", "1"))
        return error;
    // The store goes with its rank.
    if (place.store.isServer)
      if (auto empty = store->get("empty", options.timeout); !empty)
        return empty.error();
    return std::nullopt;
  }

  /// Outlives every tensor of the process.
  static MemoryTally &tally() {
    static MemoryTally *tally = new MemoryTally;
    return *tally;
  }

  const RunOptions &options;
  const JobPlace &place;
  Program program;
  Program oneProcess;
  Progress own;
  std::optional<SharedProgress> shared;
  ThreadWorld aloneWorld{1};
  std::shared_ptr<JobStore> store;
  std::unique_ptr<Communicator> communicator;
  std::unique_ptr<WeightSource> weights;
  std::unique_ptr<BatchSource> batches;
  std::map<int32_t, at::Tensor> gradients;
  std::unique_ptr<Executor> executor;
  std::unique_ptr<Verification> reference;
  std::unique_ptr<Monitor> monitor;
  int64_t steps = 0;
  std::vector<double> losses;
  RankReport report;
};

} // namespace

int runRank(const RunOptions &options, const JobPlace &place) {
  installMemoryTally();
  quietTransports();
  std::optional<Error> error;
  {
    RankProcess process(options, place);
    try {
      error = process.run();
    } catch (const std::exception &exception) {
      error = failedCall(messageOf(exception));
    }
    // Before destructors wait for peers that will not come.
    if (error)
      endJob(place, *error);
  }
  return 0;
}

} // namespace monarch::runtime
