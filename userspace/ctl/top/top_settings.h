// SPDX-License-Identifier: Apache-2.0
// The file in which `headroomctl top` keeps its settings: headroom/top.json below $XDG_CONFIG_HOME,
// or below ~/.config.
#pragma once

#include "ctl/top/pod_columns.h"

#include <headroom/result.h>

#include <filesystem>
#include <string>
#include <string_view>

namespace headroom::ctl {

// "" if neither XDG_CONFIG_HOME nor HOME is an absolute path: nothing is kept then.
std::filesystem::path top_settings_file();

// {"columns": ["pod", "over"], "sort": "over", "reversed": false}. Columns that do not exist are
// left out: the file may be of another version.
Result<TopSettings> parse_top_settings(std::string_view text);
std::string top_settings_text(const TopSettings& settings);

// The defaults if there is no file.
Result<TopSettings> load_top_settings(const std::filesystem::path& file);
Result<> save_top_settings(const std::filesystem::path& file, const TopSettings& settings);

}  // namespace headroom::ctl
