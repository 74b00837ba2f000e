//===- Progress.cpp - where a rank is -------------------------------------===//
//
// See Progress.h.
//
//===----------------------------------------------------------------------===//
#include "runtime/exec/Progress.h"

#include <fmt/format.h>

#include <new>
#include <sys/mman.h>
#include <unistd.h>
#include <utility>

namespace monarch::runtime {

/// " -> 'y'", or the named tensor that it reads or changes in place.
static std::string tensorText(const Instruction &instruction,
                              const Role &role) {
  for (const auto &[ids, word] : {std::pair(&instruction.results, "->"),
                                  std::pair(&instruction.operands, "on")})
    for (int32_t id : *ids)
      if (id != None && !role.values[id].name.empty())
        return fmt::format(" {} '{}'", word, role.values[id].name);
  return "";
}

std::string textOf(const Progress &progress, const Role &role) {
  if (progress.step < 1)
    return "before step 1";
  auto kind = static_cast<SegmentKind>(progress.segment.load());
  std::string text =
      fmt::format("step {}, {}", progress.step.load(), toString(kind));
  if (progress.unit >= 0)
    text += fmt::format(" of unit {}", progress.unit.load());
  int32_t index = progress.instruction;
  for (const Segment &segment : role.segments) {
    if (segment.kind != kind || index < 0 ||
        index >= static_cast<int32_t>(segment.instructions.size()))
      continue;
    const Instruction &instruction = segment.instructions[index];
    text += fmt::format(", {}", instruction.kind == InstructionKind::Call
                                    ? std::string_view(instruction.name)
                                    : toString(instruction.kind));
    if (instruction.op != None)
      text += ", " + textOfOp(role, instruction.op);
    text += tensorText(instruction, role);
  }
  return text;
}

static Progress *map(int file) {
  void *page = ::mmap(nullptr, sizeof(Progress), PROT_READ | PROT_WRITE,
                      MAP_SHARED, file, 0);
  return page == MAP_FAILED ? nullptr : static_cast<Progress *>(page);
}

std::optional<SharedProgress> SharedProgress::create() {
  int file = ::memfd_create("monarch-progress", MFD_CLOEXEC);
  if (file < 0)
    return std::nullopt;
  Progress *page = nullptr;
  if (::ftruncate(file, sizeof(Progress)) == 0)
    page = map(file);
  if (!page) {
    ::close(file);
    return std::nullopt;
  }
  return SharedProgress(new (page) Progress, file);
}

std::optional<SharedProgress> SharedProgress::open(int descriptor) {
  if (Progress *page = map(descriptor))
    return SharedProgress(page, descriptor);
  return std::nullopt;
}

SharedProgress::SharedProgress(SharedProgress &&other) noexcept
    : page(std::exchange(other.page, nullptr)),
      file(std::exchange(other.file, -1)) {}

SharedProgress::~SharedProgress() {
  if (page)
    ::munmap(page, sizeof(Progress));
  if (file >= 0)
    ::close(file);
}

} // namespace monarch::runtime
