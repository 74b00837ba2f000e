//===- Safetensors.cpp ----------------------------------------------------===//
//
// Reading follows the checks of the format's strict readers: a header of at
// most 100 MB, no duplicate names, offsets that tile the data without holes or
// overlaps, byte counts that follow from type and shape.
//
//===----------------------------------------------------------------------===//
#include "core/support/Safetensors.h"

#include "core/support/Json.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <system_error>

namespace monarch {

namespace {

constexpr int64_t MaxHeaderBytes = 100'000'000;

constexpr std::array<std::pair<std::string_view, DType>, 13> TypeNames = {{
    {"BOOL", DType::Bool},
    {"U8", DType::UInt8},
    {"I8", DType::Int8},
    {"I16", DType::Int16},
    {"I32", DType::Int32},
    {"I64", DType::Int64},
    {"F16", DType::Float16},
    {"BF16", DType::BFloat16},
    {"F32", DType::Float32},
    {"F64", DType::Float64},
    {"F8_E4M3", DType::Float8E4M3},
    {"F8_E5M2", DType::Float8E5M2},
    {"C64", DType::Complex64},
}};

Error malformed(const std::string &path, std::string what) {
  return {"MP1910", ExitCode::BadInput,
          "not a safetensors file: " + std::move(what), path,
          "write it with safetensors.torch.save_file"};
}

/// Bytes of a tensor, nullopt when the count does not fit into 63 bits.
std::optional<int64_t> byteCountOf(DType type,
                                   const std::vector<int64_t> &shape) {
  int64_t bytes = byteWidth(type);
  for (int64_t size : shape)
    if (size < 0 || __builtin_mul_overflow(bytes, size, &bytes))
      return std::nullopt;
  return bytes;
}

/// Offsets are relative to the data here.
SafetensorsTensor readTensor(const std::string &name, JsonValue value) {
  SafetensorsTensor tensor;
  tensor.name = name;
  value.refuseFieldsBeside({"dtype", "shape", "data_offsets"});
  std::string typeName = value["dtype"].string();
  auto type =
      std::find_if(TypeNames.begin(), TypeNames.end(),
                   [&](const auto &row) { return row.first == typeName; });
  if (type == TypeNames.end())
    value.fail("unsupported type \"" + typeName + "\"");
  else
    tensor.type = type->second;
  tensor.shape = value["shape"].integers();
  std::vector<JsonValue> offsets = value["data_offsets"].elements(2);
  tensor.offsetBytes = offsets[0].integer();
  std::optional<int64_t> bytes = byteCountOf(tensor.type, tensor.shape);
  int64_t end = offsets[1].integer();
  if (tensor.offsetBytes < 0 || end < tensor.offsetBytes)
    value.fail("offsets out of order");
  else if (!bytes || end - tensor.offsetBytes != *bytes)
    value.fail("offsets do not match type and shape");
  else
    tensor.bytes = *bytes;
  return tensor;
}

std::optional<Error> readExactly(std::ifstream &stream, const std::string &path,
                                 int64_t offset, int64_t bytes, void *out) {
  stream.clear();
  stream.seekg(offset);
  stream.read(static_cast<char *>(out), bytes);
  if (!stream)
    return malformed(path, "it ends too early");
  return std::nullopt;
}

} // namespace

Expected<SafetensorsFile> SafetensorsFile::open(const std::string &path) {
  std::error_code code;
  int64_t fileBytes =
      static_cast<int64_t>(std::filesystem::file_size(path, code));
  SafetensorsFile file;
  file.file = path;
  if (!code)
    file.stream.open(path, std::ios::binary);
  if (code || !file.stream)
    return Error{"MP1901", ExitCode::BadInput,
                 "cannot read the file: " +
                     (code ? code.message() : std::string("no permission")),
                 path, "check the path and its permissions"};
  std::array<unsigned char, 8> prefix{};
  if (fileBytes < 8)
    return malformed(path, "shorter than 8 bytes");
  if (auto error = readExactly(file.stream, path, 0, 8, prefix.data()))
    return *error;
  uint64_t headerBytes = 0;
  for (size_t i = 0; i < prefix.size(); ++i)
    headerBytes |= uint64_t(prefix[i]) << (8 * i);
  if (prefix[0] == '{' && headerBytes > uint64_t(MaxHeaderBytes))
    return malformed(path, "it is JSON, and holds no tensors");
  if (headerBytes > uint64_t(std::min(MaxHeaderBytes, fileBytes - 8)))
    return malformed(path, "its header would be " +
                               std::to_string(headerBytes) + " bytes");
  std::string header(headerBytes, '\0');
  if (auto error =
          readExactly(file.stream, path, 8, static_cast<int64_t>(headerBytes),
                      header.data()))
    return *error;
  Expected<Json> json = parseJson(header, path);
  if (!json)
    return malformed(path, json.error().what);

  JsonDocument document{
      *json,
      path,
      "MP1910",
      ExitCode::BadInput,
      "write it with safetensors.torch.save_file",
  };
  for (const auto &[name, value] : JsonValue(document).fields()) {
    if (name == "__metadata__")
      for (const auto &[key, text] : value.fields())
        file.texts[key] = text.string();
    else
      file.all.push_back(readTensor(name, value));
  }
  if (document.error)
    return *document.error;
  std::sort(file.all.begin(), file.all.end(), [](const auto &a, const auto &b) {
    return std::pair(a.offsetBytes, a.bytes) <
           std::pair(b.offsetBytes, b.bytes);
  });
  int64_t dataStart = 8 + static_cast<int64_t>(headerBytes);
  int64_t next = 0;
  for (SafetensorsTensor &tensor : file.all) {
    if (tensor.offsetBytes != next)
      return malformed(path, "tensor " + tensor.name +
                                 " overlaps another or leaves a hole");
    next = tensor.offsetBytes + tensor.bytes;
    if (next > fileBytes - dataStart)
      return malformed(path, "tensor " + tensor.name +
                                 " lies past the end of the file");
    tensor.offsetBytes += dataStart;
  }
  if (next != fileBytes - dataStart)
    return malformed(path, "bytes after the last tensor");
  std::sort(file.all.begin(), file.all.end(),
            [](const auto &a, const auto &b) { return a.name < b.name; });
  return file;
}

const SafetensorsTensor *SafetensorsFile::find(std::string_view name) const {
  auto found = std::lower_bound(
      all.begin(), all.end(), name,
      [](const SafetensorsTensor &tensor, std::string_view wanted) {
        return tensor.name < wanted;
      });
  return found != all.end() && found->name == name ? &*found : nullptr;
}

std::optional<Error> SafetensorsFile::read(const SafetensorsTensor &tensor,
                                           int64_t offset, int64_t bytes,
                                           void *out) {
  if (offset < 0 || bytes < 0 || offset > tensor.bytes - bytes)
    return malformed(file, "a read past the end of tensor " + tensor.name);
  return readExactly(stream, file, tensor.offsetBytes + offset, bytes, out);
}

Expected<SafetensorsWriter>
SafetensorsWriter::create(const std::string &path,
                          std::vector<SafetensorsTensor> tensors,
                          const std::map<std::string, std::string> &metadata) {
  auto refuse = [&](std::string what) {
    return Error{"MP1911", ExitCode::Internal, std::move(what), path, ""};
  };
  Json header = Json::object();
  if (!metadata.empty())
    header["__metadata__"] = metadata;
  std::sort(tensors.begin(), tensors.end(), [](const auto &a, const auto &b) {
    int64_t widthA = byteWidth(a.type), widthB = byteWidth(b.type);
    return widthA != widthB ? widthA > widthB : a.name < b.name;
  });
  int64_t next = 0;
  for (SafetensorsTensor &tensor : tensors) {
    std::optional<int64_t> bytes = byteCountOf(tensor.type, tensor.shape);
    if (!bytes || header.contains(tensor.name) || tensor.name == "__metadata__")
      return refuse("tensor " + tensor.name +
                    " has a bad shape or is there twice");
    tensor.offsetBytes = next;
    tensor.bytes = *bytes;
    if (__builtin_add_overflow(next, *bytes, &next))
      return refuse("the tensors are too large");
    auto type =
        std::find_if(TypeNames.begin(), TypeNames.end(), [&](const auto &row) {
          return row.second == tensor.type;
        });
    header[tensor.name] = {{"dtype", type->first},
                           {"shape", tensor.shape},
                           {"data_offsets", {tensor.offsetBytes, next}}};
  }
  std::string text = header.dump();
  text.append((8 - text.size() % 8) % 8, ' ');
  std::string prefix(8, '\0');
  for (size_t i = 0; i < 8; ++i)
    prefix[i] = static_cast<char>(uint64_t(text.size()) >> (8 * i));

  Expected<TemporaryFile> file = TemporaryFile::create(path);
  if (!file)
    return file.error();
  SafetensorsWriter writer(std::move(*file));
  writer.path = path;
  writer.missingBytes = next;
  int64_t dataStart = 8 + static_cast<int64_t>(text.size());
  for (SafetensorsTensor &tensor : tensors)
    tensor.offsetBytes += dataStart;
  std::sort(tensors.begin(), tensors.end(),
            [](const auto &a, const auto &b) { return a.name < b.name; });
  writer.tensors = std::move(tensors);
  text = prefix + text;
  if (auto error =
          writer.file.write(0, text.data(), static_cast<int64_t>(text.size())))
    return *error;
  return writer;
}

std::optional<Error> SafetensorsWriter::write(std::string_view name,
                                              int64_t offset, const void *data,
                                              int64_t bytes) {
  auto found = std::lower_bound(
      tensors.begin(), tensors.end(), name,
      [](const SafetensorsTensor &tensor, std::string_view wanted) {
        return tensor.name < wanted;
      });
  if (found == tensors.end() || found->name != name || offset < 0 ||
      bytes < 0 || offset > found->bytes - bytes)
    return Error{"MP1911", ExitCode::Internal,
                 "a write outside the tensors declared: " + std::string(name),
                 path, ""};
  missingBytes -= bytes;
  return file.write(found->offsetBytes + offset, data, bytes);
}

std::optional<Error> SafetensorsWriter::commit() {
  if (missingBytes != 0)
    return Error{"MP1911", ExitCode::Internal,
                 std::to_string(missingBytes) +
                     " bytes of tensors were not written (or twice)",
                 path, ""};
  return file.commit();
}

} // namespace monarch
