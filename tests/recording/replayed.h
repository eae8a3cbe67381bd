// SPDX-License-Identifier: Apache-2.0
// A recording in memory, replayed.
#pragma once

#include "recording/replayer.h"

#include <random>
#include <string>
#include <utility>

#include <gtest/gtest.h>

namespace headroom::test {

// It must be whole.
inline recording::Replayed replayed(std::string bytes,
                                    const recording::PolicyOverride& other = nullptr) {
  auto tape = recording::TapeReader::open(std::move(bytes));
  EXPECT_TRUE(tape);
  auto result = recording::replay(*tape, other);
  EXPECT_TRUE(result) << result.error().what;
  return result ? *result : recording::Replayed{};
}

// Damaged in three places, ten thousand times: an error or an answer, and never more.
inline void replay_damaged(const std::string& whole) {
  std::mt19937 random(7);  // NOLINT: the same every time
  for (int i = 0; i < 10'000; ++i) {
    std::string bytes = whole;
    for (int flips = 0; flips < 3; ++flips)
      bytes[random() % bytes.size()] = static_cast<char>(random());
    if (auto tape = recording::TapeReader::open(bytes)) static_cast<void>(recording::replay(*tape));
  }
}

}  // namespace headroom::test
