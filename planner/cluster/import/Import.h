//===- Import.h - clusters from what machines say of themselves -----------===//
//
// Each reader takes a text and gives a monarch.cluster/1 document that extends
// a preset: what the text says is laid over the figures of the device, and
// "provenance" names both. What a source does not say (a device's name, the
// rate of a NIC) is asked for or taken from the preset and marked.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "core/support/Json.h"

#include <string_view>

namespace monarch::planner {

/// Device of a product name: "NVIDIA H100 80GB HBM3", "NVIDIA GeForce RTX
/// 4090". MP1105 with near devices.
Expected<std::string> deviceOfProduct(std::string_view product,
                                      double memoryBytes);

/// NCCL_TOPO_DUMP_FILE of one node. `device`: where the compute capability
/// leaves several, "" to be asked.
Expected<Json> importNcclTopology(std::string_view xml,
                                  const std::string &device);

/// `nvidia-smi topo -m` of one node; it does not name its devices.
Expected<Json> importTopologyMatrix(std::string_view text,
                                    const std::string &device);

/// Slurm's topology.conf: switches or blocks and their nodes. `node` is the
/// preset of one node: an instance type, or PER_NODExDEVICE.
Expected<Json> importSlurmTopology(std::string_view text,
                                   const std::string &node);

/// `kubectl get nodes -o json`: labels of the GPU feature discovery, instance
/// types, capacities.
Expected<Json> importKubernetesNodes(std::string_view json);

/// `nvidia-smi --query-gpu=name,memory.total,memory.used,mig.mode.current
/// --format=csv,noheader,nounits` (MiB) and, where there is one, the matrix.
Expected<Json> importSmiQuery(std::string_view csv, std::string_view matrix);

/// A host without GPUs: its processors and memory, from the texts of
/// /proc/cpuinfo and /proc/meminfo.
Expected<Json> importHost(std::string_view cpuInfo, std::string_view memInfo);

/// "node[01-03,7],gpu5" as names; nullopt: not a host list, or too long.
std::optional<std::vector<std::string>> expandHosts(std::string_view text);

} // namespace monarch::planner
