// SPDX-License-Identifier: Apache-2.0
// Schema: headroom.yaml as a JSON schema, which editors check while one types.
//
// It checks names and types only: a value with its own syntax, such as a threshold, is a string.
#pragma once

#include <string>

namespace headroom::config {

// docs/headroom.schema.json is this, word for word.
std::string json_schema();

}  // namespace headroom::config
