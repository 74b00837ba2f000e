//===- ZipTest.cpp --------------------------------------------------------===//
//
// Archives as PyTorch writes them, and every way to cut or bend one.
//
//===----------------------------------------------------------------------===//
#include "core/support/Zip.h"
#include "test/support/TemporaryFolder.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <fstream>
#include <random>
#include <vector>

using namespace monarch;

namespace {

struct Content {
  std::string name;
  std::string bytes;
};

void put(std::string &out, uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i)
    out += static_cast<char>(value >> (8 * i));
}

std::string header(uint32_t signature, const Content &content, bool isCentral,
                   bool isZip64, uint64_t offset, uint16_t method) {
  std::string out;
  put(out, signature, 4);
  if (isCentral)
    put(out, 45, 2);
  put(out, 45, 2); // version needed
  put(out, 0, 2);  // flags
  put(out, method, 2);
  put(out, 0, 4); // time
  put(out, crc32(content.bytes), 4);
  const uint64_t size = content.bytes.size();
  put(out, isZip64 ? 0xffffffff : size, 4);
  put(out, isZip64 ? 0xffffffff : size, 4);
  std::string extra;
  if (isZip64) {
    put(extra, 1, 2);
    put(extra, isCentral ? 24 : 16, 2);
    put(extra, size, 8);
    put(extra, size, 8);
    if (isCentral)
      put(extra, offset, 8);
  }
  put(out, content.name.size(), 2);
  put(out, extra.size(), 2);
  if (isCentral) {
    put(out, 0, 2 + 2 + 2 + 4); // comment, disk, attributes
    put(out, isZip64 ? 0xffffffff : offset, 4);
  }
  return out + content.name + extra;
}

std::string zip(const std::vector<Content> &contents, bool isZip64 = false,
                uint16_t method = 0) {
  std::string out, directory;
  for (const Content &content : contents) {
    directory += header(0x02014b50, content, true, isZip64, out.size(), method);
    out += header(0x04034b50, content, false, isZip64, 0, method);
    out += content.bytes;
  }
  const uint64_t place = out.size();
  out += directory;
  if (isZip64) {
    const uint64_t end64 = out.size();
    put(out, 0x06064b50, 4);
    put(out, 44, 8);
    put(out, 45, 2);
    put(out, 45, 2);
    put(out, 0, 8);
    put(out, contents.size(), 8);
    put(out, contents.size(), 8);
    put(out, directory.size(), 8);
    put(out, place, 8);
    put(out, 0x07064b50, 4);
    put(out, 0, 4);
    put(out, end64, 8);
    put(out, 1, 4);
  }
  put(out, 0x06054b50, 4);
  put(out, 0, 4);
  put(out, contents.size(), 2);
  put(out, contents.size(), 2);
  put(out, directory.size(), 4);
  put(out, isZip64 ? 0xffffffff : place, 4);
  put(out, 0, 2);
  return out;
}

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

TEST_CASE("compressed and repeated records are refused") {
  Folder folder;
  CHECK(ZipArchive::open(folder.write(zip(TwoRecords, false, 8))).error().id ==
        "MP1002");
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
