//===- SourceLines.cpp - torch's source_range_serialization ---------------===//
//
// (FORMAT_WITH_STRING_TABLE, texts, ((offset, range, tag), ...)); a range is
// ((pieces of text, file, first line), start, end) with texts as indices.
// Scripts have the text of a file; traces have the Python stack as text:
// "/a/model.py(12): forward".
//
//===----------------------------------------------------------------------===//
#include "runtime/script/SourceLines.h"

#include <algorithm>

#include <torch/csrc/jit/serialization/pickle.h>
#include <torch/csrc/jit/serialization/source_range_serialization.h>

namespace monarch {

namespace {

std::string baseName(const std::string &path) {
  return path.substr(path.find_last_of('/') + 1);
}

/// "model.py:12" of the first line of a Python stack; "" where it is none.
std::string lineOfStack(const std::string &text) {
  const std::string first = text.substr(0, text.find('\n'));
  const size_t close = first.find("): ");
  const size_t open = first.rfind('(', close);
  if (close == std::string::npos || open == std::string::npos)
    return "";
  const std::string number = first.substr(open + 1, close - open - 1);
  if (number.empty() ||
      number.find_first_not_of("0123456789") != std::string::npos)
    return "";
  return baseName(first.substr(0, open)) + ":" + number;
}

std::string lineOf(const c10::IValue &range,
                   const std::vector<std::string> &texts) {
  const auto &parts = range.toTupleRef().elements();
  const auto &source = parts.at(0).toTupleRef().elements();
  const auto textAt = [&](int64_t index) -> const std::string & {
    return texts.at(static_cast<size_t>(index));
  };
  std::string text;
  for (const c10::IValue &piece : source.at(0).toListRef())
    text += textAt(piece.toInt());
  if (std::string line = lineOfStack(text); !line.empty())
    return line;
  const std::string &file = textAt(source.at(1).toInt());
  const auto start = static_cast<size_t>(parts.at(1).toInt());
  if (file.empty() || start > text.size())
    return "";
  const auto lines = std::count(
      text.begin(), text.begin() + static_cast<std::ptrdiff_t>(start), '\n');
  return baseName(file) + ":" + std::to_string(source.at(2).toInt() + lines);
}

} // namespace

std::vector<std::pair<size_t, std::string>>
readSourceLines(const std::string &pickle) {
  const c10::IValue root = torch::jit::unpickle(pickle.data(), pickle.size(),
                                                torch::jit::TypeResolver());
  const auto &parts = root.toTupleRef().elements();
  if (parts.size() != 3 || !parts[0].isString() ||
      parts[0].toStringRef() != torch::jit::kFormatWithStringTable)
    return {};
  std::vector<std::string> texts;
  for (const c10::IValue &text : parts[1].toTupleRef().elements())
    texts.push_back(text.toStringRef());
  std::vector<std::pair<size_t, std::string>> lines;
  for (const c10::IValue &entry : parts[2].toTupleRef().elements()) {
    const auto &fields = entry.toTupleRef().elements();
    lines.emplace_back(static_cast<size_t>(fields.at(0).toInt()),
                       lineOf(fields.at(1), texts));
  }
  std::stable_sort(
      lines.begin(), lines.end(),
      [](const auto &a, const auto &b) { return a.first < b.first; });
  return lines;
}

} // namespace monarch
