//===- Main.cpp - a model's graph against PyTorch's own autograd ----------===//
//
// usage: replay MODEL.pt2 --data BATCH.safetensors --reference R.safetensors
//               [--loss SPEC] [--rows N]
//        replay MODEL.pt2 --data BATCH.safetensors --write R.safetensors ...
// Runs one step in float64 and compares loss, gradients and buffers with those
// that test/models/reference.py wrote. Prints the worst error; exit code 1 past
// 1e-12. Error of a tensor: max|difference| / max(max|tensor|, 1e-3 * the
// largest gradient entry), 1e-2 of it for gradients that are zero by
// construction.
//
//===----------------------------------------------------------------------===//
#include "compiler/import/Import.h"
#include "core/support/Safetensors.h"
#include "core/support/Zip.h"
#include "test/replay/Replay.h"

#include <ATen/ATen.h>
#include <CLI/CLI.hpp>

#include <iostream>

namespace monarch {

namespace {

DType typeOf(const at::Tensor &tensor) {
  for (int i = 0; i <= static_cast<int>(LastDType); ++i)
    if (scalarTypeOf(static_cast<DType>(i)) == tensor.scalar_type())
      return static_cast<DType>(i);
  TORCH_CHECK(false, "a type that the project does not know");
}

[[noreturn]] void fail(const Error &error) {
  std::cerr << toString(error) << "\n";
  std::exit(static_cast<int>(error.code));
}

NamedTensors readTensors(const std::string &path) {
  auto file = SafetensorsFile::open(path);
  if (!file)
    fail(file.error());
  NamedTensors tensors;
  for (const SafetensorsTensor &entry : file->tensors()) {
    at::Tensor tensor =
        at::empty(entry.shape, at::dtype(scalarTypeOf(entry.type)));
    if (auto error = file->read(entry, 0, entry.bytes, tensor.data_ptr()))
      fail(*error);
    tensors[entry.name] = tensor;
  }
  return tensors;
}

/// The bytes of a leaf, in its strides; `value` may be promoted.
at::Tensor readLeaf(const ZipArchive &archive, const Storage &storage,
                    const Value &value, DType stored) {
  const auto *record = archive.find(storage.record);
  if (record == nullptr) {
    std::cerr << value.name << " has no bytes in the file\n";
    std::exit(3);
  }
  at::Tensor whole =
      at::empty({static_cast<int64_t>(record->size) / byteWidth(stored)},
                at::dtype(scalarTypeOf(stored)));
  std::span bytes(static_cast<std::byte *>(whole.data_ptr()), record->size);
  if (auto error = archive.readAt(storage.record, 0, bytes))
    fail(*error);
  return whole.as_strided(value.shape, storage.strides,
                          storage.offsetBytes / byteWidth(stored));
}

NamedTensors readLeaves(const std::string &path, const Graph &promoted,
                        const Graph &asStored) {
  auto archive = ZipArchive::open(path);
  if (!archive)
    fail(archive.error());
  NamedTensors leaves;
  auto add = [&](ValueId id, ValueId stored, const Storage &storage) {
    leaves[promoted.value(id).name] = readLeaf(
        *archive, storage, promoted.value(id), asStored.value(stored).type);
  };
  for (size_t i = 0; i < promoted.parameters.size(); ++i)
    add(promoted.parameters[i].value, asStored.parameters[i].value,
        promoted.parameters[i].storage);
  for (size_t i = 0; i < promoted.buffers.size(); ++i)
    add(promoted.buffers[i].value, asStored.buffers[i].value,
        promoted.buffers[i].storage);
  for (size_t i = 0; i < promoted.constants.size(); ++i)
    add(promoted.constants[i], asStored.constants[i],
        promoted.constantStorage[i]);
  return leaves;
}

double largest(const at::Tensor &tensor) {
  return tensor.numel() == 0
             ? 0
             : tensor.to(at::kDouble).abs().max().item<double>();
}

/// Worst error by name, over what either side has.
class Comparison {
public:
  explicit Comparison(double largestGradient) : scale(largestGradient) {}

  void add(const std::string &name, const at::Tensor &actual,
           const at::Tensor &expected) {
    double size = largest(expected);
    // Zero by construction: nothing but rounding.
    double floor = (size < 1e-10 * scale ? 1e-2 : 1e-3) * scale;
    double error =
        actual.sizes() != expected.sizes()
            ? 1
            : largest(actual.to(at::kDouble) - expected.to(at::kDouble)) /
                  std::max({size, floor, 1e-300});
    if (!(error <= worst)) {
      worst = error;
      worstName = name;
    }
    ++count;
  }
  int report() const {
    std::cout << "compared " << count << " tensors, worst error " << worst
              << " (" << worstName << ")\n";
    return count > 0 && worst <= 1e-12 ? 0 : 1;
  }

private:
  const double scale;
  double worst = -1;
  std::string worstName;
  int count = 0;
};

int write(const Graph &graph, const Step &step, const std::string &path) {
  NamedTensors results = {{"loss", step.loss}};
  for (const Parameter &parameter : graph.parameters)
    if (auto found = step.gradients.find(parameter.names[0]);
        found != step.gradients.end())
      results["gradient:" + found->first] = found->second;
  for (const auto &[name, tensor] : step.buffers)
    results["buffer:" + name] = tensor;
  std::vector<SafetensorsTensor> entries;
  for (auto &[name, tensor] : results) {
    tensor = tensor.contiguous();
    SafetensorsTensor entry;
    entry.name = name;
    entry.type = typeOf(tensor);
    entry.shape = tensor.sizes().vec();
    entries.push_back(std::move(entry));
  }
  auto writer = SafetensorsWriter::create(path, std::move(entries));
  if (!writer)
    fail(writer.error());
  for (const auto &[name, tensor] : results)
    if (auto error = writer->write(name, 0, tensor.data_ptr(),
                                   static_cast<int64_t>(tensor.nbytes())))
      fail(*error);
  if (auto error = writer->commit())
    fail(*error);
  return 0;
}

int compare(const Graph &graph, const Step &step,
            const NamedTensors &reference) {
  double scale = 0;
  NamedTensors gradients, buffers;
  for (const auto &[name, tensor] : reference) {
    if (name.rfind("gradient:", 0) == 0) {
      gradients[name.substr(9)] = tensor;
      scale = std::max(scale, largest(tensor));
    }
    if (name.rfind("buffer:", 0) == 0)
      buffers[name.substr(7)] = tensor;
  }
  Comparison comparison(scale);
  comparison.add("loss", step.loss, reference.at("loss"));
  size_t matched = 0;
  for (const Parameter &parameter : graph.parameters) {
    at::Tensor expected;
    for (const std::string &name : parameter.names)
      if (auto found = gradients.find(name); found != gradients.end()) {
        expected =
            expected.defined() ? expected + found->second : found->second;
        ++matched;
      }
    auto actual = step.gradients.find(parameter.names[0]);
    if (expected.defined() != (actual != step.gradients.end())) {
      std::cout << parameter.names[0] << ": one side has no gradient\n";
      return 1;
    }
    if (expected.defined())
      comparison.add(parameter.names[0], actual->second, expected);
  }
  if (matched != gradients.size()) {
    std::cout << "the reference has gradients of other parameters\n";
    return 1;
  }
  for (const Buffer &buffer : graph.buffers)
    comparison.add(buffer.names[0], step.buffers.at(buffer.names[0]),
                   buffers.at(buffer.names[0]));
  return comparison.report();
}

} // namespace

} // namespace monarch

namespace {

int run(int argc, char **argv) {
  using namespace monarch;
  std::string model, data, reference, output;
  ImportOptions options;
  CLI::App app("Replays a model's joint graph and compares with a reference");
  app.add_option("model", model)->required();
  app.add_option("--data", data)->required();
  auto *compared = app.add_option("--reference", reference);
  auto *written = app.add_option("--write", output)->excludes(compared);
  app.add_option("--loss", options.loss);
  app.add_option("--rows", options.unitRows);
  CLI11_PARSE(app, argc, argv);
  if (compared->empty() == written->empty()) {
    std::cerr << "give --reference or --write\n";
    return 2;
  }
  auto asStored = importModel(model, options);
  if (!asStored)
    fail(asStored.error());
  options.promoteToFloat64 = true;
  auto graph = importModel(model, options);
  if (!graph)
    fail(graph.error());
  // What a division of integers gives.
  at::set_default_dtype(caffe2::TypeMeta::Make<double>());
  const NamedTensors leaves = readLeaves(model, *graph, *asStored);
  const Step step = replayStep(*graph, leaves, readTensors(data), /*seed=*/7);
  if (!written->empty())
    return write(*graph, step, output);
  return compare(*graph, step, readTensors(reference));
}

} // namespace

int main(int argc, char **argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception &exception) {
    std::cerr << exception.what() << "\n";
    return 70;
  }
}
