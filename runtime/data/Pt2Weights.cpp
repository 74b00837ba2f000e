//===- Pt2Weights.cpp - the weights inside a .pt2 -------------------------===//
//
// See Pt2Weights.h. Nothing of the file is trusted: sizes, strides and offsets
// must stay inside the record.
//
//===----------------------------------------------------------------------===//
#include "runtime/data/Pt2Weights.h"

#include "core/support/Json.h"
#include "core/support/Zip.h"
#include "runtime/data/MemorySources.h"
#include "runtime/support/Tensors.h"

#include <ATen/ops/empty.h>
#include <fmt/format.h>

namespace monarch::runtime {

namespace {

struct Entry {
  std::string record;
  DType type = DType::Float32;
  std::vector<int64_t> shape;
  std::vector<int64_t> strides;
  int64_t offset = 0;
};

class Pt2Weights final : public WeightSource {
public:
  explicit Pt2Weights(ZipArchive archive) : archive(std::move(archive)) {}

  std::optional<Error> readTable(const std::string &record,
                                 const std::string &folder) {
    auto text = archive.read(record);
    if (!text)
      return text.error();
    std::string where = archive.path() + ": " + record;
    auto json = parseJson(*text, where);
    if (!json)
      return json.error();
    JsonDocument document{*json, where};
    for (const auto &[name, value] : JsonValue(document)["config"].fields()) {
      JsonValue meta = value["tensor_meta"];
      Entry entry;
      entry.record = folder + value["path_name"].string();
      if (value["use_pickle"].boolean())
        value.fail("a pickled tensor, which is not opened");
      auto type = dtypeOfExport(meta["dtype"].integer());
      if (!type)
        meta.fail("an element type that is not supported");
      else
        entry.type = *type;
      for (const JsonValue &size : meta["sizes"].elements())
        entry.shape.push_back(size["as_int"].integer(0, INT64_MAX));
      for (const JsonValue &stride : meta["strides"].elements())
        entry.strides.push_back(stride["as_int"].integer(0, INT64_MAX));
      entry.offset = meta["storage_offset"]["as_int"].integer(0, INT64_MAX);
      if (entry.strides.size() != entry.shape.size())
        meta.fail("strides for another number of dims");
      entries.emplace(name, std::move(entry));
    }
    return document.error;
  }

  Expected<at::Tensor> read(const WeightRequest &request) override {
    for (const std::string &name : request.names) {
      auto found = entries.find(name);
      if (found == entries.end())
        continue;
      const Entry &entry = found->second;
      if (entry.shape != request.shape ||
          isFloating(entry.type) != isFloating(request.type))
        return missingWeight(
            request,
            fmt::format("the model holds {} {}, the program wants {} "
                        "{}",
                        toString(entry.type), shapeText(entry.shape),
                        toString(request.type), shapeText(request.shape)));
      return readEntry(request, entry);
    }
    return missingWeight(request, archive.path() + " has no such tensor");
  }

private:
  Expected<at::Tensor> readEntry(const WeightRequest &request,
                                 const Entry &entry) {
    // Elements from the first to the last that the strides reach.
    int64_t extent = 1, reach = 0;
    bool overflows = false;
    for (size_t dim = 0; dim < entry.shape.size(); ++dim) {
      if (entry.shape[dim] == 0)
        return emptyTensor(request.type, request.shape);
      overflows |= __builtin_mul_overflow(entry.shape[dim] - 1,
                                          entry.strides[dim], &reach);
      overflows |= __builtin_add_overflow(extent, reach, &extent);
    }
    const ZipArchive::Record *record = archive.find(entry.record);
    int64_t width = byteWidth(entry.type), end = 0;
    overflows |= __builtin_add_overflow(extent, entry.offset, &end) ||
                 __builtin_mul_overflow(end, width, &end);
    if (!record || record->size == 0)
      return missingWeight(request,
                           archive.path() + " was exported without weights");
    if (overflows || static_cast<uint64_t>(end) > record->size)
      return missingWeight(request, "the tensor reaches beyond its record in " +
                                        archive.path());
    at::Tensor flat = emptyTensor(entry.type, {extent});
    auto bytes = std::span(static_cast<std::byte *>(flat.mutable_data_ptr()),
                           flat.nbytes());
    if (auto error = archive.readAt(
            entry.record, static_cast<uint64_t>(entry.offset * width), bytes))
      return *error;
    return flat.as_strided(entry.shape, entry.strides)
        .to(scalarTypeOf(request.type))
        .contiguous();
  }

  ZipArchive archive;
  std::map<std::string, Entry> entries;
};

} // namespace

Expected<std::unique_ptr<WeightSource>>
openPt2Weights(const std::string &path) {
  auto archive = ZipArchive::open(path);
  if (!archive)
    return archive.error();
  auto weights = std::make_unique<Pt2Weights>(*archive);
  // "data/weights/model_weights_config.json", by any model name.
  for (const auto &[name, record] : archive->records())
    for (std::string folder : {"data/weights/", "data/constants/"})
      if (name.starts_with(folder) && name.ends_with("_config.json"))
        if (auto error = weights->readTable(name, folder))
          return *error;
  return std::unique_ptr<WeightSource>(std::move(weights));
}

} // namespace monarch::runtime
