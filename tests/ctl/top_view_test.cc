// SPDX-License-Identifier: Apache-2.0
// A frame of `headroomctl top`: the same statuses, the same text.
#include "ctl/top/top_view.h"

#include "ctl/common/commands.h"
#include "report/golden.h"
#include "report/sample.h"
#include "report/status/status_json.h"

#include <sstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace headroom::ctl {
namespace {

Status sample_status() {
  return *parse_status(
      report::status_json(test::sample_node(), test::sample_cgroups(), nullptr).dump());
}

// One second and half a CPU later.
Status later() {
  Status status = sample_status();
  *status.pods_at_ns += 1'000'000'000;
  for (PodStatus& pod : status.pods) {
    if (pod.cpu) *pod.cpu += 500'000'000;
    if (pod.memory_waiting) *pod.memory_waiting += 32'000'000;
    if (pod.stalls.contains("limit")) pod.stalls["limit"].ns += 450'000'000;
  }
  return status;
}

TEST(Top, AFrameReadsAsTheGoldenText) {
  const Status before = sample_status();
  test::expect_golden("top/frame.txt", render_top(&before, later(), {}));
}

TEST(Top, StatusReadsAsTheGoldenText) {
  test::expect_golden("top/status.txt", render_status(sample_status(), {}));
}

TEST(Top, StatusShowsWhereTheMemoryIs) {
  constexpr std::int64_t kMiB = 1 << 20;
  report::NodeView node = test::sample_node();
  node.swap_room = SwapRoom{.available = 120 * kMiB,
                            .kubelet = 2048 * kMiB,
                            .memory = 60 * kMiB,
                            .gain = 100 * kMiB,
                            .filling = 40 * kMiB,
                            .bound = SwapRoom::Bound::kRoom,
                            .in_force = true,
                            .resident = 700 * kMiB,
                            .compressed = 300 * kMiB,
                            .compressed_size = 110 * kMiB,
                            .on_disk = 200 * kMiB};
  const auto shown = [&] {
    return render_status(
        *parse_status(report::status_json(node, test::sample_cgroups(), nullptr).dump()), {});
  };
  const auto has = [&](const char* line) { return shown().find(line) != std::string::npos; };
  EXPECT_TRUE(
      has("with swap:  120Mi = memory 60Mi + swap 100Mi - filling 40Mi; the kubelet's "
          "value is 2Gi\n"))
      << shown();
  EXPECT_TRUE(has("resident 700Mi  compressed 300Mi in 110Mi  on disk 200Mi\n")) << shown();
  node.swap_room->bound = SwapRoom::Bound::kKubelet;
  EXPECT_TRUE(has("with swap:  120Mi = the kubelet's value\n")) << shown();
  node.swap_room->in_force = false;
  EXPECT_TRUE(has("not in force (swapAware: false)\n")) << shown();
}

TEST(Top, AFrameFitsItsScreen) {
  Status status = later();
  for (int i = 0; i < 100; ++i)
    status.pods.push_back(status.pods[0]);
  for (const std::size_t columns : {0u, 1u, 40u, 80u}) {
    for (const std::size_t rows : {1u, 12u, 24u}) {
      std::istringstream frame(render_top(nullptr, status, {.columns = columns, .rows = rows}));
      std::size_t lines = 0;
      for (std::string line; std::getline(frame, line); ++lines)
        EXPECT_TRUE(columns == 0 || line.size() <= columns) << line;
      EXPECT_TRUE(rows < 24u || lines <= rows) << lines;
    }
  }
}

TEST(Top, ColoursAreOnlyWhereTheyAreWanted) {
  EXPECT_EQ(render_top(nullptr, later(), {.colour = false}).find('\x1b'), std::string::npos);
  EXPECT_NE(render_top(nullptr, later(), {.colour = true}).find("\x1b["), std::string::npos);
}

TEST(Top, PodsFurthestOverTheirRequestComeFirstAndTheUnknownLast) {
  Status status;
  const auto pod = [&](const char* name, std::optional<std::int64_t> used,
                       std::optional<std::int64_t> over) {
    PodStatus row;
    row.pod_namespace = "d";
    row.name = row.uid = name;
    row.working_set = used;
    row.over = over;
    status.pods.push_back(row);
  };
  pod("unknown", {}, {});
  pod("under", 900, -100);
  pod("small", 10, 5);
  pod("large", 20, 5);
  pod("most", 7, 6);
  const std::string frame = render_top(nullptr, status, {});
  std::size_t last = 0;
  for (const char* name : {"d/most", "d/large", "d/small", "d/under", "d/unknown"}) {
    const auto place = frame.find(name);
    EXPECT_GT(place, last) << name;
    last = place;
  }
}

TEST(Top, AControlCharacterInANameIsReplaced) {
  Status status = sample_status();
  status.pods[0].name = "\x1b]0;owned\x07";
  EXPECT_EQ(render_top(nullptr, status, {}).find('\x1b'), std::string::npos);
}

TEST(Top, RatesNeedTwoTotalsAndTimeBetween) {
  PodStatus before, now;
  before.cpu = 1'000'000'000;
  now.cpu = 2'500'000'000;
  EXPECT_DOUBLE_EQ(*rates_between(before, now, 1.5).cpus, 1.0);
  EXPECT_FALSE(rates_between(before, now, 0).cpus);
  EXPECT_FALSE(rates_between(before, now, 1).throttled);
  EXPECT_DOUBLE_EQ(*rates_between(now, before, 1).cpus, 0) << "a total that fell back is no rate";
}

TEST(Model, AnInvalidDocumentIsAnErrorNotACrash) {
  EXPECT_EQ(parse_status("{}").error().what, "headroomd has not read the node yet; try again");
  EXPECT_FALSE(parse_status(""));
  EXPECT_FALSE(parse_status("[]"));
  const auto odd = parse_status(
      R"({"signals":5,"pods":[null,{"name":7,"working_set":"x"}],"conditions":[1],"mode":null})");
  ASSERT_TRUE(odd);
  ASSERT_EQ(odd->pods.size(), 2u);
  EXPECT_FALSE(odd->pods[1].working_set);
}

}  // namespace
}  // namespace headroom::ctl
