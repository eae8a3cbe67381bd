// SPDX-License-Identifier: Apache-2.0
// read_trace(): memory use and arrivals from public traces, by their published formats, and memory
// use from recordings of headroomd. Every error is reported, with its file and line.
#pragma once

#include "simulate/workload/generator.h"

#include <headroom/result.h>

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tl/expected.hpp>

namespace headroom::simulate {

enum class TraceFormat : std::uint8_t {
  // "value,timestamp,name" with a header: the share of a pod's limit that it uses, by time.
  kMemoryShare,
  kAlibaba2018,  // container_usage.csv of cluster-trace-v2018: no header
  kGoogle2019,   // instance_usage of ClusterData2019 as CSV with a header
  kAzureV2,      // vmtable.csv of AzurePublicDatasetV2: no header
  kAzureV1,      // arrivals of virtual machines by flavour: "seconds flavour,flavour,|,…"
  kRecording,    // a file of headroomctl record
};
inline constexpr std::array<std::string_view, 6> kTraceFormatNames{
    "memory-share", "alibaba-2018", "google-2019", "azure-v2", "azure-v1", "recording"};
std::optional<TraceFormat> trace_format_named(std::string_view name);

struct Trace {
  std::vector<std::shared_ptr<const MemorySeries>> series;  // by name
  std::vector<Arrival> arrivals;                            // by time
};

// "file:line: what is wrong", of at most kMaxTraceErrors lines and one that counts the others.
using TraceErrors = std::vector<std::string>;
inline constexpr std::size_t kMaxTraceErrors = 50;

// `flavours`: of kAzureV1, lines "cores,GiB letter". `skipped`: not null, lines with errors are
// left out, and their errors are added there; a file without a usable line is an error all the
// same.
tl::expected<Trace, TraceErrors> read_trace(TraceFormat format, std::string_view file,
                                            std::string text, std::string_view flavours = {},
                                            TraceErrors* skipped = nullptr);

// The memory use of each pod in a recording of headroomd, in bytes, by name. An error: the file is
// no recording, it is damaged, its clock goes back, or it holds no reading of a pod.
Result<std::vector<std::shared_ptr<const MemorySeries>>> read_recorded_use(std::string_view file,
                                                                           std::string bytes);

}  // namespace headroom::simulate
