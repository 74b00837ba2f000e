//===- Zip.cpp - PKWARE APPNOTE 6.3, the part that PyTorch uses -----------===//
//
// End record -> (ZIP64 end record) -> central directory -> local headers, whose
// name and extra lengths alone say where data begins.
//
//===----------------------------------------------------------------------===//
#include "core/support/Zip.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <vector>

namespace monarch {

struct ZipArchive::File {
  uint64_t size = 0;
  std::ifstream stream;
  /// Ranks that are threads read one archive; a stream has one position.
  std::mutex mutex;

  /// False past the end of the file or when the disk fails.
  bool read(uint64_t offset, void *into, uint64_t count) {
    if (offset > size || count > size - offset)
      return false;
    std::lock_guard lock(mutex);
    stream.clear();
    stream.seekg(static_cast<std::streamoff>(offset));
    stream.read(static_cast<char *>(into), static_cast<std::streamsize>(count));
    return stream.good();
  }
};

namespace {

constexpr uint32_t LocalHeader = 0x04034b50;
constexpr uint32_t CentralHeader = 0x02014b50;
constexpr uint32_t EndRecord = 0x06054b50;
constexpr uint32_t Zip64EndRecord = 0x06064b50;
constexpr uint32_t Zip64Locator = 0x07064b50;
constexpr uint16_t Zip64Extra = 1;
/// An archive with a larger directory holds more than any model has tensors.
constexpr uint64_t DirectoryLimitBytes = uint64_t{256} << 20;

Error damaged(const std::string &path, std::string what) {
  return {"MP1003", ExitCode::BadInput,
          "the archive is damaged or cut short: " + std::move(what), path,
          "copy or export the file again"};
}

/// A little-endian reader that stops at the end of its bytes.
class Cursor {
public:
  explicit Cursor(std::string_view bytes) : bytes(bytes) {}

  template <typename T> T take() {
    T value = 0;
    std::string_view field = takeBytes(sizeof(T));
    for (size_t i = field.size(); i-- > 0;)
      value = static_cast<T>(value << (sizeof(T) > 1 ? 8 : 0)) |
              static_cast<unsigned char>(field[i]);
    return value;
  }
  std::string_view takeBytes(size_t count) {
    if (count > bytes.size()) {
      failed = true;
      bytes = {};
      return {};
    }
    std::string_view field = bytes.substr(0, count);
    bytes.remove_prefix(count);
    return field;
  }
  bool atEnd() const { return bytes.empty(); }
  bool hasFailed() const { return failed; }

private:
  std::string_view bytes;
  bool failed = false;
};

struct Directory {
  uint64_t offset = 0;
  uint64_t size = 0;
  uint64_t count = 0;
};

struct Entry {
  std::string name;
  uint16_t flags = 0, method = 0;
  uint32_t crc32 = 0;
  uint64_t storedSize = 0, size = 0, headerOffset = 0;
};

/// The directory's place from the last record of the file; with ZIP64 from the
/// larger record that a locator just before it points to.
template <typename File> std::optional<Directory> findDirectory(File &file) {
  constexpr uint64_t EndSize = 22, LocatorSize = 20, Zip64Size = 56;
  uint64_t tailSize = std::min<uint64_t>(file.size, EndSize + 0xffff);
  std::string tail(tailSize, '\0');
  if (!file.read(file.size - tailSize, tail.data(), tailSize))
    return std::nullopt;
  const std::string signature = "PK\x05\x06";
  size_t at = tail.rfind(signature);
  if (at == std::string::npos || tailSize - at < EndSize)
    return std::nullopt;
  Cursor end(std::string_view(tail).substr(at));
  if (end.take<uint32_t>() != EndRecord)
    return std::nullopt;
  end.takeBytes(6);
  Directory directory;
  directory.count = end.take<uint16_t>();
  directory.size = end.take<uint32_t>();
  directory.offset = end.take<uint32_t>();

  uint64_t endOffset = file.size - tailSize + at;
  std::string text(LocatorSize, '\0');
  if (endOffset < LocatorSize ||
      !file.read(endOffset - LocatorSize, text.data(), LocatorSize))
    return directory;
  Cursor locator(text);
  if (locator.take<uint32_t>() != Zip64Locator)
    return directory;
  locator.takeBytes(4);
  std::string large(Zip64Size, '\0');
  if (!file.read(locator.take<uint64_t>(), large.data(), Zip64Size))
    return std::nullopt;
  Cursor end64(large);
  if (end64.take<uint32_t>() != Zip64EndRecord)
    return std::nullopt;
  end64.takeBytes(28);
  directory.count = end64.take<uint64_t>();
  directory.size = end64.take<uint64_t>();
  directory.offset = end64.take<uint64_t>();
  return directory;
}

/// Sizes of 0xffffffff stand in the ZIP64 extra field, in this order.
void takeZip64(std::string_view extra, Entry &entry) {
  Cursor fields(extra);
  while (!fields.atEnd() && !fields.hasFailed()) {
    uint16_t id = fields.take<uint16_t>();
    std::string_view body = fields.takeBytes(fields.take<uint16_t>());
    if (id != Zip64Extra)
      continue;
    Cursor sizes(body);
    for (uint64_t *field :
         {&entry.size, &entry.storedSize, &entry.headerOffset})
      if (*field == 0xffffffff)
        *field = sizes.take<uint64_t>();
  }
}

Entry takeEntry(Cursor &directory) {
  Entry entry;
  directory.takeBytes(4);
  entry.flags = directory.take<uint16_t>();
  entry.method = directory.take<uint16_t>();
  directory.takeBytes(4);
  entry.crc32 = directory.take<uint32_t>();
  entry.storedSize = directory.take<uint32_t>();
  entry.size = directory.take<uint32_t>();
  uint16_t nameSize = directory.take<uint16_t>();
  uint16_t extraSize = directory.take<uint16_t>();
  uint16_t commentSize = directory.take<uint16_t>();
  directory.takeBytes(8);
  entry.headerOffset = directory.take<uint32_t>();
  entry.name = directory.takeBytes(nameSize);
  takeZip64(directory.takeBytes(extraSize), entry);
  directory.takeBytes(commentSize);
  return entry;
}

/// The folder that every record lies in, with its slash; "" when there is none.
std::string commonRoot(const std::vector<Entry> &entries) {
  if (entries.empty())
    return "";
  size_t slash = entries.front().name.find('/');
  if (slash == std::string::npos)
    return "";
  std::string root = entries.front().name.substr(0, slash + 1);
  for (const Entry &entry : entries)
    if (entry.name.compare(0, root.size(), root) != 0)
      return "";
  return root;
}

} // namespace

Expected<ZipArchive> ZipArchive::open(const std::string &path) {
  ZipArchive archive;
  archive.filePath = path;
  archive.file = std::make_shared<File>();
  File &file = *archive.file;
  std::error_code error;
  if (std::filesystem::exists(path, error) &&
      !std::filesystem::is_regular_file(path, error))
    return Error{"MP1001", ExitCode::BadInput, "not a file", path,
                 "give the path of a model file"};
  errno = 0;
  file.stream.open(path, std::ios::binary);
  file.size = std::filesystem::file_size(path, error);
  if (!file.stream || error)
    return Error{"MP1001", ExitCode::BadInput,
                 fmt::format("cannot open the file: {}",
                             error ? error.message() : std::strerror(errno)),
                 path, "check the path and its permissions"};

  auto place = findDirectory(file);
  if (!place)
    return damaged(
        path, fmt::format("{} bytes without the directory that ends an archive",
                          file.size));
  if (place->size > DirectoryLimitBytes)
    return damaged(path, "its directory is too large");
  std::string bytes(std::min(place->size, file.size), '\0');
  if (!file.read(place->offset, bytes.data(), place->size))
    return damaged(path, "its directory lies outside the file");

  Cursor directory(bytes);
  std::vector<Entry> entries;
  for (uint64_t i = 0; i < place->count; ++i) {
    bool isEntry = directory.take<uint32_t>() == CentralHeader;
    entries.push_back(takeEntry(directory));
    if (!isEntry || directory.hasFailed())
      return damaged(path, "its directory is not readable");
  }
  const std::string root = commonRoot(entries);
  for (const Entry &entry : entries) {
    std::string header(30, '\0');
    if (!file.read(entry.headerOffset, header.data(), header.size()))
      return damaged(path, "record " + entry.name + " lies outside the file");
    Cursor local(header);
    if (local.take<uint32_t>() != LocalHeader)
      return damaged(path, "record " + entry.name + " has no header");
    local.takeBytes(22);
    uint64_t nameSize = local.take<uint16_t>();
    uint64_t extraSize = local.take<uint16_t>();
    Record record;
    record.size = entry.size;
    record.offset = entry.headerOffset + header.size() + nameSize + extraSize;
    record.crc32 = entry.crc32;
    record.isStored = entry.method == 0 && (entry.flags & 1) == 0 &&
                      entry.storedSize == entry.size;
    if (record.offset > file.size ||
        entry.storedSize > file.size - record.offset)
      return damaged(path, "record " + entry.name + " lies outside the file");
    if (!archive.byName.emplace(entry.name.substr(root.size()), record).second)
      return damaged(path, "it holds record " + entry.name + " twice");
  }
  return archive;
}

const ZipArchive::Record *ZipArchive::find(std::string_view name) const {
  auto found = byName.find(std::string(name));
  return found == byName.end() ? nullptr : &found->second;
}

Expected<const ZipArchive::Record *>
ZipArchive::findStored(const std::string &name) const {
  const Record *record = find(name);
  if (!record)
    return damaged(filePath, "record " + name + " is missing");
  if (!record->isStored)
    return Error{"MP1002", ExitCode::BadInput,
                 "record " + name + " is compressed or encrypted", filePath,
                 "give the file as torch.export.save wrote it"};
  return record;
}

Expected<std::string> ZipArchive::read(const std::string &name,
                                       uint64_t limitBytes) const {
  auto found = findStored(name);
  if (!found)
    return found.error();
  const Record &record = **found;
  if (record.size > limitBytes)
    return damaged(filePath, fmt::format("record {} has {} bytes; at most {} "
                                         "are read",
                                         name, record.size, limitBytes));
  std::string bytes(record.size, '\0');
  if (!file->read(record.offset, bytes.data(), bytes.size()))
    return damaged(filePath, "record " + name + " cannot be read");
  if (crc32(bytes) != record.crc32)
    return damaged(filePath, "record " + name + " fails its checksum");
  return bytes;
}

std::optional<Error> ZipArchive::readAt(const std::string &name,
                                        uint64_t offset,
                                        std::span<std::byte> bytes) const {
  auto found = findStored(name);
  if (!found)
    return found.error();
  const Record &record = **found;
  if (offset > record.size || bytes.size() > record.size - offset)
    return damaged(filePath,
                   fmt::format("record {} has {} bytes, too few for {} at {}",
                               name, record.size, bytes.size(), offset));
  if (!file->read(record.offset + offset, bytes.data(), bytes.size()))
    return damaged(filePath, "record " + name + " cannot be read");
  return std::nullopt;
}

uint32_t crc32(std::string_view bytes) {
  static const auto table = [] {
    std::array<uint32_t, 256> rows;
    for (uint32_t i = 0; i < rows.size(); ++i) {
      uint32_t row = i;
      for (int bit = 0; bit < 8; ++bit)
        row = (row & 1) != 0 ? 0xedb88320 ^ (row >> 1) : row >> 1;
      rows[i] = row;
    }
    return rows;
  }();
  uint32_t crc = 0xffffffff;
  for (char c : bytes)
    crc = table[(crc ^ static_cast<unsigned char>(c)) & 0xff] ^ (crc >> 8);
  return ~crc;
}

} // namespace monarch
