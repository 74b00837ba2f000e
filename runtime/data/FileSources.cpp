//===- FileSources.cpp - weights and batches from safetensors -------------===//
//
// See FileSources.h.
//
//===----------------------------------------------------------------------===//
#include "runtime/data/FileSources.h"

#include "core/support/Files.h"
#include "core/support/Json.h"
#include "core/support/Safetensors.h"
#include "runtime/data/MemorySources.h"
#include "runtime/data/Pt2Weights.h"
#include "runtime/data/ScriptWeights.h"
#include "runtime/support/Tensors.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <limits>
#include <set>

namespace monarch::runtime {

namespace {

namespace fs = std::filesystem;

/// Begins as a ZIP archive does, whatever its name.
bool isArchive(const std::string &path) {
  char head[2] = {};
  return std::ifstream(path, std::ios::binary).read(head, 2) &&
         head[0] == 'P' && head[1] == 'K';
}

/// Both floating, or both integers.
bool isConvertible(DType from, DType to) {
  return from == to || (isFloating(from) == isFloating(to) &&
                        from != DType::Bool && to != DType::Bool);
}

/// Bytes [offset, ...) of a tensor as one of this shape.
Expected<at::Tensor> readTensor(SafetensorsFile &file,
                                const SafetensorsTensor &tensor, int64_t offset,
                                const std::vector<int64_t> &shape) {
  at::Tensor read = emptyTensor(tensor.type, shape);
  if (auto error =
          file.read(tensor, offset, static_cast<int64_t>(read.nbytes()),
                    read.mutable_data_ptr()))
    return *error;
  return read;
}

/// Every file that the folder's index names is there; all that are not, at
/// once.
std::optional<Error> checkIndex(const std::string &folder) {
  std::set<std::string> missing;
  std::error_code ignored;
  std::string first;
  for (const auto &entry : fs::directory_iterator(folder, ignored)) {
    if (!entry.path().string().ends_with(".safetensors.index.json"))
      continue;
    const std::string path = entry.path().string();
    const auto text = readFile(path);
    if (!text)
      return text.error();
    const auto json = parseJson(*text, path);
    if (!json)
      return json.error();
    JsonDocument document{*json, path, "MP4010"};
    document.fix = "download the index again";
    for (const auto &[name, file] : JsonValue(document)["weight_map"].fields())
      if (const std::string shard = file.string();
          !document.error && !fs::exists(fs::path(folder) / shard, ignored)) {
        missing.insert(shard);
        first = first.empty() ? name : first;
      }
    if (document.error)
      return document.error;
  }
  if (missing.empty())
    return std::nullopt;
  return Error{"MP4010", ExitCode::BadInput,
               fmt::format("the index names files that are not there: {} ({} "
                           "and others)",
                           fmt::join(missing, ", "), first),
               folder, "download the missing files"};
}

class SafetensorsWeights final : public WeightSource {
public:
  std::optional<Error> add(const std::string &path) {
    auto file = SafetensorsFile::open(path);
    if (!file)
      return file.error();
    files.push_back(std::move(*file));
    return std::nullopt;
  }

  Expected<at::Tensor> read(const WeightRequest &request) override {
    for (const std::string &name : request.names)
      for (SafetensorsFile &file : files)
        if (const SafetensorsTensor *found = file.find(name)) {
          if (found->shape != request.shape ||
              !isConvertible(found->type, request.type))
            return missingWeight(
                request,
                fmt::format("{} holds {} {}, the program wants {} {}",
                            file.path(), toString(found->type),
                            shapeText(found->shape), toString(request.type),
                            shapeText(request.shape)));
          auto tensor = readTensor(file, *found, 0, request.shape);
          if (!tensor)
            return tensor;
          return tensor->to(scalarTypeOf(request.type));
        }
    return missingWeight(request, "no tensor of this name");
  }

private:
  std::vector<SafetensorsFile> files;
};

class SafetensorsBatches final : public FileBatches {
public:
  explicit SafetensorsBatches(SafetensorsFile file) : file(std::move(file)) {}

  int64_t steps(const Program &program) const override {
    int64_t fewest = std::numeric_limits<int64_t>::max();
    for (const Role &role : program.roles)
      for (const ProgramInput &input : role.inputs) {
        const SafetensorsTensor *tensor = file.find(input.name);
        const int64_t dim = tensor ? stackedDim(input, *tensor) : -1;
        if (dim < 0 || static_cast<int64_t>(tensor->shape.size()) <= dim)
          continue;
        int64_t rowsPerStep =
            input.structure[dim].size * (program.globalRows / program.unitRows);
        fewest = std::min(fewest, tensor->shape[dim] / rowsPerStep);
      }
    return fewest;
  }

  Expected<at::Tensor> read(const BatchRequest &request) override {
    const SafetensorsTensor *tensor = file.find(request.input.name);
    if (!tensor)
      return missingBatch(request,
                          fmt::format("{} has no such tensor", file.path()));
    if (!isConvertible(tensor->type, request.type))
      return missingBatch(
          request, fmt::format("the tensor is {}, the program wants {}",
                               toString(tensor->type), toString(request.type)));
    const int64_t rowDim = stackedDim(request.input, *tensor);
    std::vector<int64_t> stored = tensor->shape;
    bool fits = stored.size() == request.shape.size();
    int64_t rows = 0, first = 0;
    if (fits && rowDim >= 0) {
      rows = request.shape[rowDim];
      first = (request.step * request.unitsPerStep + request.unit) * rows;
      if (first + rows > stored[rowDim])
        return missingBatch(request, "the data ends before this step");
      stored[rowDim] = rows;
    }
    if (!fits || stored != request.shape)
      return missingBatch(
          request,
          fmt::format("the tensor is {}, a unit of it must be {}",
                      shapeText(tensor->shape), shapeText(request.shape)));
    Expected<at::Tensor> read = [&] {
      if (rowDim > 0)
        return readTensor(file, *tensor, 0, tensor->shape);
      int64_t bytesPerRow = rowDim < 0 || tensor->shape[0] == 0
                                ? 0
                                : tensor->bytes / tensor->shape[0];
      return readTensor(file, *tensor, first * bytesPerRow, request.shape);
    }();
    if (!read)
      return read;
    if (rowDim > 0)
      *read = read->narrow(rowDim, first, rows).contiguous();
    return read->to(scalarTypeOf(request.type));
  }

private:
  /// The dim along which the tensor holds one unit after the other; -1 where
  /// there is none. What has no rows may be there once, or once a unit.
  static int64_t stackedDim(const ProgramInput &input,
                            const SafetensorsTensor &tensor) {
    if (input.rowDim >= 0 || input.structure.empty() || tensor.shape.empty())
      return input.rowDim;
    const int64_t unit = input.structure[0].size, there = tensor.shape[0];
    return unit > 0 && there > unit && there % unit == 0 ? 0 : -1;
  }

  SafetensorsFile file;
};

} // namespace

Expected<std::unique_ptr<WeightSource>> openWeights(const std::string &path) {
  std::error_code ignored;
  if (fs::path(path).extension() == ".pt2")
    return openPt2Weights(path);
  if (isArchive(path))
    return openScriptWeights(path);
  auto weights = std::make_unique<SafetensorsWeights>();
  std::vector<std::string> paths{path};
  if (fs::is_directory(path, ignored)) {
    paths.clear();
    for (const auto &entry : fs::directory_iterator(path, ignored))
      if (entry.path().extension() == ".safetensors")
        paths.push_back(entry.path());
    std::sort(paths.begin(), paths.end());
    if (auto error = checkIndex(path))
      return *error;
    if (paths.empty())
      return Error{"MP4010", ExitCode::BadInput,
                   "no .safetensors file in the folder", path,
                   "give a folder of safetensors, a file, or the model"};
  }
  for (const std::string &file : paths)
    if (auto error = weights->add(file))
      return *error;
  return std::unique_ptr<WeightSource>(std::move(weights));
}

Expected<std::unique_ptr<FileBatches>>
FileBatches::open(const std::string &path) {
  auto file = SafetensorsFile::open(path);
  if (!file)
    return file.error();
  return std::unique_ptr<FileBatches>(
      std::make_unique<SafetensorsBatches>(std::move(*file)));
}

} // namespace monarch::runtime
