// SPDX-License-Identifier: Apache-2.0
#include "base/log/journal.h"

#include <systemd/sd-event.h>

#include <stdexcept>

#include <gtest/gtest.h>

namespace headroom::log {
namespace {

TEST(LogExceptions, ACallbackThatThrowsDoesNotEndTheLoop) {
  sd_event* event = nullptr;
  ASSERT_GE(sd_event_new(&event), 0);
  int calls = 0;
  const auto handler = [](sd_event_source* source, void* data) {
    int& count = *static_cast<int*>(data);
    log_exceptions("test", [&] {
      if (++count == 1) throw std::runtime_error("first");
      if (count == 2) throw 7;
      sd_event_exit(sd_event_source_get_event(source), 0);
    });
    return 0;
  };
  sd_event_source* source = nullptr;
  ASSERT_GE(sd_event_add_defer(event, &source, handler, &calls), 0);
  sd_event_source_set_enabled(source, SD_EVENT_ON);
  EXPECT_EQ(sd_event_loop(event), 0);
  EXPECT_EQ(calls, 3);
  sd_event_source_unref(source);
  sd_event_unref(event);
}

}  // namespace
}  // namespace headroom::log
