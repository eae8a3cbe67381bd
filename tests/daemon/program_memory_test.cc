// SPDX-License-Identifier: Apache-2.0
#include "daemon/program_memory.h"

#include <array>
#include <fstream>
#include <sstream>
#include <string>

#include <gtest/gtest.h>

namespace headroom::daemon {
namespace {

struct Resident {
  long mapped_kib = 0, resident_kib = 0;
};

// Of all mappings of files whose name has `part` in it, but for the gaps between two segments.
Resident resident(const std::string& part) {
  std::ifstream smaps("/proc/self/smaps");
  Resident sum;
  bool wanted = false;
  for (std::string line; std::getline(smaps, line);) {
    std::istringstream words(line);
    std::string first, second;
    words >> first >> second;
    if (first.find('-') != std::string::npos)
      wanted = line.find(part) != std::string::npos && second != "---p";
    else if (wanted && first == "Size:")
      sum.mapped_kib += std::stol(second);
    else if (wanted && first == "Rss:")
      sum.resident_kib += std::stol(second);
  }
  return sum;
}

TEST(ProgramMemory, TheProgramAndTheNamedLibrariesAreReadWhole) {
  constexpr std::array<std::string_view, 1> kMath{"libm."};
  ASSERT_TRUE(read_program_into_memory(kMath));
  for (const char* file : {"/libm.so", "/unit"}) {
    const Resident now = resident(file);
    EXPECT_GT(now.mapped_kib, 0) << file;
    EXPECT_EQ(now.resident_kib, now.mapped_kib) << file;
  }
}

}  // namespace
}  // namespace headroom::daemon
