//===- JobStoreImpl.h - the c10d store behind a JobStore ------------------===//
//
// For the two sources that include c10d: JobStore.cpp and GlooCommunicator.cpp.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "runtime/comm/JobStore.h"

#include <torch/csrc/distributed/c10d/Store.hpp>

namespace monarch::runtime {

struct JobStore::Impl {
  c10::intrusive_ptr<c10d::Store> store;
  int port = 0;
};

} // namespace monarch::runtime
