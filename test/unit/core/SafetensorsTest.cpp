//===- SafetensorsTest.cpp ------------------------------------------------===//
//
// Round trips, and one broken file for each check of the reader.
//
//===----------------------------------------------------------------------===//
#include "core/support/Safetensors.h"
#include "test/support/TemporaryFolder.h"

#include <catch2/catch.hpp>

using namespace monarch;

namespace {

/// A file of this header and data, opened.
Expected<SafetensorsFile> openOf(const std::string &header,
                                 const std::string &data) {
  test::TemporaryFolder folder;
  std::string bytes(8, '\0');
  for (size_t i = 0; i < 8; ++i)
    bytes[i] = static_cast<char>(header.size() >> (8 * i));
  REQUIRE_FALSE(writeFile(folder / "x.safetensors", bytes + header + data));
  return SafetensorsFile::open(folder / "x.safetensors");
}

void checkRefused(const std::string &header, const std::string &data,
                  const std::string &reason) {
  Expected<SafetensorsFile> file = openOf(header, data);
  REQUIRE_FALSE(file);
  CHECK(file.error().id == "MP1910");
  INFO(file.error().what);
  CHECK(file.error().what.find(reason) != std::string::npos);
}

} // namespace

TEST_CASE("tensors written in pieces and any order read back") {
  test::TemporaryFolder folder;
  std::string path = folder / "w.safetensors";
  Expected<SafetensorsWriter> writer =
      SafetensorsWriter::create(path,
                                {{"b", DType::Bool, {3}},
                                 {"a", DType::Float32, {2, 2}},
                                 {"c", DType::Float64, {}},
                                 {"e", DType::Int64, {0, 5}}},
                                {{"format", "pt"}});
  REQUIRE(writer);
  std::vector<float> a = {1, 2, 3, 4};
  double c = -5;
  REQUIRE_FALSE(writer->write("c", 0, &c, 8));
  REQUIRE_FALSE(writer->write("a", 8, a.data() + 2, 8));
  REQUIRE_FALSE(writer->write("b", 0, "\1\0\1", 3));
  CHECK_FALSE(readFile(path));
  REQUIRE_FALSE(writer->write("a", 0, a.data(), 8));
  REQUIRE_FALSE(writer->commit());

  Expected<SafetensorsFile> file = SafetensorsFile::open(path);
  REQUIRE(file);
  CHECK(file->metadata().at("format") == "pt");
  REQUIRE(file->tensors().size() == 4);
  for (const SafetensorsTensor &tensor : file->tensors())
    CHECK(tensor.offsetBytes % byteWidth(tensor.type) == 0);
  const SafetensorsTensor *tensor = file->find("a");
  REQUIRE(tensor);
  CHECK(tensor->shape == std::vector<int64_t>{2, 2});
  float last[2];
  REQUIRE_FALSE(file->read(*tensor, 8, 8, last));
  CHECK(last[0] == 3);
  CHECK(last[1] == 4);
  CHECK(file->find("e")->bytes == 0);
  CHECK_FALSE(file->find("d"));
  CHECK(file->read(*tensor, 12, 8, last)->id == "MP1910");
}

TEST_CASE("a writer refuses bytes that were not declared or are missing") {
  test::TemporaryFolder folder;
  Expected<SafetensorsWriter> writer = SafetensorsWriter::create(
      folder / "w.safetensors", {{"a", DType::Float32, {2}}});
  REQUIRE(writer);
  float values[2] = {1, 2};
  CHECK(writer->write("a", 4, values, 8)->id == "MP1911");
  CHECK(writer->write("b", 0, values, 8)->id == "MP1911");
  CHECK(writer->commit()->id == "MP1911");
  CHECK(SafetensorsWriter::create(
            folder / "x", {{"a", DType::Bool, {1}}, {"a", DType::Bool, {1}}})
            .error()
            .id == "MP1911");
}

TEST_CASE("a file without tensors is legal") {
  Expected<SafetensorsFile> file = openOf("{}", "");
  REQUIRE(file);
  CHECK(file->tensors().empty());
}

TEST_CASE("malformed safetensors are refused") {
  std::string data(8, 'x');
  checkRefused("not json", data, "not JSON");
  checkRefused("[]", data, "expected an object");
  checkRefused(
      R"({"a": {"dtype": "F4", "shape": [2], "data_offsets": [0, 8]}})", data,
      "unsupported type");
  checkRefused(
      R"({"a": {"dtype": "F32", "shape": [-2], "data_offsets": [0, 8]}})", data,
      "type and shape");
  checkRefused(
      R"({"a": {"dtype": "F32", "shape": [3], "data_offsets": [0, 8]}})", data,
      "type and shape");
  checkRefused(
      R"({"a": {"dtype": "F32", "shape": [4294967296, 4294967296],
                "data_offsets": [0, 0]}})",
      data, "type and shape");
  checkRefused(
      R"({"a": {"dtype": "F32", "shape": [2], "data_offsets": [8, 0]}})", data,
      "out of order");
  checkRefused(
      R"({"a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]},
          "b": {"dtype": "F32", "shape": [1], "data_offsets": [4, 8]}})",
      data, "overlaps");
  checkRefused(
      R"({"a": {"dtype": "F32", "shape": [1], "data_offsets": [4, 8]}})", data,
      "hole");
  checkRefused(
      R"({"a": {"dtype": "F32", "shape": [3], "data_offsets": [0, 12]}})", data,
      "past the end");
  checkRefused(
      R"({"a": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}})", data,
      "after the last");
  checkRefused(
      R"({"a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]},
          "a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}})",
      data, "twice");
}

TEST_CASE("JSON in the place of tensors is called so") {
  test::TemporaryFolder folder;
  REQUIRE_FALSE(writeFile(folder / "graph.json", "{\n  \"schema\": 1}"));
  Expected<SafetensorsFile> file = SafetensorsFile::open(folder / "graph.json");
  REQUIRE_FALSE(file);
  CHECK(file.error().what.find("it is JSON") != std::string::npos);
}

TEST_CASE("a header longer than the file is refused") {
  test::TemporaryFolder folder;
  REQUIRE_FALSE(writeFile(folder / "a", std::string(8, '\x7f')));
  CHECK(SafetensorsFile::open(folder / "a").error().id == "MP1910");
  REQUIRE_FALSE(writeFile(folder / "b", "123"));
  CHECK(SafetensorsFile::open(folder / "b").error().id == "MP1910");
  CHECK(SafetensorsFile::open(folder / "absent").error().id == "MP1901");
  CHECK(SafetensorsFile::open(folder / "").error().id == "MP1901");
}
