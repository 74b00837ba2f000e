//===- Files.h - whole files, written all or not at all -------------------===//
//
// Writes go to a temporary name in the same folder and are renamed when every
// byte is written: a failure or a kill leaves the old file, never half a new
// one.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "core/support/Error.h"

#include <cstdint>
#include <cstdio>
#include <functional>
#include <map>
#include <string>
#include <string_view>

namespace monarch {

/// MP1901 when it cannot be read or is larger than the limit.
Expected<std::string> readFile(const std::string &path,
                               int64_t limitBytes = int64_t(1) << 30);

/// MP1902 when it cannot be written.
std::optional<Error> writeFile(const std::string &path, std::string_view bytes);

/// Makes a directory of these files (name to bytes; names may have folders in
/// them). A directory that is there
/// is replaced if `mayReplace` agrees to every name in it, else refused.
std::optional<Error>
writeDirectory(const std::string &path,
               const std::map<std::string, std::string> &files,
               const std::function<bool(const std::string &name)> &mayReplace);

/// A file under a temporary name until `commit`; removed if that never comes.
class TemporaryFile {
public:
  static Expected<TemporaryFile> create(const std::string &path);
  TemporaryFile(TemporaryFile &&other) noexcept;
  TemporaryFile &operator=(TemporaryFile &&other) = delete;
  ~TemporaryFile();

  std::optional<Error> write(int64_t offset, const void *data, int64_t bytes);
  std::optional<Error> commit();

private:
  TemporaryFile(std::string path, std::string temporary, std::FILE *stream)
      : path(std::move(path)), temporary(std::move(temporary)), stream(stream) {
  }
  std::string path;
  std::string temporary;
  std::FILE *stream = nullptr;
};

} // namespace monarch
