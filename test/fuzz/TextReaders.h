//===- TextReaders.h - small texts that users give ------------------------===//
//
// What machines say of themselves, config.json, rule files, sizes of exported
// programs and layout plans, each as a reader of Readers.h.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "core/support/Error.h"

#include <string_view>

namespace monarch::test {

std::optional<Error> readConfig(std::string_view bytes);
std::optional<Error> readTopologyXml(std::string_view bytes);
std::optional<Error> readTopologyMatrix(std::string_view bytes);
std::optional<Error> readSlurmTopology(std::string_view bytes);
std::optional<Error> readKubernetesNodes(std::string_view bytes);
std::optional<Error> readSmiQuery(std::string_view bytes);
std::optional<Error> readRules(std::string_view bytes);
std::optional<Error> readSizeExpression(std::string_view bytes);
std::optional<Error> readLayoutOfPlan(std::string_view bytes);

} // namespace monarch::test
