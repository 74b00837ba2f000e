//===- Files.cpp ----------------------------------------------------------===//
//
// Standard streams with their errors as values. Temporary names are drawn at
// random and opened exclusively: two writers of one file never share bytes.
//
//===----------------------------------------------------------------------===//
#include "core/support/Files.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <random>
#include <system_error>

namespace monarch {

namespace fs = std::filesystem;

namespace {

Error cannotRead(const std::string &path, std::string_view why) {
  return {"MP1901", ExitCode::BadInput,
          fmt::format("cannot read the file: {}", why), path,
          "check the path and its permissions"};
}

Error cannotWrite(const std::string &path, std::string_view why) {
  return {"MP1902", ExitCode::BadInput, fmt::format("cannot write: {}", why),
          path, "check the folder, its permissions and the free space"};
}

const char *lastError() { return std::strerror(errno); }

std::string temporaryName(const std::string &path) {
  return fmt::format("{}.{:08x}.tmp", path, std::random_device()());
}

} // namespace

Expected<std::string> readFile(const std::string &path, int64_t limitBytes) {
  std::error_code code;
  if (fs::is_directory(path, code))
    return cannotRead(path, "it is a directory");
  errno = 0;
  std::ifstream stream(path, std::ios::binary);
  if (!stream)
    return cannotRead(path, lastError());
  // Pipes have no size: read to the end, whatever the file system says.
  std::string bytes;
  std::string buffer(1 << 16, '\0');
  while (
      stream.read(buffer.data(), static_cast<std::streamsize>(buffer.size())),
      stream.gcount() > 0) {
    bytes.append(buffer, 0, static_cast<size_t>(stream.gcount()));
    if (static_cast<int64_t>(bytes.size()) > limitBytes)
      return cannotRead(path, fmt::format("larger than {} bytes, which no such "
                                          "file is",
                                          limitBytes));
  }
  if (stream.bad())
    return cannotRead(path, lastError());
  return bytes;
}

Expected<TemporaryFile> TemporaryFile::create(const std::string &path) {
  std::string temporary = temporaryName(path);
  std::FILE *stream = std::fopen(temporary.c_str(), "wbx");
  if (!stream)
    return cannotWrite(path, lastError());
  return TemporaryFile(path, temporary, stream);
}

TemporaryFile::TemporaryFile(TemporaryFile &&other) noexcept
    : path(std::move(other.path)), temporary(std::move(other.temporary)),
      stream(std::exchange(other.stream, nullptr)) {}

TemporaryFile::~TemporaryFile() {
  if (stream)
    std::fclose(stream);
  if (!temporary.empty())
    std::remove(temporary.c_str());
}

std::optional<Error> TemporaryFile::write(int64_t offset, const void *data,
                                          int64_t bytes) {
  if (std::fseek(stream, offset, SEEK_SET) != 0 ||
      std::fwrite(data, 1, static_cast<size_t>(bytes), stream) !=
          static_cast<size_t>(bytes))
    return cannotWrite(path, lastError());
  return std::nullopt;
}

std::optional<Error> TemporaryFile::commit() {
  // Buffered bytes may fail to reach the disk as late as here.
  if (std::fclose(std::exchange(stream, nullptr)) != 0 ||
      std::rename(temporary.c_str(), path.c_str()) != 0)
    return cannotWrite(path, lastError());
  temporary.clear();
  return std::nullopt;
}

std::optional<Error> writeFile(const std::string &path,
                               std::string_view bytes) {
  Expected<TemporaryFile> file = TemporaryFile::create(path);
  if (!file)
    return file.error();
  if (auto error =
          file->write(0, bytes.data(), static_cast<int64_t>(bytes.size())))
    return error;
  return file->commit();
}

std::optional<Error>
writeDirectory(const std::string &directory,
               const std::map<std::string, std::string> &files,
               const std::function<bool(const std::string &name)> &mayReplace) {
  std::string path = directory;
  while (path.size() > 1 && path.back() == '/')
    path.pop_back();
  std::error_code code;
  bool exists = fs::exists(path, code);
  if (exists && !fs::is_directory(path, code))
    return cannotWrite(path, "a file of this name is there");
  if (exists)
    for (const auto &entry : fs::directory_iterator(path, code))
      if (std::string name = entry.path().filename().string();
          !mayReplace(name))
        return cannotWrite(
            path, fmt::format("the directory holds another file, {}", name));
  if (code)
    return cannotWrite(path, code.message());

  std::string temporary = temporaryName(path);
  if (fs::create_directories(temporary, code); code)
    return cannotWrite(path, code.message());
  std::optional<Error> error;
  for (const auto &[name, bytes] : files) {
    fs::path file = fs::path(temporary) / name;
    if (!error)
      if (fs::create_directories(file.parent_path(), code); code)
        error = cannotWrite(path, code.message());
    if (!error)
      error = writeFile(file.string(), bytes);
  }
  std::string old = temporary + ".old";
  if (!error && exists)
    if (fs::rename(path, old, code); code)
      error = cannotWrite(path, code.message());
  if (!error)
    if (fs::rename(temporary, path, code); code) {
      error = cannotWrite(path, code.message());
      if (exists)
        fs::rename(old, path, code);
    }
  std::error_code ignored;
  fs::remove_all(error ? temporary : old, ignored);
  return error;
}

} // namespace monarch
