//===- MappedRecords.cpp - mmap -------------------------------------------===//
#include "runtime/script/MappedRecords.h"

#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace monarch {

struct MappedRecords::Mapping {
  std::byte *bytes = nullptr;
  size_t size = 0;
  ~Mapping() {
    if (bytes != nullptr)
      ::munmap(bytes, size);
  }
};

Expected<MappedRecords> MappedRecords::open(const std::string &path) {
  const auto fail = [&] {
    return Error{"MP1001", ExitCode::BadInput,
                 std::string("cannot map the file: ") + std::strerror(errno),
                 path, "check the path and its permissions"};
  };
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0)
    return fail();
  struct stat status = {};
  void *bytes = MAP_FAILED;
  if (::fstat(file, &status) == 0)
    bytes =
        ::mmap(nullptr, static_cast<size_t>(status.st_size),
               PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE, file, 0);
  ::close(file);
  if (bytes == MAP_FAILED)
    return fail();
  MappedRecords records;
  records.mapping = std::make_shared<Mapping>();
  records.mapping->bytes = static_cast<std::byte *>(bytes);
  records.mapping->size = static_cast<size_t>(status.st_size);
  return records;
}

c10::Storage MappedRecords::storage(const ZipArchive::Record &record) const {
  using Holder = std::shared_ptr<Mapping>;
  c10::DataPtr data;
  if (record.size > 0 && record.offset <= mapping->size &&
      record.size <= mapping->size - record.offset)
    data = c10::DataPtr(
        mapping->bytes + record.offset, new Holder(mapping),
        [](void *holder) { delete static_cast<Holder *>(holder); }, c10::kCPU);
  const size_t size = data.get() != nullptr ? record.size : 0;
  return c10::Storage(c10::Storage::use_byte_size_t(), size, std::move(data),
                      /*allocator=*/nullptr, /*resizable=*/false);
}

} // namespace monarch
