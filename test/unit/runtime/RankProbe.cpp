//===- RankProbe.cpp - a rank's process with faults and gauges ------------===//
//
// For ProcessTest.cpp: a rank exactly as monarch-run makes it, but for one op
// of the test's own, test::probe, that stands in its programs. What the op does
// is in the environment: MONARCH_TEST_FAULT="RANK:MODE" with MODE
//
//   exit   leaves the process without a word
//   kill   dies by a signal
//   stop   stops the process, heartbeats included
//   throw  fails as a kernel does
//   hang   never returns, while heartbeats go on
//
// With MONARCH_TEST_TCP=1 it runs steps itself and compares the bytes that the
// kernel sent on the rank's connections with those counted.
//
//===----------------------------------------------------------------------===//
#include "core/program/Verify.h"
#include "runtime/comm/GlooCommunicator.h"
#include "runtime/data/Generators.h"
#include "runtime/exec/Executor.h"
#include "runtime/launch/EndOfJob.h"
#include "runtime/launch/RankProcess.h"

#include <fmt/format.h>
#include <torch/library.h>

#include <cstdlib>
#include <dirent.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <string>
#include <sys/socket.h>
#include <unistd.h>

using namespace monarch;
using namespace monarch::runtime;

namespace {

std::string variable(const char *name) {
  const char *value = std::getenv(name);
  return value ? value : "";
}

at::Tensor probe(const at::Tensor &tensor) {
  std::string fault = variable("MONARCH_TEST_FAULT");
  if (fault.substr(0, fault.find(':')) != variable("RANK"))
    return tensor.clone();
  std::string mode = fault.substr(fault.find(':') + 1);
  if (mode == "exit")
    ::_exit(3);
  if (mode == "kill")
    ::kill(::getpid(), SIGKILL);
  if (mode == "stop")
    ::kill(::getpid(), SIGSTOP);
  if (mode == "hang")
    while (true)
      ::pause();
  TORCH_CHECK(mode != "throw", "the probe was told to fail");
  return tensor.clone();
}

TORCH_LIBRARY(test, library) {
  library.def("probe(Tensor x) -> Tensor", &probe);
}

/// Bytes sent on this process's TCP connections, once each, but for those to
/// the store.
int64_t kernelBytesSent(int storePort) {
  int64_t bytes = 0;
  DIR *folder = ::opendir("/proc/self/fd");
  while (dirent *entry = ::readdir(folder)) {
    int descriptor = std::atoi(entry->d_name);
    sockaddr_in peer{};
    socklen_t size = sizeof(peer);
    if (::getpeername(descriptor, reinterpret_cast<sockaddr *>(&peer), &size) ||
        (peer.sin_family != AF_INET && peer.sin_family != AF_INET6) ||
        ntohs(peer.sin_port) == storePort)
      continue;
    // Linux' tcp_info is longer than the C library's: bytes_sent and
    // bytes_retrans are its 64-bit words at 200 and 208.
    uint64_t info[32] = {};
    size = sizeof(info);
    if (::getsockopt(descriptor, IPPROTO_TCP, TCP_INFO, info, &size) == 0)
      bytes += static_cast<int64_t>(info[25] - info[26]);
  }
  ::closedir(folder);
  return bytes;
}

int64_t sumOf(const std::map<std::string, int64_t> &counts) {
  int64_t sum = 0;
  for (const auto &[kind, count] : counts)
    sum += count;
  return sum;
}

std::optional<Error> measureTcp(const std::string &directory,
                                const JobPlace &place) {
  quietTransports();
  auto program = readProgram(directory);
  if (!program)
    return program.error();
  auto store = JobStore::open(place.store);
  if (!store)
    return store.error();
  auto communicator = connectGloo(*store, place.rank, place.worldSize, {});
  if (!communicator)
    return communicator.error();
  static MemoryTally tally;
  InitialWeights weights(1, nullptr);
  SyntheticBatches batches(1);
  auto executor =
      Executor::create(*program, **communicator, tally, weights, {});
  if (!executor)
    return executor.error();
  if (auto error = (*executor)->connect())
    return error;
  for (int64_t step = 0; step < 3; ++step) {
    // All connections are quiet here, and again after the step.
    if (auto error = (*communicator)->barrier())
      return error;
    int64_t before = kernelBytesSent(place.store.port);
    if (auto error = (*communicator)->barrier())
      return error;
    auto result = (*executor)->step(step, batches);
    if (!result)
      return result.error();
    if (auto error = (*communicator)->barrier())
      return error;
    int64_t kernel = kernelBytesSent(place.store.port) - before;
    int64_t counted = sumOf(result->traffic.bytes);
    int64_t calls = sumOf(result->traffic.collectives);
    fmt::print("rank {}: kernel {} B, counted {} B in {} calls\n", place.rank,
               kernel, counted, calls);
    // The receiving end of a send answers, too: up to 200 B for each call.
    if (std::abs(kernel - counted) > counted / 500 + 200 * (calls + 1))
      return failedCall(fmt::format("rank {}: the kernel sent {} B, counted "
                                    "were {} B in {} calls",
                                    place.rank, kernel, counted, calls));
  }
  return (*communicator)->barrier();
}

} // namespace

int main(int argc, char **argv) {
  auto place =
      placeFromEnvironment([](const char *name) { return std::getenv(name); });
  if (!place)
    endJob({}, place.error());
  std::vector<std::string> arguments(argv + 1, argv + argc);
  RunOptions options;
  options.directory = arguments.at(0);
  if (!variable("MONARCH_TEST_TCP").empty()) {
    if (auto error = measureTcp(options.directory, *place))
      endJob(*place, *error);
    std::fflush(stdout);
    ::_exit(0);
  }
  options.initSeed = 1;
  options.steps = 2;
  options.timeout = std::chrono::seconds(3);
  return runRank(options, *place);
}
