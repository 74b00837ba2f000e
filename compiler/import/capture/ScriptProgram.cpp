//===- ScriptProgram.cpp - leaves and inputs of a TorchScript file --------===//
//
// Dim 0 of the inputs is the rows where all inputs agree on it: a script takes
// any number unless capture at another one finds that it does not.
//
//===----------------------------------------------------------------------===//
#include "compiler/import/capture/ScriptProgram.h"
#include "compiler/import/capture/RecordedTensor.h"
#include "runtime/script/ScriptFile.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace monarch {

namespace {

class ProgramBuilder {
public:
  ProgramBuilder(const std::string &path,
                 std::shared_ptr<const ScriptFile> script,
                 const std::map<std::string, GivenInput> &given)
      : path(path), script(std::move(script)), given(given) {}

  Expected<ExportedProgram> build() {
    for (const ScriptTensor &tensor : this->script->tensors())
      addTensor(tensor);
    for (const ScriptTensor &tensor : this->script->constants())
      if (tensor.tensor.dim() > 0)
        addTensor(tensor);
    if (auto error = addInputs())
      return *error;
    markRows();
    program.script = script;
    return std::move(program);
  }

private:
  void addTensor(const ScriptTensor &held) {
    const std::string placeholder = scriptPlaceholder(held.names.front());
    ExportedTensor type;
    type.type = *toDType(held.tensor.scalar_type());
    for (int64_t size : held.tensor.sizes())
      type.sizes.push_back({size, {}});
    type.requiresGrad = held.tensor.requires_grad();
    ExportedLeaf leaf;
    leaf.kind = held.kind;
    leaf.names = held.names;
    leaf.placeholders = {placeholder};
    leaf.trainable = held.kind == ValueKind::Parameter && type.requiresGrad;
    leaf.storage = held.storage;
    program.graph.tensors.emplace(placeholder, std::move(type));
    program.leaves.push_back(std::move(leaf));
  }

  /// Tensors without a default, or with a shape.
  std::optional<Error> addInputs() {
    const auto &schema =
        script->module().get_method("forward").function().getSchema();
    const auto &traced = script->tracedInputs();
    std::vector<std::string> all, missing;
    const size_t count = schema.arguments().size();
    for (size_t i = 1; i < count; ++i) {
      const c10::Argument &argument = schema.arguments()[i];
      const std::string &name = argument.name();
      all.push_back(fmt::format("{} ({})", name, argument.type()->repr_str()));
      const bool isTensor =
          c10::TensorType::get()->isSubtypeOf(*argument.type());
      auto found = given.find(name);
      GivenInput input;
      if (traced.size() + 1 == count)
        input = {traced[i - 1].shape, traced[i - 1].type};
      else if (found == given.end() && argument.default_value())
        continue;
      else if (found == given.end() || !isTensor)
        missing.push_back(name);
      if (found != given.end()) {
        input.shape = found->second.shape;
        if (found->second.type)
          input.type = found->second.type;
      }
      ExportedTensor type;
      type.type = input.type.value_or(DType::Float32);
      for (int64_t size : input.shape)
        type.sizes.push_back({size, {}});
      ExportedLeaf leaf;
      leaf.names = {name};
      leaf.placeholders = {name};
      program.graph.tensors.emplace(name, std::move(type));
      program.leaves.push_back(std::move(leaf));
    }
    if (missing.empty())
      return std::nullopt;
    return Error{
        "MP1010", ExitCode::Usage,
        fmt::format("a scripted file does not say the shapes of its inputs; "
                    "unknown: {}; all inputs: {}",
                    fmt::join(missing, ", "), fmt::join(all, ", ")),
        path,
        fmt::format("give each, with its type where it is not float32: "
                    "--shape {0}=4x32 or --shape {0}=4x32:int64",
                    missing.front())};
  }

  void markRows() {
    std::vector<ExportedTensor *> inputs;
    for (const ExportedLeaf &leaf : program.leaves)
      if (leaf.kind == ValueKind::Input)
        inputs.push_back(&program.graph.tensors.at(leaf.names.front()));
    for (const ExportedTensor *input : inputs)
      if (input->sizes.empty() ||
          input->sizes[0].hint != inputs.front()->sizes[0].hint)
        return;
    for (ExportedTensor *input : inputs) {
      input->sizes[0].symbols = {"rows"};
      input->sizes[0].expression = "Symbol('rows')";
    }
  }

  const std::string &path;
  std::shared_ptr<const ScriptFile> script;
  const std::map<std::string, GivenInput> &given;
  ExportedProgram program;
};

} // namespace

std::string scriptPlaceholder(const std::string &name) {
  return "self." + name;
}

Expected<ExportedProgram>
readScript(const std::string &path,
           const std::map<std::string, GivenInput> &given, ScriptFacts &facts) {
  auto script = ScriptFile::open(path);
  if (!script)
    return script.error();
  facts = {!(*script)->tracedInputs().empty(), (*script)->nodeCount(),
           (*script)->weightBytes()};
  return ProgramBuilder(path, *script, given).build();
}

} // namespace monarch
