//===- FilesTest.cpp ------------------------------------------------------===//
//
// Files and directories appear whole or not at all.
//
//===----------------------------------------------------------------------===//
#include "core/support/Files.h"
#include "test/support/TemporaryFolder.h"

#include <catch2/catch.hpp>
#include <fstream>

using namespace monarch;

namespace {

bool anyName(const std::string &) { return true; }

std::string contentOf(const std::string &path) {
  Expected<std::string> content = readFile(path);
  REQUIRE(content);
  return *content;
}

} // namespace

TEST_CASE("a file is written and read back") {
  test::TemporaryFolder folder;
  std::string bytes(100000, 'x');
  bytes[5] = '\0';
  REQUIRE_FALSE(writeFile(folder / "a", bytes));
  CHECK(contentOf(folder / "a") == bytes);
  REQUIRE_FALSE(writeFile(folder / "a", "new"));
  CHECK(contentOf(folder / "a") == "new");
  CHECK(folder.entries() == 1);
}

TEST_CASE("what cannot be read is an error") {
  test::TemporaryFolder folder;
  REQUIRE_FALSE(writeFile(folder / "a", "12345"));
  CHECK(readFile(folder / "absent").error().id == "MP1901");
  CHECK(readFile(folder / "").error().id == "MP1901");
  CHECK(readFile(folder / "a", 4).error().id == "MP1901");
  CHECK(readFile(folder / "a", 5));
}

TEST_CASE("a file that is not committed leaves nothing") {
  test::TemporaryFolder folder;
  {
    Expected<TemporaryFile> file = TemporaryFile::create(folder / "a");
    REQUIRE(file);
    REQUIRE_FALSE(file->write(0, "abc", 3));
    CHECK(folder.entries() == 1);
  }
  CHECK(folder.entries() == 0);
  CHECK(writeFile(folder / "absent/a", "x")->id == "MP1902");
}

TEST_CASE("a directory is written whole and replaced whole") {
  test::TemporaryFolder folder;
  std::string path = folder / "deep/program";
  REQUIRE_FALSE(writeDirectory(path, {{"a", "1"}, {"b", "2"}}, anyName));
  REQUIRE_FALSE(writeDirectory(path + "/", {{"a", "3"}}, anyName));
  CHECK(contentOf(path + "/a") == "3");
  CHECK_FALSE(readFile(path + "/b"));
  CHECK(folder.entries() == 1);
}

TEST_CASE("a directory with foreign files is refused and kept") {
  test::TemporaryFolder folder;
  std::string path = folder / "home";
  REQUIRE_FALSE(writeDirectory(path, {{"thesis", "1"}}, anyName));
  auto mine = [](const std::string &name) { return name == "a"; };
  CHECK(writeDirectory(path, {{"a", "1"}}, mine)->id == "MP1902");
  CHECK(contentOf(path + "/thesis") == "1");
  CHECK(folder.entries() == 1);
  CHECK(writeDirectory(path + "/thesis", {{"a", "1"}}, anyName)->id ==
        "MP1902");
}

TEST_CASE("a directory that fails half way leaves nothing") {
  test::TemporaryFolder folder;
  CHECK(writeDirectory(folder / "p", {{"a", "1"}, {"a/b", "2"}}, anyName)->id ==
        "MP1902");
  CHECK(folder.entries() == 0);
}
