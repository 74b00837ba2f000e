//===- Xml.h - elements and attributes of a small XML file ----------------===//
//
// What NCCL writes: elements, attributes, comments and a declaration; no text,
// no entities beyond the five. Depth and size are bounded.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "core/support/Error.h"

#include <map>
#include <string_view>

namespace monarch::planner {

struct XmlElement {
  std::string name;
  std::map<std::string, std::string> attributes;
  std::vector<XmlElement> children;

  std::string attribute(const std::string &key) const {
    const auto found = attributes.find(key);
    return found == attributes.end() ? "" : found->second;
  }
};

/// MP1106 with the line.
Expected<XmlElement> readXml(std::string_view text);

} // namespace monarch::planner
