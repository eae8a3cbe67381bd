// SPDX-License-Identifier: Apache-2.0
// SerialTasks: the loop submits the restoring of limits and never waits for it.
#include "daemon/turn/actuators.h"

#include <chrono>
#include <future>
#include <stdexcept>
#include <vector>

#include <gtest/gtest.h>

namespace headroom::daemon {
namespace {

using namespace std::chrono_literals;

TEST(SerialTasks, SubmitDoesNotWaitForATaskThatHangs) {
  std::promise<void> systemd_answers;
  const std::shared_future<void> answer = systemd_answers.get_future().share();
  std::vector<int> done;
  {
    SerialTasks tasks;
    const auto began = std::chrono::steady_clock::now();
    tasks.submit([&] {
      answer.wait();
      done.push_back(1);
    });
    tasks.submit([&] { done.push_back(2); });
    EXPECT_LT(std::chrono::steady_clock::now() - began, 5s);
    EXPECT_TRUE(done.empty());
    systemd_answers.set_value();
  }
  EXPECT_EQ(done, (std::vector<int>{1, 2})) << "in order, and completed at the end";
}

TEST(SerialTasks, ATaskThatThrowsDoesNotEndTheOthers) {
  bool ran = false;
  {
    SerialTasks tasks;
    tasks.submit([] { throw std::runtime_error("out of memory"); });
    tasks.submit([&] { ran = true; });
  }
  EXPECT_TRUE(ran);
}

TEST(SerialTasks, WithoutATaskThereIsNoThread) {
  for (int i = 0; i < 1000; ++i)
    SerialTasks();
}

// An end right after the last task: the request to stop must not be lost.
TEST(SerialTasks, TheEndIsNotLost) {
  int count = 0;
  for (int i = 0; i < 1000; ++i) {
    SerialTasks tasks;
    tasks.submit([&] { ++count; });
  }
  EXPECT_EQ(count, 1000);
}

}  // namespace
}  // namespace headroom::daemon
