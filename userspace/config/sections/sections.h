// SPDX-License-Identifier: Apache-2.0
// The sections of the configuration: what reads each from YAML, and the table of its keys.
#pragma once

#include "config/config.h"
#include "config/flags/command_line.h"
#include "config/sections/section_settings.h"
#include "config/yaml/section.h"

#include <headroom/policy.h>

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace headroom::config {

// The `headroom:` section: what the kubelet has no key for.

std::span<const std::string_view> headroom_keys();
std::span<const std::string_view> metrics_keys();
std::span<const std::string_view> slices_keys();

void read_headroom(const Section& section, const std::string& file, Config& config,
                   ReservedSettings& reserves);

// What is wrong with a value that a flag may give too; absent: nothing.
std::optional<std::string> listen_error(std::string_view listen);
// The key "listen" of a section.
void read_listen(const Section& section, std::string& listen);
std::optional<Mode> parse_mode(std::string_view word);

// The KubeletConfiguration's own keys: those that headroom uses are read, the others are ignored.

// `document` is the whole file. Keys that the kubelet does not have (except `headroom`) are added
// to `warnings`, or to the errors if they look like misspelt keys that headroom uses.
void read_kubelet(const Section& document, const std::string& file, Config& config,
                  EvictionSettings& eviction, ReservedSettings& reserves, PodSizingSettings& sizing,
                  Diagnostics& warnings);

// headroom.kubernetes: where pods come from, and which API server is notified of evictions.

// Below headroom.kubernetes, dotted: "kubelet.url".
std::vector<std::string> kubernetes_keys();
void read_kubernetes(const Section& headroom, Config& config);

// The node as pods are to see it: its taints, how many pods it takes, its name.

// The KubeletConfiguration's own keys: registerWithTaints, maxPods, podsPerCore.
void read_node(const Section& document, Config& config, Diagnostics& warnings);

// Ours, of the `headroom:` section: nodeName, nodeLabels, nodeStatus.
void read_node_identity(const Section& headroom, Config& config);

// The parts of the headroom section that are about disks: `disk:` and `reclaim:`.

std::span<const std::string_view> disk_keys();
std::span<const std::string_view> reclaim_keys();

void read_disk(const Section& headroom, Config& config);
void read_reclaim(const Section& headroom, Config& config);

// headroom.ladder: what is tried before a pod is evicted for memory.

// As their paths below headroom.ladder: "reclaim.margin".
std::vector<std::string> ladder_keys();

void read_ladder(const Section& headroom, Policy& policy);

// headroom.podLimits and headroom.coldMemory: memory of pods at their own limits, and over their
// requests.

// As their paths below headroom: "podLimits.reclaim".
std::vector<std::string> pod_memory_keys();

void read_pod_memory(const Section& headroom, Config& config);

// headroom.cpuBurst: CPU time that pods saved of their own quota.

std::span<const std::string_view> cpu_burst_keys();

void read_cpu_burst(const Section& headroom, Config& config);

// headroom.cpuSuppress: BestEffort and batch pods yield their CPU time to pods with a guarantee.

std::span<const std::string_view> cpu_suppress_keys();

void read_cpu_suppress(const Section& headroom, Config& config);

// headroom.podSwap: what pods may do with the node's swap.

std::span<const std::string_view> pod_swap_keys();

void read_pod_swap(const Section& headroom, Config& config);

// headroom.pressure: thresholds on time lost to the node's own shortage.

std::span<const std::string_view> memory_pressure_keys();
std::span<const std::string_view> cpu_pressure_keys();

// `headroom` is the section it is part of.
void read_pressure(const Section& headroom, Config& config);

// The settings of CPU pinning, from the file's keys and the kubelet's flags.
//
// What depends on several settings (the options and the policy they belong to) is checked when all
// have been read: resolve_cpu_settings().

// A map of options, all of it from one place.
struct LocatedOptions {
  std::string file;  // or the flag
  int line = 0;
  std::vector<LocatedText> strings;
};

struct CpusSettings {
  LocatedOptions policy;   // only where it is
  LocatedOptions options;  // cpuManagerPolicyOptions
  LocatedOptions topology_policy;
  LocatedOptions topology_options;
  LocatedOptions mode;
  LocatedOptions memory_policy;  // memoryManagerPolicy, where it is set
  CpuOptionGates gates;          // featureGates
};

std::span<const std::string_view> headroom_cpus_keys();

// The kubelet's keys of the document, and headroom.cpus.
void read_cpus(const Section& document, const std::string& file, Config& config,
               CpusSettings& settings);
void read_headroom_cpus(const Section& headroom, const std::string& file, Config& config,
                        CpusSettings& settings);
void apply_cpu_flags(const CommandLine& line, Config& config, CpusSettings& settings,
                     Diagnostics& diagnostics);
void resolve_cpu_settings(const CpusSettings& settings, Config& config, Diagnostics& diagnostics);

// memoryManagerPolicy and reservedMemory.

void read_memory_manager(const Section& document, const std::string& file, Config& config,
                         CpusSettings& settings);
// --reserved-memory; what cannot be read is left out and in `errors`.
ReservedMemory parse_reserved_memory(const CommandLine::FlagValues& values,
                                     std::vector<std::string>& errors);
void apply_memory_manager_flags(const CommandLine& line, Config& config, CpusSettings& settings,
                                Diagnostics& diagnostics);
void resolve_memory_manager(const CpusSettings& settings, const Config& config,
                            Diagnostics& diagnostics);

}  // namespace headroom::config
