// SPDX-License-Identifier: Apache-2.0
// What every fuzzer has in common. A fuzzer is one parser: whatever bytes come, it neither crashes
// nor breaks what it promises; libFuzzer looks for the bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace headroom::fuzz {

inline std::string_view text_of(const std::uint8_t* bytes, std::size_t size) {
  return {reinterpret_cast<const char*>(bytes), size};
}

// A promise; broken, the run ends and libFuzzer keeps the input.
inline void promise(bool kept, const char* what) {
  if (kept) return;
  std::fprintf(stderr, "broken: %s\n", what);
  std::abort();
}

}  // namespace headroom::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size);
