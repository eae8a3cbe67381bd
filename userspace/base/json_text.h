// SPDX-License-Identifier: Apache-2.0
// JSON as text, and strings out of the JSON of other programs.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

namespace headroom {

// Invalid UTF-8 becomes U+FFFD: names come from directories, manifests and other programs, and must
// not make the text invalid. `indent`: blanks of a level; negative: all on one line. Neither ends
// with a newline.
std::string to_json_text(const nlohmann::json& value, int indent = -1);
std::string to_json_text(const nlohmann::ordered_json& value, int indent = -1);

// A string field of a JSON value from another program; "" if the value is not an object or has no
// such string.
std::string text_at(const nlohmann::json& object, const char* key);

}  // namespace headroom
