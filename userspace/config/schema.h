// SPDX-License-Identifier: Apache-2.0
// Schema: headroom.yaml as a JSON schema, which editors check while one types.
//
// Names and types alone: what needs judgement, such as a threshold, is a string to it.
#pragma once

#include <string>

namespace headroom::config {

// docs/headroom.schema.json is this, word for word.
std::string json_schema();

}  // namespace headroom::config
