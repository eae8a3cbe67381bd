// SPDX-License-Identifier: Apache-2.0
// A frame of `headroomctl top`: the same statuses, the same text.
#include "ctl/top/top_text.h"

#include "ctl/common/commands.h"
#include "report/golden.h"
#include "report/sample.h"
#include "report/status/status_json.h"

#include <algorithm>
#include <sstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace headroom::ctl {
namespace {

Status sample_status() {
  return *parse_status(
      test::status_json(test::sample_node(), test::sample_cgroups(), nullptr).dump());
}

// One second and half a CPU later.
Status later() {
  Status status = sample_status();
  *status.pods_at_ns += 1'000'000'000;
  for (PodStatus& pod : status.pods) {
    if (pod.cpu) *pod.cpu += 500'000'000;
    if (pod.memory_waiting) *pod.memory_waiting += 32'000'000;
    if (pod.stalls && pod.stalls->contains("limit")) pod.stalls->at("limit").ns += 450'000'000;
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
                            .cold = 90 * kMiB,
                            .compressed = 300 * kMiB,
                            .compressed_size = 110 * kMiB,
                            .on_disk = 200 * kMiB};
  const auto shown = [&] {
    return render_status(
        *parse_status(test::status_json(node, test::sample_cgroups(), nullptr).dump()), {});
  };
  const auto has = [&](const char* line) { return shown().find(line) != std::string::npos; };
  EXPECT_TRUE(
      has("with swap:  120Mi = memory 60Mi + swap 100Mi - filling 40Mi; the kubelet's "
          "value is 2Gi\n"))
      << shown();
  EXPECT_TRUE(has("resident 700Mi (90Mi cold)  compressed 300Mi in 110Mi  on disk 200Mi\n"))
      << shown();
  node.swap_room->bound = SwapRoom::Bound::kKubelet;
  EXPECT_TRUE(has("with swap:  120Mi = the kubelet's value\n")) << shown();
  node.swap_room->in_force = false;
  EXPECT_TRUE(has("not in force (swapAware: false)\n")) << shown();
  node.swap_room->in_force = true;
  node.swap_room->swap = false;
  node.swap_room->bound = SwapRoom::Bound::kThrashing;
  EXPECT_TRUE(has("without swap:  120Mi = memory 60Mi, thrashing; the kubelet's value is 2Gi\n"))
      << shown();
  const auto status =
      *parse_status(test::status_json(node, test::sample_cgroups(), nullptr).dump());
  EXPECT_NE(render_top(nullptr, status, {}).find("resident 700Mi (90Mi cold)"), std::string::npos);
}

TEST(Top, StatusShowsTheMemoryForecast) {
  Status status;
  status.memory_forecasts = {{.predictor = "drift", .bytes = std::nullopt}};
  EXPECT_EQ(render_status(status, {}).find("memory forecast"), std::string::npos);
  status.memory_forecasts[0].bytes = std::int64_t{3} << 30;
  EXPECT_NE(render_status(status, {})
                .find("\nmemory forecast:  pods use at most 3Gi in the next hour (drift)\n"),
            std::string::npos);
  status.memory_forecasts[0].held = 198;
  status.memory_forecasts[0].exceeded = 2;
  status.memory_forecasts[0].mean_error = 0.03;
  EXPECT_NE(render_status(status, {})
                .find("(drift; 2 of 200 forecasts were too low, +3.0% off on average)\n"),
            std::string::npos);
}

TEST(Top, ALineFitsItsScreen) {
  for (const std::size_t columns : {1u, 40u, 80u}) {
    std::istringstream frame(render_top(nullptr, later(), {.columns = columns}));
    for (std::string line; std::getline(frame, line);)
      EXPECT_LE(line.size(), columns) << line;
  }
}

TEST(Top, APlainFrameReadsAsTheGoldenText) {
  const Status before = sample_status();
  test::expect_golden("top/plain.txt", render_plain(&before, later(), {}));
}

TEST(Top, OnePodReadsAsTheGoldenText) {
  const Status before = sample_status();
  test::expect_golden("top/pod.txt", render_top(&before, later(), {}, {.pod = "default/hog"}));
  EXPECT_EQ(render_plain(nullptr, later(), {.pod = "gone\x1b"}), "pod: gone? does not exist\n");
}

TEST(Top, AFilterTakesEveryWordInAnyCase) {
  PodStatus pod;
  pod.pod_namespace = "shop";
  pod.name = "web-1";
  pod.qos = "Burstable";
  pod.state = "running";
  for (const char* filter : {"", "WEB", "shop/web", "burst web", "running"})
    EXPECT_TRUE(matches_filter(pod, filter)) << filter;
  for (const char* filter : {"db", "web db", "web-1 guaranteed"})
    EXPECT_FALSE(matches_filter(pod, filter)) << filter;
}

TEST(Top, AColumnThatDoesNotExistIsAnErrorThatListsThem) {
  EXPECT_EQ(*parse_columns("over,pod,cpus"), (std::vector<std::string>{"pod", "over", "cpus"}));
  const auto wrong = parse_columns("over,colour,\x1b");
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().what.substr(0, 60),
            "no column \"colour\", \"?\"; the columns are pod, qos, state, or");
}

TEST(Top, EachColumnHasANameOfItsOwnAndSortsInBothDirections) {
  const Status status = later();
  std::vector<std::string> names;
  for (const PodColumn& column : pod_columns()) {
    names.emplace_back(column.name);
    EXPECT_EQ(pod_column(column.name), &column);
    std::vector<PodSample> up = pod_samples(nullptr, status), down = up;
    sort_pods(down, {.columns = {}, .sort = std::string(column.name)});
    sort_pods(up, {.columns = {}, .sort = std::string(column.name), .reversed = true});
    ASSERT_EQ(up.size(), status.pods.size());
    const auto known = [&](const PodSample& each) { return !column.key || column.key(each); };
    // Unknown values are last in both directions.
    EXPECT_TRUE(std::is_partitioned(up.begin(), up.end(), known)) << column.name;
    EXPECT_TRUE(std::is_partitioned(down.begin(), down.end(), known)) << column.name;
  }
  std::sort(names.begin(), names.end());
  EXPECT_EQ(std::adjacent_find(names.begin(), names.end()), names.end());
}

TEST(Top, WideAndCombiningCharactersAreCountedAsCharacters) {
  EXPECT_EQ(display_width("\xc3\xa9"), 1u);
  EXPECT_EQ(fitting("a\xc3\xa9z", 2), "a\xc3\xa9");
  EXPECT_EQ(fitting("a\xc3\xa9z", 1), "a");
  EXPECT_EQ(fitting("\xc3", 1), "\xc3") << "a cut character ends nothing";
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
