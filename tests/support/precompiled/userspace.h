// SPDX-License-Identifier: Apache-2.0
// Precompiled for the library that is tested. It saves reading and is no part of any file: what a
// file uses it includes, and the build that is shipped has no such header.
#pragma once

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <variant>
#include <vector>

#include <nlohmann/json.hpp>
#include <spdlog/fmt/chrono.h>
#include <spdlog/fmt/fmt.h>
#include <spdlog/fmt/ranges.h>
#include <tl/expected.hpp>
