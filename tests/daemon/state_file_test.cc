// SPDX-License-Identifier: Apache-2.0
// State files: every field comes back, and no damage is taken for a value.
#include "base/state/state_file.h"

#include "act/original_values.h"
#include "base/state/checked_json.h"
#include "config/temp_dir.h"
#include "daemon/state/eviction_state.h"
#include "recording/shapes.h"
#include "support/story.h"

#include <fstream>
#include <iterator>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace headroom::state {
namespace {

using test::at_ms;
using test::TempDir;
namespace fs = std::filesystem;

std::string text_of(const fs::path& file) {
  std::ifstream in(file);
  return {std::istreambuf_iterator<char>(in), {}};
}

void write(const fs::path& file, const std::string& text) {
  std::ofstream(file, std::ios::trunc) << text;
}

std::string boot_id() {
  std::string id;
  std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), id);
  return id;
}

// Every member of every type, by the description that recordings use.
template <class T>
std::string bytes_of(const T& value) {
  std::string bytes;
  recording::InternTables tables;
  recording::Writer writer(bytes, tables, Instant{});
  writer(value);
  return bytes;
}

// Each member differs from its default.
Victim full_victim() {
  const Quantity quantity = *Quantity::parse("1536Mi");
  Container container{.name = "app",
                      .requests = {{"memory", quantity}},
                      .limits = {{"ephemeral-storage", quantity}},
                      .sidecar = true,
                      .pre_stop = {"/bin/sh", "-c", "sync"}};
  Volume volume{.name = "cache",
                .kind = Volume::Kind::kEmptyDir,
                .in_memory = true,
                .size_limit = quantity,
                .host_path = "/data"};
  auto pod = std::make_shared<Pod>();
  pod->uid = "uid";
  pod->name = "web";
  pod->pod_namespace = "team";
  pod->source = PodSource::kCgroupTree;
  pod->priority = -7;
  pod->priority_class = "low";
  pod->is_static = true;
  pod->declared_qos = QosClass::kBurstable;
  pod->termination_grace = std::chrono::seconds(31);
  pod->init_containers = {container};
  pod->containers = {container, container};
  pod->overhead = {{"memory", quantity}};
  pod->pod_level = container;
  pod->volumes = {volume, volume};
  pod->rootfs_path = "/r";
  pod->logs_path = "/l";
  return {
      .pod = pod,
      .cgroup = CgroupId{std::uint64_t{1} << 63},
      .reason = {.cause = Cause::kTaint,
                 .signal = Signal::kNodeFsInodesFree,
                 .hard = false,
                 .threshold = 1,
                 .available = 2,
                 .capacity = 3,
                 .sampled_at = at_ms(4),
                 .first_crossed = at_ms(5),
                 .last_clear = at_ms(6),
                 .taint = std::make_shared<const Taint>(Taint{"a", "b", TaintEffect::kNoExecute}),
                 .limit = StorageLimit::kContainer,
                 .subject = 1,
                 .used = 7},
      .phase = Victim::Phase::kRemoving,
      .terminated_at = at_ms(8),
      .killed_at = at_ms(9),
      .deadline = at_ms(10),
      .sigterm_due = at_ms(11),
      .gone_at = at_ms(12),
      .held = Bytes{13},
      .due_before = 14,
      .due = 15,
      .memory_request = Bytes{16},
      .left = Bytes{17},
      .ran = Duration(18),
      .part = {.unit = EvictionUnit::kProcess,
               .cgroup = CgroupId{19},
               .process = {20, 21},
               .comm = {'j', 'v', 'm'},
               .group = true},
      .page_tables = Bytes{22}};
}

struct StateFileTest : ::testing::Test {
  using Victims = std::vector<Victim>;
  const TempDir dir;
  const fs::path path = dir.path() / "victims.json";
  const StateFile<Victims> file{path};
  const Victims saved{full_victim()};

  nlohmann::json document() const { return nlohmann::json::parse(text_of(path)); }
  void put(nlohmann::json document) const {
    document["crc32c"] = crc32c(document["value"].dump());
    write(path, document.dump());
  }
};

TEST(Crc32c, OfTheCheckValue) {
  EXPECT_EQ(crc32c("123456789"), 0xe3069283);
  EXPECT_EQ(crc32c(""), 0u);
}

TEST_F(StateFileTest, EveryMemberComesBack) {
  ASSERT_TRUE(file.save(saved));
  const auto loaded = file.load();
  ASSERT_TRUE(loaded) << loaded.error().what;
  EXPECT_EQ(bytes_of(*loaded), bytes_of(saved));
}

TEST_F(StateFileTest, NoDamageIsTakenForAValue) {
  ASSERT_TRUE(file.save(saved));
  const std::string whole = text_of(path);
  const std::string expected = bytes_of(saved);
  const auto check = [&](const std::string& text, std::size_t at) {
    write(path, text);
    const auto loaded = file.load();
    if (!loaded || loaded->empty()) return;  // refused, or of another boot
    EXPECT_EQ(bytes_of(*loaded), expected) << "at " << at;
  };
  for (std::size_t at = 0; at < whole.size(); ++at) {
    std::string text = whole;
    text[at] = static_cast<char>(text[at] ^ 1);
    check(text, at);
    check(whole.substr(0, at), at);
  }
}

TEST_F(StateFileTest, AWrongChecksumIsReportedAndTheFileSetAside) {
  ASSERT_TRUE(file.save(saved));
  nlohmann::json changed = document();
  changed["value"][0]["deadline"] = 1;
  write(path, changed.dump());
  const auto loaded = file.load();
  ASSERT_FALSE(loaded);
  EXPECT_NE(loaded.error().what.find("the checksum is wrong"), std::string::npos);
  EXPECT_TRUE(fs::exists(path.string() + ".damaged"));
  EXPECT_TRUE(file.load()) << "the next start is not affected";
}

TEST_F(StateFileTest, ADirectoryInItsPlaceIsReportedAndSetAside) {
  fs::create_directory(file.path());
  EXPECT_FALSE(file.read());
  EXPECT_FALSE(file.load());
  EXPECT_FALSE(fs::exists(file.path()));
  EXPECT_TRUE(fs::exists(file.path().string() + ".damaged"));
}

TEST_F(StateFileTest, AFieldOfAnotherReleaseIsIgnoredAndAMissingOneKeepsItsDefault) {
  ASSERT_TRUE(file.save(saved));
  nlohmann::json other = document();
  other["value"][0]["of_the_future"] = 1;
  other["value"][0].erase("held");
  put(other);
  const auto loaded = file.load();
  ASSERT_TRUE(loaded) << loaded.error().what;
  EXPECT_EQ(loaded->front().held, std::nullopt);
  EXPECT_EQ(loaded->front().deadline, at_ms(10));
}

TEST_F(StateFileTest, AnEnumeratorThatIsUnknownIsAnError) {
  ASSERT_TRUE(file.save(saved));
  nlohmann::json other = document();
  other["value"][0]["phase"] = 77;
  put(other);
  EXPECT_FALSE(file.load());
}

// The parser takes a number beyond 64 bits for a floating-point one.
TEST_F(StateFileTest, ANumberThatIsNoIntegerIsAnError) {
  ASSERT_TRUE(file.save(saved));
  for (const char* key : {"deadline", "cgroup", "phase", "held"}) {
    nlohmann::json other = document();
    other["value"][0][key] = 1e30;
    put(other);
    EXPECT_FALSE(file.load()) << key;
    ASSERT_TRUE(file.save({}) && file.save(saved));
  }
}

TEST(OriginalValues, OfReleaseZeroPointOneAreIntegersAsWell) {
  const TempDir dir;
  write(dir.path() / "memory-high.json", R"({"boot_id": ")" + boot_id() + R"(", "limits": [
    {"cgroup": 7, "path": "/a", "found": null, "set": 123456789012345678901234567890}]})");
  const auto high = act::memory_high_file(dir.path()).load();
  ASSERT_FALSE(high);
  EXPECT_NE(high.error().what.find("a number is no integer"), std::string::npos);
}

TEST_F(StateFileTest, AnotherVersionIsAnError) {
  ASSERT_TRUE(file.save(saved));
  nlohmann::json other = document();
  other["version"] = 3;
  put(other);
  EXPECT_FALSE(file.load());
}

TEST_F(StateFileTest, AValueOfAnotherBootIsIgnored) {
  ASSERT_TRUE(file.save(saved));
  nlohmann::json other = document();
  other["boot_id"] = "another";
  put(other);
  const auto loaded = file.load();
  ASSERT_TRUE(loaded);
  EXPECT_TRUE(loaded->empty());
}

TEST_F(StateFileTest, AnEmptyValueIsNoFile) {
  ASSERT_TRUE(file.save(saved));
  ASSERT_TRUE(file.save({}));
  EXPECT_FALSE(fs::exists(path));
}

TEST(OriginalValues, OfReleaseZeroPointOneAreRead) {
  const TempDir dir;
  const std::string head = R"({"boot_id": ")" + boot_id() + R"(", )";
  write(dir.path() / "memory-high.json",
        head + R"("limits": [{"cgroup": 7, "path": "/a", "found": null, "set": 5}]})");
  write(dir.path() / "lifted-limits.json",
        head + R"("limits": [{"cgroup": 7, "path": "/a", "found": {"cpu.max": "1 2"}}]})");
  write(dir.path() / "oom-scores.json",
        head + R"("pods": [{"pod": 7, "path": "/a", "given": 9, "found": [[8, 1]]}]})");
  const auto high = act::memory_high_file(dir.path()).load();
  ASSERT_TRUE(high) << high.error().what;
  EXPECT_EQ(high->at(CgroupId{7}), (act::OriginalMemoryHigh{"/a", std::nullopt, Bytes{5}}));
  const auto limits = act::suspended_limits_file(dir.path()).load();
  ASSERT_TRUE(limits) << limits.error().what;
  EXPECT_EQ(limits->at(CgroupId{7}).values.at("cpu.max"), "1 2");
  const auto scores = act::oom_score_file(dir.path()).load();
  ASSERT_TRUE(scores) << scores.error().what;
  EXPECT_EQ(scores->at(CgroupId{7}).values.at(CgroupId{8}), 1);
  EXPECT_EQ(scores->at(CgroupId{7}).applied, 9);
}

TEST(OriginalValues, ComeBack) {
  const TempDir dir;
  const act::MemoryHighOverrides::Found high{{CgroupId{7}, {"/a", Bytes{6}, Bytes{5}}}};
  ASSERT_TRUE(act::memory_high_file(dir.path()).save(high));
  EXPECT_EQ(*act::memory_high_file(dir.path()).load(), high);
  const act::SuspendedLimits::Found limits{{CgroupId{7}, {"/a", {{"cpu.max", "max 1"}}}}};
  ASSERT_TRUE(act::suspended_limits_file(dir.path()).save(limits));
  EXPECT_EQ(*act::suspended_limits_file(dir.path()).load(), limits);
  const std::map<CgroupId, act::OriginalOomScores> scores{
      {CgroupId{7},
       {.path = "/a", .applied = 9, .values = {{CgroupId{8}, 1}}, .applied_before = 2}}};
  ASSERT_TRUE(act::oom_score_file(dir.path()).save(scores));
  EXPECT_EQ(*act::oom_score_file(dir.path()).load(), scores);
}

}  // namespace
}  // namespace headroom::state
