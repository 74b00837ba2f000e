//===- context.h - declarations of Gloo for c10d's header -----------------===//
//
// The torch wheel holds Gloo inside libtorch_cpu but ships none of its headers.
// c10d's ProcessGroupGloo.hpp names the types below and holds them only through
// pointers, so their declarations are enough: nothing here is ever defined,
// constructed or called by this project. The other headers of this folder stand
// for the paths that c10d includes. Torch 2.15.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

namespace gloo {

namespace transport {
class Device;
class UnboundBuffer {
public:
  virtual ~UnboundBuffer();
};
} // namespace transport

class Context {
public:
  void setTimeout(std::chrono::milliseconds timeout);
};

namespace rendezvous {
class Store {
public:
  virtual ~Store();
  virtual void set(const std::string &key, const std::vector<char> &data) = 0;
  virtual std::vector<char> get(const std::string &key) = 0;
  virtual void wait(const std::vector<std::string> &keys) = 0;
  virtual void wait(const std::vector<std::string> &keys,
                    const std::chrono::milliseconds &timeout) = 0;
};
} // namespace rendezvous

} // namespace gloo
