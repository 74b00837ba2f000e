//===- Capture.cpp - forward, loss, backward ------------------------------===//
//
// Leaves become recorded tensors, the interpreter runs the forward, the loss is
// chosen or built, and autograd::grad gives the backward from a seed that is a
// leaf too. Everything is functionalised: the final values of buffers are
// results.
//
//===----------------------------------------------------------------------===//
#include "compiler/import/capture/Capture.h"
#include "compiler/import/capture/AbstractOps.h"
#include "compiler/import/capture/Cotangents.h"
#include "compiler/import/capture/Interpreter.h"
#include "compiler/import/capture/Overrides.h"
#include "compiler/import/capture/ScriptInterpreter.h"
#include "compiler/import/capture/ScriptProgram.h"

#include <ATen/ATen.h>
#include <ATen/Context.h>
#include <fmt/format.h>
#include <torch/csrc/autograd/autograd.h>

namespace monarch {

namespace {

using at::Tensor;

Error badLoss(std::string what, std::string fix) {
  return {"MP1009", ExitCode::BadInput, std::move(what), "--loss",
          std::move(fix)};
}

/// Factories without a dtype follow the default one.
class DefaultType {
public:
  explicit DefaultType(bool promote) : previous(at::get_default_dtype()) {
    if (promote)
      at::set_default_dtype(caffe2::TypeMeta::Make<double>());
  }
  ~DefaultType() { at::set_default_dtype(previous); }

private:
  const caffe2::TypeMeta previous;
};

/// oneDNN's recurrent layers save what only that library can read.
class WithoutOneDnn {
public:
  WithoutOneDnn() { at::globalContext().setUserEnabledMkldnn(false); }
  ~WithoutOneDnn() { at::globalContext().setUserEnabledMkldnn(wasEnabled); }

private:
  const bool wasEnabled = at::globalContext().userEnabledMkldnn();
};

class Session {
public:
  Session(const ExportedProgram &program, const CaptureOptions &options)
      : program(program), options(options),
        interpreter(recorder, options.symbols, options.promoteToFloat64),
        pairs(recorder) {}

  Graph run() {
    DefaultType type(options.promoteToFloat64);
    WithoutOneDnn withoutOneDnn;
    RecordingScope recording(recorder);
    Overrides overrides(recorder, options.plainMeans);
    AbstractOps abstractOps(recorder);
    at::AutoGradMode gradients(options.train && !program.isJoint());
    makeLeaves();
    if (program.isJoint()) {
      runJoint();
      return std::move(recorder.graph);
    }
    pairs.startForward();
    if (program.script) {
      runScript();
    } else {
      interpreter.run(program.graph, values);
      takeBufferResults();
      collectOutputs();
    }
    recorder.module.clear();
    recorder.source = "--loss";
    if (options.train) {
      Tensor loss = findLoss();
      recorder.graph.loss = recorder.idOf(loss);
      runBackward(loss);
    }
    noteBuffers();
    return std::move(recorder.graph);
  }

private:
  std::vector<int64_t> shapeOf(const std::string &placeholder) const {
    std::vector<int64_t> shape;
    for (const ExportedSize &size :
         program.graph.tensors.at(placeholder).sizes) {
      const auto value = evaluate(size, options.symbols);
      if (!value)
        throw CaptureFailure(
            {"MP1010", ExitCode::BadInput,
             "the size of an input depends on others in a way that is not "
             "known: " +
                 size.expression,
             placeholder, "export with one dynamic size a dim"});
      shape.push_back(*value);
    }
    return shape;
  }

  void makeLeaves() {
    Graph &graph = recorder.graph;
    for (const ExportedLeaf &leaf : program.leaves) {
      const ExportedTensor &type =
          program.graph.tensors.at(leaf.placeholders.front());
      DType dtype = interpreter.promoted(type.type);
      Tensor tensor = recorder.leaf(leaf.kind, leaf.names.front(), dtype,
                                    shapeOf(leaf.placeholders.front()));
      ValueId id = recorder.idOf(tensor);
      switch (leaf.kind) {
      case ValueKind::Parameter: {
        bool trainable = leaf.trainable && isFloating(dtype);
        if (program.isJoint())
          trainable = hasGradient(leaf);
        graph.parameters.push_back(
            {id, leaf.names, trainable, leaf.storage, {}});
        if (trainable && options.train && !program.isJoint()) {
          tensor.set_requires_grad(true);
          trained.push_back({graph.parameters.size() - 1, tensor});
          pairs.addLeaf(tensor);
        }
        break;
      }
      case ValueKind::Buffer:
        graph.buffers.push_back(
            {id, leaf.names, leaf.storage, None, leaf.persistent});
        buffers.push_back({graph.buffers.size() - 1, tensor});
        break;
      case ValueKind::Constant:
        graph.constants.push_back(id);
        graph.constantStorage.push_back(leaf.storage);
        break;
      default:
        graph.inputs.push_back({id, leaf.names.front()});
        inputs[leaf.names.front()] = tensor;
        break;
      }
      for (const std::string &placeholder : leaf.placeholders)
        values[placeholder] = tensor;
    }
  }

  void runScript() {
    ScriptInterpreter script(recorder, *program.script,
                             options.promoteToFloat64);
    for (ScriptOutput &output : script.run(values)) {
      outputNames.push_back(output.name);
      outputs.push_back(output.tensor);
      if (output.tensor.defined())
        recorder.graph.outputs.push_back(recorder.idOf(output.tensor));
    }
    // Attributes that the program replaced.
    for (auto &[index, tensor] : buffers)
      tensor = values
                   .at(scriptPlaceholder(
                       recorder.graph.buffers[index].names.front()))
                   .toTensor();
  }

  //===- What a functional program says of itself ------------------------===//

  bool hasGradient(const ExportedLeaf &leaf) const {
    return std::any_of(leaf.names.begin(), leaf.names.end(),
                       [&](const std::string &name) {
                         return program.gradients.count(name) != 0;
                       });
  }

  void takeBufferResults() {
    for (auto &[index, tensor] : buffers)
      for (const std::string &name : recorder.graph.buffers[index].names)
        if (auto found = program.bufferResults.find(name);
            found != program.bufferResults.end())
          tensor = lookUp(values, found->second).toTensor();
  }

  void noteBuffers() {
    for (auto &[index, tensor] : buffers) {
      Buffer &buffer = recorder.graph.buffers[index];
      ValueId last = recorder.idOf(tensor);
      buffer.updated = last == buffer.value ? None : last;
    }
  }

  /// The file's own backward: what the loss, the outputs and the buffers need
  /// is forward, all else backward. A file does not say which gradient is
  /// whose.
  void runJoint() {
    if (options.loss.kind != LossSpec::Kind::Output ||
        !options.loss.output.empty())
      throw CaptureFailure(badLoss("the file holds its loss and the gradients",
                                   "leave --loss out"));
    std::set<std::string> wanted = {program.jointLoss};
    for (const ExportedArgument &output : program.graph.outputs)
      if (const auto *tensor = std::get_if<TensorName>(&output))
        wanted.insert(tensor->name);
    for (const auto &[buffer, result] : program.bufferResults)
      wanted.insert(result);
    auto [forward, backward] = split(program.graph, std::move(wanted));
    interpreter.run(forward, values);
    takeBufferResults();
    collectOutputs();
    noteBuffers();
    Graph &graph = recorder.graph;
    if (!options.train)
      return;
    graph.loss = recorder.idOf(lookUp(values, program.jointLoss).toTensor());
    recorder.phase = Phase::Backward;
    interpreter.run(backward, values);
    for (Parameter &parameter : graph.parameters)
      for (const std::string &name : parameter.names)
        if (auto found = program.gradients.find(name);
            found != program.gradients.end()) {
          const ValueId gradient =
              recorder.idOf(lookUp(values, found->second).toTensor());
          parameter.gradients.push_back(gradient);
          graph.values[gradient].cotangentOf.push_back(parameter.value);
        }
  }

  /// The nodes that `wanted` needs, and the others.
  static std::pair<ExportedGraph, ExportedGraph>
  split(const ExportedGraph &graph, std::set<std::string> wanted) {
    std::pair<ExportedGraph, ExportedGraph> halves;
    halves.first.tensors = halves.second.tensors = graph.tensors;
    std::vector<bool> isForward(graph.nodes.size());
    for (size_t i = graph.nodes.size(); i-- > 0;) {
      bool isWanted = false;
      for (const ExportedArgument &output : graph.nodes[i].outputs)
        eachName(output, [&](const std::string &name) {
          isWanted |= wanted.count(name) != 0;
        });
      isForward[i] = isWanted;
      if (isWanted)
        for (const auto &[name, input] : graph.nodes[i].inputs)
          eachName(input,
                   [&](const std::string &used) { wanted.insert(used); });
    }
    for (size_t i = 0; i < graph.nodes.size(); ++i)
      (isForward[i] ? halves.first : halves.second)
          .nodes.push_back(graph.nodes[i]);
    return halves;
  }

  /// Names of tensors and symbols in an argument.
  template <typename Visit>
  static void eachName(const ExportedArgument &argument, Visit visit) {
    if (const auto *tensor = std::get_if<TensorName>(&argument))
      visit(tensor->name);
    else if (const auto *symbol = std::get_if<SymbolName>(&argument))
      visit(symbol->name);
    else if (const auto *list = std::get_if<std::vector<TensorName>>(&argument))
      for (const TensorName &tensor : *list)
        visit(tensor.name);
    else if (const auto *ints =
                 std::get_if<std::vector<ExportedInt>>(&argument))
      for (const ExportedInt &element : *ints)
        if (const auto *symbol = std::get_if<SymbolName>(&element))
          visit(symbol->name);
  }

  void collectOutputs() {
    outputNames = program.outputNames;
    for (const ExportedArgument &output : program.graph.outputs) {
      const auto *name = std::get_if<TensorName>(&output);
      auto found = name != nullptr ? values.find(name->name) : values.end();
      bool isTensor = found != values.end() && found->second.isTensor() &&
                      found->second.toTensor().defined();
      outputs.push_back(isTensor ? found->second.toTensor() : Tensor());
      if (isTensor)
        recorder.graph.outputs.push_back(recorder.idOf(outputs.back()));
    }
  }

  /// By index, by the signature's name, by the graph's; the only output may
  /// also be called "logits".
  Tensor output(const std::string &wanted) const {
    std::string known;
    for (size_t i = 0; i < outputs.size(); ++i) {
      const auto *name =
          program.script ? nullptr
                         : std::get_if<TensorName>(&program.graph.outputs[i]);
      const std::string &key = outputNames[i];
      if (outputs[i].defined() &&
          (wanted == std::to_string(i) || (!key.empty() && wanted == key) ||
           (name != nullptr && wanted == name->name) ||
           (wanted == "logits" && outputs.size() == 1)))
        return outputs[i];
      known += (known.empty() ? "" : ", ") + std::to_string(i) +
               (key.empty() ? "" : " (" + key + ")");
    }
    throw CaptureFailure(badLoss("the model has no output '" + wanted + "'",
                                 "name one of its outputs: " + known));
  }

  Tensor findLoss() {
    const LossSpec &spec = options.loss;
    if (spec.kind == LossSpec::Kind::Output) {
      if (outputs.empty())
        throw CaptureFailure(badLoss("the model has no outputs",
                                     "export a model that returns its loss"));
      Tensor loss = spec.output.empty() ? outputs[0] : output(spec.output);
      if (!loss.defined() || loss.dim() != 0 || !loss.is_floating_point())
        throw CaptureFailure(badLoss(
            fmt::format("output {} is no scalar, so it is no loss",
                        spec.output.empty() ? "0" : spec.output),
            "name the loss: --loss OUTPUT, --loss ce:LOGITS,LABELS or --loss "
            "causal_lm:LOGITS,LABELS"));
      if (!loss.requires_grad())
        throw CaptureFailure(
            badLoss("the loss depends on no parameter", "name another output"));
      return loss;
    }
    return crossEntropy(output(spec.output));
  }

  Tensor crossEntropy(const Tensor &logits) {
    const LossSpec &spec = options.loss;
    bool isShifted = spec.kind == LossSpec::Kind::CausalLm;
    if (logits.dim() < (isShifted ? 3 : 2) || !logits.requires_grad())
      throw CaptureFailure(
          badLoss(fmt::format("output '{}' has {} dims: these are no logits",
                              spec.output, logits.dim()),
                  "name the output that holds the logits"));
    std::vector<int64_t> shape = logits.sizes().vec();
    const int64_t classes = shape.back();
    shape.pop_back();
    Tensor labels;
    if (auto found = inputs.find(spec.labels); found != inputs.end()) {
      labels = found->second;
      if (labels.sizes() != at::IntArrayRef(shape) ||
          labels.scalar_type() != at::kLong)
        throw CaptureFailure(
            badLoss("input '" + spec.labels + "' does not fit the logits",
                    "labels are int64, one for each row of logits"));
    } else {
      labels =
          recorder.leaf(ValueKind::Input, spec.labels, DType::Int64, shape);
      recorder.graph.inputs.push_back({recorder.idOf(labels), spec.labels});
    }
    if (isShifted) {
      // Row i predicts token i + 1; the last predicts nothing.
      const int64_t dim = labels.dim() - 1, size = labels.size(dim);
      labels =
          at::constant_pad_nd(labels, {0, 1}, -100).slice(dim, 1, size + 1);
    }
    return at::cross_entropy_loss(logits.reshape({-1, classes}),
                                  labels.reshape({-1}));
  }

  void runBackward(const Tensor &loss) {
    recorder.source.clear();
    Tensor seed = recorder.leaf(ValueKind::Seed, "seed",
                                *toDType(loss.scalar_type()), {});
    pairs.startBackward(loss);
    recorder.phase = Phase::Backward;
    std::vector<Tensor> parameters;
    for (auto &[index, tensor] : trained)
      parameters.push_back(tensor);
    torch::autograd::grad({loss}, parameters, {seed}, /*retain_graph=*/true,
                          /*create_graph=*/false, /*allow_unused=*/true);
    if (auto error = pairs.finish())
      throw CaptureFailure(*error);
    for (size_t i = 0; i < trained.size(); ++i)
      recorder.graph.parameters[trained[i].first].gradients = pairs.uses(i);
  }

  const ExportedProgram &program;
  const CaptureOptions &options;
  Recorder recorder;
  Interpreter interpreter;
  Cotangents pairs;
  Interpreter::Values values;
  std::vector<Tensor> outputs;
  std::vector<std::string> outputNames;
  std::map<std::string, Tensor> inputs;
  /// Index in the graph's table, tensor.
  std::vector<std::pair<size_t, Tensor>> trained;
  std::vector<std::pair<size_t, Tensor>> buffers;
};

} // namespace

Expected<Graph> capture(const ExportedProgram &program,
                        const CaptureOptions &options) {
  try {
    return Session(program, options).run();
  } catch (const CaptureFailure &failure) {
    return failure.error;
  } catch (const c10::Error &error) {
    return Error{"MP1011", ExitCode::Internal,
                 "capture failed: " + firstLine(error), "",
                 "report this model"};
  } catch (const std::exception &exception) {
    return Error{"MP1011", ExitCode::Internal,
                 std::string("capture failed: ") + exception.what(), "",
                 "report this model"};
  }
}

} // namespace monarch
