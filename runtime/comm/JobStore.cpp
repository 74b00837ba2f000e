//===- JobStore.cpp - where the ranks of a job find each other ------------===//
//
// See JobStore.h.
//
//===----------------------------------------------------------------------===//
#include "runtime/comm/JobStoreImpl.h"

#include "runtime/support/Tensors.h"

#include <c10/util/Flags.h>
#include <c10/util/Logging.h>
#include <fmt/format.h>
#include <torch/csrc/distributed/c10d/HashStore.hpp>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

C10_DECLARE_int(caffe2_log_level);

namespace monarch::runtime {

void quietTransports() { FLAGS_caffe2_log_level = c10::GLOG_ERROR; }

static Error storeError(const std::exception &exception) {
  return {"MP4006", ExitCode::LostRank,
          "the job's store does not answer: " + messageOf(exception), "",
          "check MASTER_ADDR and MASTER_PORT, and that all ranks were started"};
}

JobStore::JobStore(std::unique_ptr<Impl> impl) : impl(std::move(impl)) {}
JobStore::~JobStore() = default;

Expected<std::shared_ptr<JobStore>>
JobStore::open(const StoreAddress &address) {
  c10d::TCPStoreOptions options;
  options.port = static_cast<uint16_t>(address.port);
  options.isServer = address.isServer;
  options.waitWorkers = false;
  options.timeout = address.patience;
  try {
    auto server = c10::make_intrusive<c10d::TCPStore>(address.host, options);
    auto impl = std::make_unique<Impl>();
    impl->port = server->getPort();
    impl->store = server;
    if (!address.prefix.empty())
      impl->store =
          c10::make_intrusive<c10d::PrefixStore>(address.prefix, impl->store);
    return std::shared_ptr<JobStore>(new JobStore(std::move(impl)));
  } catch (const std::exception &exception) {
    Error error = storeError(exception);
    error.where = fmt::format("{}:{}", address.host, address.port);
    return error;
  }
}

std::shared_ptr<JobStore> JobStore::forThreads() {
  auto impl = std::make_unique<Impl>();
  impl->store = c10::make_intrusive<c10d::HashStore>();
  return std::shared_ptr<JobStore>(new JobStore(std::move(impl)));
}

int JobStore::port() const { return impl->port; }

std::optional<Error> JobStore::set(const std::string &key,
                                   const std::string &value) {
  try {
    impl->store->set(key, value);
    return std::nullopt;
  } catch (const std::exception &exception) {
    return storeError(exception);
  }
}

Expected<std::string> JobStore::get(const std::string &key,
                                    std::chrono::milliseconds patience) {
  try {
    impl->store->wait({key}, patience);
    return impl->store->get_to_str(key);
  } catch (const std::exception &exception) {
    return storeError(exception);
  }
}

Expected<std::vector<std::optional<std::string>>>
JobStore::peek(const std::vector<std::string> &keys) {
  try {
    std::vector<std::optional<std::string>> values;
    for (const std::string &key : keys) {
      values.emplace_back();
      if (impl->store->check({key}))
        values.back() = impl->store->get_to_str(key);
    }
    return values;
  } catch (const std::exception &exception) {
    return storeError(exception);
  }
}

Expected<std::string> JobStore::setFirst(const std::string &key,
                                         const std::string &value) {
  try {
    return impl->store->compareSet(key, std::string(), value);
  } catch (const std::exception &exception) {
    return storeError(exception);
  }
}

Expected<int64_t> JobStore::add(const std::string &key, int64_t value) {
  try {
    return impl->store->add(key, value);
  } catch (const std::exception &exception) {
    return storeError(exception);
  }
}

} // namespace monarch::runtime
