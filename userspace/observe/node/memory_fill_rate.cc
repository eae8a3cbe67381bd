// SPDX-License-Identifier: Apache-2.0
#include "observe/node/memory_fill_rate.h"

#include "base/clock.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstddef>

namespace headroom::observe {
namespace {

constexpr std::size_t kSample = std::size_t{32} << 20;
// A machine too busy to be measured, or a mapping refused, still gets a watch that is quick enough
// for any memory bus of one socket.
constexpr std::int64_t kFloor = std::int64_t{4} << 30;

Duration time_to_touch(char* memory) {
  const Instant began = now();
  for (std::size_t at = 0; at < kSample; at += 4096)
    static_cast<volatile char*>(memory)[at] = 1;
  return now() - began;
}

}  // namespace

std::int64_t measure_fastest_fill() {
  void* memory =
      ::mmap(nullptr, kSample, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return kFloor;
  ::madvise(memory, kSample, MADV_NOHUGEPAGE);
  const std::chrono::duration<double> took = time_to_touch(static_cast<char*>(memory));
  ::munmap(memory, kSample);
  const auto cpus = static_cast<double>(::sysconf(_SC_NPROCESSORS_ONLN));
  const double rate = static_cast<double>(kSample) / std::max(took.count(), 1e-6) * cpus;
  return std::max(kFloor, static_cast<std::int64_t>(rate));
}

}  // namespace headroom::observe
