// SPDX-License-Identifier: Apache-2.0
#include "recording/record_delta.h"

#include <cstdint>
#include <cstring>

namespace headroom::recording {
namespace {

// Every 64-bit field, and the two halves of the word that holds flags.
constexpr std::size_t kWords = sizeof(hr_record) / sizeof(std::uint64_t);
static_assert(kWords <= 64, "a record's changes no longer fit in one mask");

std::uint64_t word(const hr_record& record, std::size_t i) {
  std::uint64_t value = 0;
  std::memcpy(&value, reinterpret_cast<const char*>(&record) + i * sizeof value, sizeof value);
  return value;
}
void set_word(hr_record& record, std::size_t i, std::uint64_t value) {
  std::memcpy(reinterpret_cast<char*>(&record) + i * sizeof value, &value, sizeof value);
}

std::uint64_t changes(const hr_record& from, const hr_record& to) {
  std::uint64_t mask = 0;
  for (std::size_t i = 0; i < kWords; ++i)
    if (word(from, i) != word(to, i)) mask |= std::uint64_t{1} << i;
  return mask;
}

}  // namespace

void write_record(Writer& io, hr_record& known, const hr_record& now) {
  const std::uint64_t mask = changes(known, now);
  io(mask);
  for (std::size_t i = 0; i < kWords; ++i)
    if (mask >> i & 1) io(static_cast<std::int64_t>(word(now, i) - word(known, i)));
  known = now;
}

void read_record(Reader& io, hr_record& known) {
  std::uint64_t mask = 0;
  io(mask);
  for (std::size_t i = 0; i < kWords && io.good(); ++i) {
    if (!(mask >> i & 1)) continue;
    std::int64_t by = 0;
    io(by);
    const std::uint64_t now = word(known, i) + static_cast<std::uint64_t>(by);
    if (now > static_cast<std::uint64_t>(kLargest) && now < HR_NO_LIMIT) return io.fail();
    set_word(known, i, now);
  }
}

}  // namespace headroom::recording
