// SPDX-License-Identifier: Apache-2.0
// Makes the manifest of a pod from command-line options: headroomctl run --request cpu=500m.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <tl/expected.hpp>

namespace headroom::ctl {

struct PodOptions {
  std::string name{};
  std::string pod_namespace = "default";
  std::vector<std::string> requests{};  // "cpu=500m,memory=256Mi", as often as given
  std::vector<std::string> limits{};
  std::int32_t priority = 0;
  std::optional<std::int64_t> grace_seconds{};
  std::vector<std::string> command{};
};

// A v1 Pod in JSON. The error has all errors in the options at once; the manifest reader checks the
// values.
tl::expected<std::string, std::vector<std::string>> manifest_from_options(const PodOptions& options,
                                                                          const std::string& uid);

}  // namespace headroom::ctl
