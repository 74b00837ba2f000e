//===- JobStore.h - where the ranks of a job find each other --------------===//
//
// A small view of c10d's TCPStore: keys that all ranks see. The launcher or
// rank 0 serves it. It carries rendezvous, heartbeats and the one cause that
// ends a job, never tensors.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "core/support/Error.h"

#include <chrono>
#include <memory>
#include <vector>

namespace monarch::runtime {

struct StoreAddress {
  std::string host = "127.0.0.1";
  /// 0: the system chooses (servers only).
  int port = 0;
  bool isServer = false;
  /// Put before every key.
  std::string prefix;
  /// For a server to appear and for keys to be set.
  std::chrono::milliseconds patience = std::chrono::seconds(60);
};

/// Calls of one object are serialised; a thread that must not wait for another
/// opens its own.
class JobStore {
public:
  /// MP4006 when nobody answers.
  static Expected<std::shared_ptr<JobStore>> open(const StoreAddress &address);
  /// In memory, for ranks that are threads.
  static std::shared_ptr<JobStore> forThreads();
  ~JobStore();

  int port() const;

  std::optional<Error> set(const std::string &key, const std::string &value);
  /// Waits for the key.
  Expected<std::string> get(const std::string &key,
                            std::chrono::milliseconds patience);
  /// The values of keys that are set; nothing for those that are not.
  Expected<std::vector<std::optional<std::string>>>
  peek(const std::vector<std::string> &keys);
  /// The first caller's value stays; returns it.
  Expected<std::string> setFirst(const std::string &key,
                                 const std::string &value);
  Expected<int64_t> add(const std::string &key, int64_t value);

  struct Impl;
  Impl &implementation() { return *impl; }

private:
  explicit JobStore(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl;
};

/// c10d warns of every wait that ends without a key; here that is no news.
void quietTransports();

} // namespace monarch::runtime
