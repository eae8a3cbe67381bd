// SPDX-License-Identifier: Apache-2.0
// Huge pages as pods and nodes name them: "hugepages-2Mi".
#pragma once

#include <headroom/pod.h>
#include <headroom/units.h>

#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace headroom {

// The page size a resource names. Nothing: it is no huge page, or of no size there can be.
std::optional<Bytes> huge_page_size(std::string_view resource);

std::string huge_page_resource(Bytes page_size);

// Page size → bytes, of the huge pages in a list.
std::map<Bytes, Bytes> huge_pages_in(const ResourceList& list);

}  // namespace headroom
