// SPDX-License-Identifier: Apache-2.0
// Old names of keys: accepted with a warning, refused beside the new name, listed in the man page.
#include "config/files.h"
#include "config/keys.h"
#include "config/load/drop_ins.h"

#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

namespace headroom::config {
namespace {

using namespace test;

const std::map<std::string_view, std::string_view> kValues{
    {"measurePeriod", "30s"}, {"maxDuration", "10s"},   {"waitDuration", "1m"},
    {"relaxDuration", "2m"},  {"memoryLimit", "256Mi"},
};

// What else a map needs: its keys mean nothing alone.
std::string context_of(std::string_view map) {
  if (map == "headroom.ladder.squeeze") return "margin: 5%, ";
  if (map == "headroom.ladder.stuck") return "evict: false, ";
  if (map == "headroom.reclaim") return "images: [/bin/true], ";
  return "";
}

std::string document(std::string_view map, const std::string& entries) {
  std::string text = "{" + entries + "}";
  for (std::size_t dot = map.rfind('.'); dot != std::string_view::npos; dot = map.rfind('.')) {
    text = "{" + std::string(map.substr(dot + 1)) + ": " + text + "}";
    map = map.substr(0, dot);
  }
  return kHead + std::string(map) + ": " + text + "\n";
}

LoadResult read_text(const std::string& text) {
  TempDir dir;
  CommandLine line;
  line.config = {dir.write("f", text)};
  return read(line);
}

std::string entry(std::string_view name, std::string_view value) {
  return std::string(name) + ": " + std::string(value);
}

TEST(RenamedKeys, EachIsReadUnderBothNamesAndWarnsOfTheOldOne) {
  for (const RenamedKey& key : renamed_keys()) {
    SCOPED_TRACE(key.old_name);
    std::string context = context_of(key.map);
    if (key.new_name == "relaxDuration") context += "waitDuration: 1m, ";
    const std::string_view value = kValues.at(key.new_name);
    const LoadResult by_old = read_text(document(key.map, context + entry(key.old_name, value)));
    const LoadResult by_new = read_text(document(key.map, context + entry(key.new_name, value)));
    EXPECT_EQ(by_old.diagnostics, Diagnostics{});
    EXPECT_EQ(by_new.diagnostics, Diagnostics{});
    EXPECT_TRUE(by_new.warnings.empty());
    ASSERT_EQ(by_old.warnings.size(), 1u);
    EXPECT_TRUE(by_old.warnings[0].ends_with(
        "f:3: " + std::string(key.map) + "." + std::string(key.old_name) + " was renamed; write " +
        std::string(key.map) + "." + std::string(key.new_name)))
        << by_old.warnings[0];
    EXPECT_TRUE(by_old.config.policy == by_new.config.policy);
    EXPECT_TRUE(by_old.config.disk == by_new.config.disk);
    EXPECT_TRUE(by_old.config.reclaim == by_new.config.reclaim);
    EXPECT_NE(find_config_key(std::string(key.map) + "." + std::string(key.new_name)), nullptr);
  }
}

TEST(RenamedKeys, BothNamesAtOnceAreAnError) {
  const LoadResult both =
      read_text(document("headroom.disk", "measureEvery: 30s, measurePeriod: 40s"));
  ASSERT_EQ(both.diagnostics.size(), 1u);
  EXPECT_EQ(both.diagnostics[0].line, 3);
  EXPECT_EQ(both.diagnostics[0].what,
            "headroom.disk.measureEvery: is the old name of headroom.disk.measurePeriod, which is "
            "set too; remove the old one");
}

TEST(RenamedKeys, TheManPageListsThem) {
  std::ifstream page("docs/headroom.yaml.5");  // tests run in the root of the repository
  std::stringstream text;
  text << page.rdbuf();
  for (const RenamedKey& key : renamed_keys()) {
    const std::string map = std::string(key.map) + ".";
    EXPECT_NE(text.str().find(map + std::string(key.old_name) + "|" + map +
                              std::string(key.new_name) + "\n"),
              std::string::npos)
        << key.old_name;
  }
}

}  // namespace
}  // namespace headroom::config
