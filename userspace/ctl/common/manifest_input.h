// SPDX-License-Identifier: Apache-2.0
// ManifestInput: the pods of a file or of standard input ("-"), and its text.
#pragma once

#include "config/yaml/yaml.h"

#include <headroom/pod.h>

#include <string>
#include <vector>

#include <tl/expected.hpp>

namespace headroom::ctl {

struct ManifestInput {
  std::string text;
  std::vector<Pod> pods;  // at least one
};

// Reads and parses the file; the error has all diagnostics at once.
tl::expected<ManifestInput, config::Diagnostics> read_manifest(const std::string& file);

}  // namespace headroom::ctl
