//===- TemporaryFolder.h - a folder that a test leaves nothing in ---------===//
#pragma once

#include <filesystem>
#include <random>
#include <string>

namespace monarch::test {

/// An empty folder, removed with the object.
class TemporaryFolder {
public:
  TemporaryFolder()
      : folder(std::filesystem::temp_directory_path() /
               ("monarch-test-" + std::to_string(std::random_device()()))) {
    std::filesystem::create_directories(folder);
  }
  TemporaryFolder(const TemporaryFolder &) = delete;
  ~TemporaryFolder() { std::filesystem::remove_all(folder); }

  std::string operator/(const std::string &name) const {
    return (folder / name).string();
  }
  size_t entries() const {
    size_t count = 0;
    for ([[maybe_unused]] const auto &entry :
         std::filesystem::directory_iterator(folder))
      ++count;
    return count;
  }

private:
  std::filesystem::path folder;
};

} // namespace monarch::test
