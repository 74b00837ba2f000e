//===- ZipTest.cpp --------------------------------------------------------===//
//
// Archives as PyTorch writes them, and every way to cut or bend one.
//
//===----------------------------------------------------------------------===//
#include "core/support/Zip.h"
#include "test/support/TemporaryFolder.h"
#include "test/support/ZipBytes.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <fstream>
#include <random>
#include <vector>

using namespace monarch;
using test::Content;
using test::zip;

namespace {

class Folder {
public:
  std::string write(const std::string &bytes) const {
    std::ofstream(folder / "a.zip", std::ios::binary) << bytes;
    return folder / "a.zip";
  }

private:
  test::TemporaryFolder folder;
};

const std::vector<Content> TwoRecords = {{"root/a", "hello"},
                                         {"root/b/c", "0123456789"}};

} // namespace

TEST_CASE("records are named below the root folder") {
  Folder folder;
  for (bool isZip64 : {false, true}) {
    CAPTURE(isZip64);
    auto archive = ZipArchive::open(folder.write(zip(TwoRecords, isZip64)));
    REQUIRE(archive);
    CHECK(archive->records().size() == 2);
    CHECK(*archive->read("a") == "hello");
    CHECK(*archive->read("b/c") == "0123456789");
    std::vector<std::byte> middle(4);
    CHECK_FALSE(archive->readAt("b/c", 3, middle));
    CHECK(middle[0] == std::byte{'3'});
    CHECK(middle[3] == std::byte{'6'});
  }
}

TEST_CASE("records without a common root keep their names") {
  Folder folder;
  auto archive =
      ZipArchive::open(folder.write(zip({{"a/x", "1"}, {"b/x", "2"}})));
  REQUIRE(archive);
  CHECK(*archive->read("b/x") == "2");
}

TEST_CASE("reads past a record and of unknown records are refused") {
  Folder folder;
  auto archive = ZipArchive::open(folder.write(zip(TwoRecords)));
  REQUIRE(archive);
  std::vector<std::byte> bytes(8);
  CHECK(archive->readAt("b/c", 3, bytes)->id == "MP1003");
  CHECK(archive->readAt("b/c", ~uint64_t{0}, bytes)->id == "MP1003");
  CHECK(archive->readAt("nothing", 0, bytes)->id == "MP1003");
  CHECK(archive->read("b/c", 9).error().id == "MP1003");
}

TEST_CASE("a record that fails its checksum is refused") {
  Folder folder;
  std::string bytes = zip(TwoRecords);
  bytes[bytes.find("hello")] = 'j';
  auto archive = ZipArchive::open(folder.write(bytes));
  REQUIRE(archive);
  CHECK(archive->read("a").error().id == "MP1003");
  CHECK(archive->read("b/c"));
}

TEST_CASE("compressed records are listed, but not read") {
  Folder folder;
  auto archive = ZipArchive::open(folder.write(zip(TwoRecords, false, 8)));
  REQUIRE(archive);
  const std::string name = archive->records().begin()->first;
  CHECK(archive->read(name).error().id == "MP1002");
  std::byte byte{};
  CHECK(archive->readAt(name, 0, {&byte, 1})->id == "MP1002");
}

TEST_CASE("repeated records are refused") {
  Folder folder;
  CHECK(ZipArchive::open(folder.write(zip({{"r/a", "1"}, {"r/a", "2"}})))
            .error()
            .id == "MP1003");
}

TEST_CASE("an archive cut short anywhere is refused") {
  Folder folder;
  for (bool isZip64 : {false, true}) {
    const std::string whole = zip(TwoRecords, isZip64);
    for (size_t size = 0; size < whole.size(); ++size) {
      CAPTURE(isZip64, size);
      auto archive = ZipArchive::open(folder.write(whole.substr(0, size)));
      REQUIRE_FALSE(archive);
      CHECK(archive.error().code == ExitCode::BadInput);
    }
  }
}

TEST_CASE("flipped bytes are refused or read inside the file") {
  Folder folder;
  std::mt19937 random(7);
  for (int trial = 0; trial < 400; ++trial) {
    std::string bytes = zip(TwoRecords, trial % 2 == 1);
    for (int flips = 0; flips < 3; ++flips)
      bytes[random() % bytes.size()] = static_cast<char>(random());
    auto archive = ZipArchive::open(folder.write(bytes));
    if (!archive)
      continue;
    for (const auto &[name, record] : archive->records()) {
      if (record.isStored)
        CHECK(record.offset + record.size <= bytes.size());
      (void)archive->read(name, 1000);
    }
  }
}

TEST_CASE("a missing file and a folder are named errors") {
  test::TemporaryFolder folder;
  CHECK(ZipArchive::open(folder / "nothing").error().id == "MP1001");
  CHECK(ZipArchive::open(folder / "").error().code == ExitCode::BadInput);
}

TEST_CASE("crc32 of the check text") {
  CHECK(crc32("123456789") == 0xcbf43926);
  CHECK(crc32("") == 0);
}
