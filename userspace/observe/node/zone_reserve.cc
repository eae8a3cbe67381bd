// SPDX-License-Identifier: Apache-2.0
#include "observe/node/zone_reserve.h"

#include <algorithm>
#include <sstream>
#include <string>

namespace headroom::observe {
namespace {

struct Zone {
  std::uint64_t min = 0, managed = 0, protection = 0;  // pages
};

// "(0, 1930, 3907)": the largest.
std::uint64_t largest_in(std::string list) {
  std::replace_if(
      list.begin(), list.end(), [](char c) { return c == '(' || c == ',' || c == ')'; }, ' ');
  std::istringstream numbers(list);
  std::uint64_t largest = 0;
  for (std::uint64_t number = 0; numbers >> number;)
    largest = std::max(largest, number);
  return largest;
}

std::uint64_t reserve_of(const Zone& zone) {
  return std::min(zone.min + zone.protection, zone.managed);
}

}  // namespace

std::optional<std::uint64_t> reserved_pages(std::istream& zoneinfo) {
  std::uint64_t sum = 0;
  bool found = false;
  Zone zone;
  for (std::string line; std::getline(zoneinfo, line);) {
    std::istringstream words(line);
    std::string name;
    words >> name;
    if (name == "Node") {  // "Node 0, zone DMA32"
      sum += reserve_of(zone);
      zone = {};
    } else if (name == "min") {
      words >> zone.min;
    } else if (name == "managed") {
      found = static_cast<bool>(words >> zone.managed) || found;
    } else if (name == "protection:") {
      std::string rest;
      std::getline(words, rest);
      zone.protection = largest_in(rest);
    }
  }
  sum += reserve_of(zone);
  return found ? std::optional(sum) : std::nullopt;
}

}  // namespace headroom::observe
