// SPDX-License-Identifier: Apache-2.0
// The full-screen view of `headroomctl top`: statuses, keys and a size in, lines out.
#include "ctl/top/top_model.h"

#include "config/temp_dir.h"
#include "ctl/top/top_settings.h"

#include <algorithm>
#include <fstream>
#include <string>

#include <gtest/gtest.h>
#include <spdlog/fmt/fmt.h>

namespace headroom::ctl {
namespace {

using Kind = TopInput::Kind;
constexpr Screen kScreen{.columns = 100, .rows = 20};

Status crowd(int pods) {
  Status status;
  status.version = "1";
  status.mode = "enforce";
  status.pods_at_ns = 1;
  for (int i = 0; i < pods; ++i) {
    PodStatus pod;
    pod.pod_namespace = i % 2 == 0 ? "shop" : "batch";
    pod.name = fmt::format("pod-{:03}", i);
    pod.uid = fmt::format("uid-{}", i);
    pod.qos = "Burstable";
    pod.state = "running";
    pod.over = pods - i;
    pod.working_set = 1 << 20;
    pod.eviction_order = i + 1;
    status.pods.push_back(pod);
  }
  return status;
}

std::string text_of(const std::vector<TopLine>& lines) {
  std::string text;
  for (const TopLine& line : lines) {
    for (const Cell& piece : line.pieces)
      text += piece.text;
    text += '\n';
  }
  return text;
}

std::string selected_of(const std::vector<TopLine>& lines) {
  for (const TopLine& line : lines)
    if (line.selected) return text_of({line});
  return "";
}

class TopModelTest : public testing::Test {
 protected:
  void press(Kind kind, int times = 1) {
    for (int i = 0; i < times; ++i)
      EXPECT_TRUE(model_.handle({.kind = kind}));
  }
  void type(const std::string& keys) {
    for (const char key : keys)
      EXPECT_TRUE(model_.handle({.kind = Kind::kText, .text = std::string(1, key)}));
  }
  std::string shown() { return text_of(model_.render(kScreen)); }
  std::string selected() { return selected_of(model_.render(kScreen)); }
  bool shows(const std::string& text) { return shown().find(text) != std::string::npos; }

  TopModel model_{crowd(100), {}};
};

TEST_F(TopModelTest, ScrollsSoThatTheSelectedPodIsOnTheScreen) {
  EXPECT_EQ(selected().substr(0, 12), "shop/pod-000");
  press(Kind::kDown, 30);
  EXPECT_EQ(selected().substr(0, 12), "shop/pod-030");
  EXPECT_FALSE(shows("pod-000"));
  press(Kind::kEnd);
  EXPECT_EQ(selected().substr(0, 13), "batch/pod-099");
  EXPECT_TRUE(shows("of 100"));
  press(Kind::kPageUp);
  EXPECT_FALSE(shows("pod-099"));
  press(Kind::kHome);
  EXPECT_EQ(selected().substr(0, 12), "shop/pod-000");
  press(Kind::kUp);
  EXPECT_EQ(selected().substr(0, 12), "shop/pod-000");
}

TEST_F(TopModelTest, TheSelectedPodStaysSelectedWhateverTheOrder) {
  press(Kind::kDown, 5);
  type("r");
  EXPECT_EQ(selected().substr(0, 13), "batch/pod-005");
  model_.update(crowd(50));
  EXPECT_EQ(selected().substr(0, 13), "batch/pod-005");
  model_.update(crowd(3));
  EXPECT_NE(selected(), "") << "its pod is gone: another is selected";
}

TEST_F(TopModelTest, TheFilterNarrowsWhileItIsTyped) {
  type("/batch pod-09");
  EXPECT_TRUE(shows("filter: batch pod-09_  5 of 100 pods"));
  EXPECT_TRUE(shows("batch/pod-091"));
  EXPECT_FALSE(shows("shop/"));
  press(Kind::kBackspace, 6);
  EXPECT_TRUE(shows("50 of 100 pods"));
  press(Kind::kEnter);
  EXPECT_TRUE(shows("of 50 with \"batch \""));
  type("/q");
  EXPECT_TRUE(shows("0 of 100 pods")) << "q is text here";
  press(Kind::kEscape);
  EXPECT_TRUE(shows("of 100  sorted"));
}

TEST_F(TopModelTest, AFilterLosesWholeCharacters) {
  type("/");
  EXPECT_TRUE(model_.handle({.kind = Kind::kText, .text = "\xc3\xa9"}));
  EXPECT_TRUE(model_.handle({.kind = Kind::kText, .text = "\xe2\x80\xae"}));
  EXPECT_TRUE(shows("filter: \xc3\xa9???_")) << "a mark of direction is shown as question marks";
  press(Kind::kBackspace, 4);
  EXPECT_TRUE(shows("filter: _"));
}

TEST_F(TopModelTest, SortsByTheColumnToTheRightAndLeft) {
  EXPECT_TRUE(shows("OVER v"));
  type("<<");
  EXPECT_TRUE(shows("WORKING SET v"));
  type(">r");
  EXPECT_TRUE(shows("REQUEST ^"));
  EXPECT_EQ(model_.settings().sort, "request");
  EXPECT_TRUE(model_.settings().reversed);
}

TEST_F(TopModelTest, ColumnsAreChosenAndStayInTheirOrder) {
  type("c");
  EXPECT_TRUE(shows("[x]  pod"));
  EXPECT_TRUE(shows("[ ]  limit"));
  type(" ");
  EXPECT_EQ(model_.settings().columns.front(), "pod") << "it cannot be hidden";
  press(Kind::kDown);
  type(" ");  // qos
  press(Kind::kDown, 6);
  type(" ");  // limit
  press(Kind::kEscape);
  EXPECT_FALSE(shows("QOS"));
  const auto& columns = model_.settings().columns;
  EXPECT_EQ(std::find(columns.begin(), columns.end(), "limit") -
                std::find(columns.begin(), columns.end(), "request"),
            1);
}

TEST_F(TopModelTest, AHiddenColumnComesBackWithTheArrow) {
  press(Kind::kRight, 3);
  EXPECT_FALSE(shows("QOS"));
  EXPECT_TRUE(shows("POD"));
  press(Kind::kLeft, 5);
  EXPECT_TRUE(shows("QOS"));
  press(Kind::kRight, 50);
  EXPECT_TRUE(shows("STALL"));
}

TEST_F(TopModelTest, OnePodShowsItsPlaceAndSaysWhenItIsGone) {
  press(Kind::kDown, 2);
  press(Kind::kEnter);
  EXPECT_TRUE(shows("shop/pod-002"));
  EXPECT_TRUE(shows("would be evicted 3rd for memory.available"));
  model_.update(crowd(1));
  EXPECT_TRUE(shows("This pod is gone."));
  press(Kind::kEscape);
  EXPECT_TRUE(shows("shop/pod-000"));
}

TEST_F(TopModelTest, AClickSelectsAndATitleSorts) {
  const auto lines = model_.render(kScreen);
  const auto title = static_cast<std::size_t>(
      std::find_if(lines.begin(), lines.end(),
                   [](const TopLine& line) { return text_of({line}).starts_with("POD"); }) -
      lines.begin());
  EXPECT_TRUE(model_.handle({.kind = Kind::kClick, .line = title + 3}));
  EXPECT_EQ(selected().substr(0, 12), "shop/pod-002");
  EXPECT_TRUE(model_.handle({.kind = Kind::kClick, .line = title, .column = 1}));
  EXPECT_EQ(model_.settings().sort, "pod");
  EXPECT_TRUE(model_.handle({.kind = Kind::kClick, .line = 99}));
  EXPECT_EQ(selected().substr(0, 12), "shop/pod-002");
  press(Kind::kWheelDown);
  EXPECT_NE(selected().substr(0, 12), "shop/pod-002");
}

TEST_F(TopModelTest, EveryViewFitsEveryScreen) {
  for (const char* keys : {"", "/x", "c", "h", "\r"}) {
    TopModel model(crowd(40), {});
    for (const char key : std::string(keys))
      model.handle(key == '\r' ? TopInput{.kind = Kind::kEnter}
                               : TopInput{.text = std::string(1, key)});
    for (const std::size_t rows : {0u, 1u, 2u, 5u, 24u, 200u})
      for (const std::size_t columns : {1u, 20u, 80u, 300u}) {
        const auto lines = model.render({.columns = columns, .rows = rows});
        EXPECT_EQ(lines.size(), rows) << keys;
        for (const TopLine& line : lines)
          EXPECT_LE(display_width(text_of({line})), columns + 1) << keys;
      }
  }
}

TEST_F(TopModelTest, NothingOutsideReachesTheTerminal) {
  Status status = crowd(3);
  status.pods[0].name = "\x1b]0;owned\x07\xe2\x80\xae" + std::string(253, 'x');
  status.pods[0].qos = status.pods[0].state = status.mode = status.version = "\x1b[31m";
  status.pods[0].stalls.emplace()["\x1b"] = {.ns = 5};
  status.pods[0].ignored = {"\x1b"};
  TopModel model(status, {});
  model.set_remark("\x1b[2J");
  const auto clean = [](const std::string& text) {
    return text.find('\x1b') == std::string::npos && text.find("\xe2\x80\xae") == std::string::npos;
  };
  EXPECT_TRUE(clean(text_of(model.render(kScreen))));
  model.handle({.kind = Kind::kEnter});
  const std::string pod = text_of(model.render({.columns = 400, .rows = 40}));
  EXPECT_TRUE(clean(pod)) << pod;
  EXPECT_NE(pod.find(std::string(253, 'x')), std::string::npos);
}

TEST(TopSettings, SurviveARunAndOtherVersions) {
  const test::TempDir folder;
  const auto file = folder.path() / "a/b/top.json";
  EXPECT_EQ(load_top_settings(file)->columns, default_top_settings().columns);
  const TopSettings chosen{.columns = {"pod", "cpus"}, .sort = "cpus", .reversed = true};
  ASSERT_TRUE(save_top_settings(file, chosen));
  const auto loaded = load_top_settings(file);
  ASSERT_TRUE(loaded);
  EXPECT_EQ(loaded->columns, chosen.columns);
  EXPECT_EQ(loaded->sort, "cpus");
  EXPECT_TRUE(loaded->reversed);
  const auto newer =
      parse_top_settings(R"({"columns": ["pod", 7, "new", "over", "over"], "sort": "new"})");
  ASSERT_TRUE(newer);
  EXPECT_EQ(newer->columns, (std::vector<std::string>{"pod", "over"}));
  EXPECT_EQ(newer->sort, "over");
  std::ofstream(file) << "[";
  EXPECT_EQ(load_top_settings(file).error().what, "read " + file.string() + ": not a JSON object");
}

}  // namespace
}  // namespace headroom::ctl
