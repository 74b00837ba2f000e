//===- Xml.cpp - elements and attributes of a small XML file --------------===//
#include "planner/cluster/import/Xml.h"

#include <algorithm>
#include <cctype>
#include <fmt/format.h>

namespace monarch::planner {

namespace {

constexpr int MostDepth = 32;

class Reader {
public:
  explicit Reader(std::string_view text) : text(text) {}

  Expected<XmlElement> run() {
    skip();
    XmlElement root;
    if (!element(root, 0) || (skip(), at < text.size() && problem.empty()))
      return error();
    return root;
  }

private:
  Error error() const {
    const auto line =
        1 + std::count(text.begin(),
                       text.begin() + static_cast<std::ptrdiff_t>(
                                          std::min(at, text.size())),
                       '\n');
    return {"MP1106", ExitCode::BadInput,
            problem.empty() ? "not an XML file" : problem,
            fmt::format("line {}", line),
            "give the file that NCCL_TOPO_DUMP_FILE names"};
  }
  bool fail(std::string what) {
    if (problem.empty())
      problem = std::move(what);
    return false;
  }
  bool starts(std::string_view with) const {
    return text.substr(std::min(at, text.size())).starts_with(with);
  }
  void spaces() {
    while (at < text.size() &&
           std::isspace(static_cast<unsigned char>(text[at])))
      ++at;
  }
  /// White space, comments, declarations, and text, which means nothing here.
  void skip() {
    for (;;) {
      spaces();
      const char *end = starts("<!--") ? "-->" : starts("<?") ? "?>" : nullptr;
      if (!end)
        return;
      const size_t found = text.find(end, at);
      at = found == text.npos ? text.size()
                              : found + std::string_view(end).size();
    }
  }
  std::string name() {
    const size_t begin = at;
    while (at < text.size() &&
           (std::isalnum(static_cast<unsigned char>(text[at])) ||
            text[at] == '_' || text[at] == '-' || text[at] == ':'))
      ++at;
    return std::string(text.substr(begin, at - begin));
  }
  bool attribute(XmlElement &element) {
    const std::string key = name();
    spaces();
    if (key.empty() || !starts("="))
      return fail("an attribute without a value in <" + element.name + ">");
    ++at;
    spaces();
    const char quote = at < text.size() ? text[at] : ' ';
    if (quote != '"' && quote != '\'')
      return fail("a value without quotes in <" + element.name + ">");
    const size_t end = text.find(quote, at + 1);
    if (end == text.npos)
      return fail("a value that does not end in <" + element.name + ">");
    element.attributes[key] = std::string(text.substr(at + 1, end - at - 1));
    at = end + 1;
    return true;
  }
  bool element(XmlElement &element, int depth) {
    if (depth > MostDepth)
      return fail("more levels than a topology has");
    if (!starts("<"))
      return fail("no element where one should begin");
    ++at;
    element.name = name();
    if (element.name.empty())
      return fail("an element without a name");
    for (spaces(); at < text.size() && !starts("/") && !starts(">"); spaces())
      if (!attribute(element))
        return false;
    if (starts("/>")) {
      at += 2;
      return true;
    }
    if (!starts(">"))
      return fail("<" + element.name + "> does not end");
    ++at;
    for (skip(); !starts("</"); skip()) {
      if (at >= text.size())
        return fail("<" + element.name + "> is not closed");
      element.children.emplace_back();
      if (!this->element(element.children.back(), depth + 1))
        return false;
    }
    at += 2;
    if (name() != element.name)
      return fail("<" + element.name + "> is closed by another name");
    spaces();
    if (!starts(">"))
      return fail("</" + element.name + " does not end");
    ++at;
    return true;
  }

  std::string_view text;
  size_t at = 0;
  std::string problem;
};

} // namespace

Expected<XmlElement> readXml(std::string_view text) {
  return Reader(text).run();
}

} // namespace monarch::planner
