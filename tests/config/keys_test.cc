// SPDX-License-Identifier: Apache-2.0
// What is described against what is read, both ways: neither the schema nor headroomctl config can
// forget a key.
#include "config/keys.h"

#include "config/files.h"
#include "config/kubelet_keys.h"
#include "config/schema.h"
#include "config/sections/sections.h"
#include "report/golden.h"

#include <algorithm>
#include <fstream>
#include <set>
#include <sstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace headroom::config {
namespace {

using namespace test;
using Names = std::set<std::string>;

// Those of the headroom section as its readers know them.
Names read_by_headroom() {
  Names names;
  const std::set<std::string_view> maps{
      "disk",    "reclaim",   "cpus",       "slices",   "pressure",    "kubernetes", "ladder",
      "metrics", "podLimits", "coldMemory", "cpuBurst", "cpuSuppress", "podSwap"};
  for (const std::string_view key : headroom_keys())
    if (!maps.contains(key)) names.insert("headroom." + std::string(key));
  for (const std::string_view key : disk_keys())
    names.insert("headroom.disk." + std::string(key));
  for (const std::string_view key : headroom_cpus_keys())
    names.insert("headroom.cpus." + std::string(key));
  for (const std::string_view key : metrics_keys())
    names.insert("headroom.metrics." + std::string(key));
  for (const std::string_view key : slices_keys())
    names.insert("headroom.slices." + std::string(key));
  for (const std::string_view key : memory_pressure_keys())
    names.insert("headroom.pressure.memory." + std::string(key));
  for (const std::string_view key : cpu_pressure_keys())
    names.insert("headroom.pressure.cpu." + std::string(key));
  for (const std::string& key : kubernetes_keys())
    names.insert("headroom.kubernetes." + key);
  for (const std::string& key : ladder_keys())
    names.insert("headroom.ladder." + key);
  for (const std::string& key : pod_memory_keys())
    names.insert("headroom." + key);
  for (const std::string_view key : cpu_burst_keys())
    names.insert("headroom.cpuBurst." + std::string(key));
  for (const std::string_view key : cpu_suppress_keys())
    names.insert("headroom.cpuSuppress." + std::string(key));
  for (const std::string_view key : pod_swap_keys())
    names.insert("headroom.podSwap." + std::string(key));
  for (const std::string_view key : reclaim_keys())
    names.insert("headroom.reclaim." + std::string(key));
  return names;
}

TEST(KeyTable, HasExactlyTheHeadroomKeys) {
  Names names;
  for (const KeyDescription& key : all_keys())
    if (key.path.starts_with("headroom.")) names.emplace(key.path);
  EXPECT_EQ(names, read_by_headroom()) << "config/described.cc and the key tables differ";
}

// A value that fits no type is reported exactly where the key is read.
TEST(KeyTable, HasEveryKubeletKeyThatIsRead) {
  for (const std::string_view key : kubelet_keys()) {
    if (key == "apiVersion" || key == "kind") continue;
    const bool read = !said(load_text(std::string(key) + ": [[x]]")).empty();
    const bool known = std::ranges::any_of(all_keys(), [&](const KeyDescription& each) {
      return each.path == key || each.path.starts_with(std::string(key) + ".");
    });
    EXPECT_EQ(read, known) << key;
  }
  for (const KeyDescription& key : all_keys())
    EXPECT_TRUE(key.path.starts_with("headroom.") ||
                is_kubelet_key(key.path.substr(0, key.path.find('.'))))
        << key.path;
}

// "headroom.disk.nodefs" and a value as a file says them.
std::string as_text(std::string_view path, std::string_view value) {
  std::string text;
  std::size_t depth = 0;
  for (std::size_t dot; (dot = path.find('.')) != std::string_view::npos; ++depth) {
    text += std::string(depth, ' ') + std::string(path.substr(0, dot)) + ":\n";
    path.remove_prefix(dot + 1);
  }
  return text + std::string(depth, ' ') + std::string(path) + ": " + std::string(value) + "\n";
}

TEST(KeyTable, EveryDefaultIsAccepted) {
  for (const KeyDescription& key : all_keys())
    EXPECT_EQ(said(load_text(as_text(key.path, key.value))), std::vector<std::string>{})
        << key.path;
}

TEST(KeyTable, ExactlyTheEnumValuesAreAccepted) {
  for (const KeyDescription& key : all_keys()) {
    if (key.type != ConfigKeyType::kEnum) continue;
    std::istringstream enum_values{std::string(key.enum_values)};
    for (std::string word; enum_values >> word;)
      EXPECT_EQ(said(load_text(as_text(key.path, word))), std::vector<std::string>{}) << key.path;
    EXPECT_EQ(said(load_text(as_text(key.path, "nonsense"))).size(), 1u) << key.path;
  }
}

// A value of another type is refused: the message names the types that are read.
TEST(KeyTable, TypesMatchTheReaders) {
  for (const KeyDescription& key : all_keys()) {
    const bool list = key.type == ConfigKeyType::kStrings || key.type == ConfigKeyType::kTaints;
    EXPECT_FALSE(said(load_text(as_text(key.path, list ? "{a: b}" : "[[x]]"))).empty()) << key.path;
    const bool enum_values = key.type == ConfigKeyType::kString || key.type == ConfigKeyType::kEnum;
    const bool strict = key.type == ConfigKeyType::kInteger || key.type == ConfigKeyType::kNumber ||
                        key.type == ConfigKeyType::kBoolean;
    if (!enum_values && !strict) continue;
    EXPECT_FALSE(said(load_text(as_text(key.path, enum_values ? "5" : "'x'"))).empty()) << key.path;
  }
}

TEST(KeyTable, EveryKeyIsInTheManPage) {
  std::ifstream in("docs/headroom.yaml.5");
  const std::string page{std::istreambuf_iterator<char>(in), {}};
  for (const KeyDescription& key : all_keys()) {
    const std::string name(key.path.substr(key.path.rfind('.') + 1));
    EXPECT_NE(page.find(name), std::string::npos) << key.path;
  }
}

TEST(Schema, MatchesTheFileInDocs) {
  expect_golden("../../docs/headroom.schema.json", json_schema());
}

TEST(Schema, HasEveryAllowedKey) {
  const auto schema = nlohmann::json::parse(json_schema());
  Names names, known{"headroom"};
  for (const auto& [name, what] : schema.at("properties").items())
    names.insert(name);
  known.insert(kubelet_keys().begin(), kubelet_keys().end());
  EXPECT_EQ(names, known);
  Names ours, ours_known(headroom_keys().begin(), headroom_keys().end());
  for (const auto& [name, what] : schema["properties"]["headroom"]["properties"].items())
    ours.insert(name);
  EXPECT_EQ(ours, ours_known);
}

}  // namespace
}  // namespace headroom::config
