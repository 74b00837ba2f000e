//===- ScriptWeights.cpp - names to tensors -------------------------------===//
#include "runtime/data/ScriptWeights.h"

#include "runtime/data/MemorySources.h"
#include "runtime/script/ScriptFile.h"
#include "runtime/support/Tensors.h"

#include <ATen/core/grad_mode.h>
#include <fmt/format.h>

namespace monarch::runtime {

namespace {

class ScriptWeights final : public WeightSource {
public:
  ScriptWeights(std::string path, std::shared_ptr<const ScriptFile> script)
      : path(std::move(path)), script(std::move(script)) {
    for (const auto *tensors :
         {&this->script->tensors(), &this->script->constants()})
      for (const ScriptTensor &held : *tensors)
        for (const std::string &name : held.names)
          byName.emplace(name, held.tensor);
  }

  Expected<at::Tensor> read(const WeightRequest &request) override {
    at::NoGradGuard withoutGradients;
    for (const std::string &name : request.names) {
      auto found = byName.find(name);
      if (found == byName.end())
        continue;
      const at::Tensor held = found->second.detach();
      const auto wanted = scalarTypeOf(request.type);
      if (held.sizes() != at::IntArrayRef(request.shape) ||
          held.is_floating_point() != at::isFloatingType(wanted))
        return missingWeight(
            request,
            fmt::format("the model holds {} {}, the program wants {} "
                        "{}",
                        toString(*dtypeOf(held.scalar_type())),
                        shapeText(held.sizes()), toString(request.type),
                        shapeText(request.shape)));
      // A copy: training writes to it.
      return held.to(wanted, /*non_blocking=*/false, /*copy=*/true)
          .contiguous();
    }
    return missingWeight(request, path + " has no such tensor");
  }

private:
  const std::string path;
  const std::shared_ptr<const ScriptFile> script;
  std::map<std::string, at::Tensor> byName;
};

} // namespace

Expected<std::unique_ptr<WeightSource>>
openScriptWeights(const std::string &path) {
  auto script = ScriptFile::open(path);
  if (!script)
    return script.error();
  return std::unique_ptr<WeightSource>(
      std::make_unique<ScriptWeights>(path, std::move(*script)));
}

} // namespace monarch::runtime
