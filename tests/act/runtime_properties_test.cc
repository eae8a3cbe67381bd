// SPDX-License-Identifier: Apache-2.0
// Settings of units through systemd, for which a thread stands on a bus of the test's own: what a
// call does that is delivered long after it was made.
#include "act/units/runtime_properties.h"

#include "act/limits/memory_high_overrides.h"
#include "base/bus/bus_message.h"
#include "base/cgroup_directory.h"
#include "base/file_io.h"
#include "config/temp_dir.h"
#include "support/eventually.h"
#include "support/make_again.h"
#include "support/private_bus.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <systemd/sd-bus.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include <gtest/gtest.h>

namespace headroom::act {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

constexpr const char* kUnit = "headroom-test.slice";

// Writes a setting of MemoryHigh for each call, whether there is such a unit or not, and keeps the
// value of each call.
class SystemdDouble {
 public:
  explicit SystemdDouble(fs::path settings) : settings_(std::move(settings)) {
    thread_ = std::thread([this] { run(); });
    EXPECT_TRUE(test::eventually([this] { return ready_.load(); }));
  }
  ~SystemdDouble() { end(); }
  void write_to(const fs::path& cgroup) {
    const std::lock_guard lock(mutex_);
    cgroup_ = cgroup;
  }
  void refuse_changes() {
    const std::lock_guard lock(mutex_);
    refuses_ = true;
  }
  void load(const std::string& unit) {
    const std::lock_guard lock(mutex_);
    loaded_.emplace(unit, "infinity");
  }
  // The value that the unit is started with.
  std::string value_of(const std::string& unit) {
    end();
    return loaded_.at(unit);
  }

 private:
  static int on_call(sd_bus_message* message, void* data, sd_bus_error*) {
    auto* const self = static_cast<SystemdDouble*>(data);
    const std::lock_guard lock(self->mutex_);
    const char* unit = nullptr;
    if (sd_bus_message_is_method_call(message, nullptr, "GetUnit") > 0) {
      sd_bus_message_read(message, "s", &unit);
      if (self->loaded_.contains(unit)) return sd_bus_reply_method_return(message, "o", "/unit");
      return sd_bus_reply_method_errorf(message, "org.freedesktop.systemd1.NoSuchUnit",
                                        "Unit %s not loaded.", unit);
    }
    if (sd_bus_message_is_method_call(message, nullptr, "SetUnitProperties") <= 0) return 0;
    if (self->refuses_)
      return sd_bus_reply_method_errorf(message, "org.freedesktop.systemd1.UnitMasked", "masked");
    const char* property = nullptr;
    std::uint64_t value = 0;
    const int read =
        sd_bus_message_read(message, "sba(sv)", &unit, nullptr, 1, &property, "t", &value);
    EXPECT_GE(read, 0);
    const std::string text = value == UINT64_MAX ? "infinity" : std::to_string(value);
    const auto directory = self->settings_ / (std::string(unit) + ".d");
    fs::create_directories(directory);
    std::ofstream(directory / "50-MemoryHigh.conf") << "[Slice]\nMemoryHigh=" << text << '\n';
    if (self->loaded_.contains(unit)) self->loaded_[unit] = text;
    self->unwritten_ = value == UINT64_MAX ? "max" : text;
    return sd_bus_reply_method_return(message, nullptr);
  }
  void run() {
    sd_bus* bus = nullptr;
    if (sd_bus_open_system(&bus) < 0) return;
    sd_bus_add_object(bus, nullptr, "/org/freedesktop/systemd1", on_call, this);
    ready_ = sd_bus_request_name(bus, "org.freedesktop.systemd1", 0) >= 0;
    while (!stop_) {
      const int r = sd_bus_process(bus, nullptr);
      if (r == 0) write();
      if (r == 0) sd_bus_wait(bus, 10'000);
      if (r < 0) break;
    }
    sd_bus_flush_close_unref(bus);
  }

  void write() {
    const std::lock_guard lock(mutex_);
    if (!cgroup_.empty() && !unwritten_.empty())
      std::ofstream(cgroup_ / "memory.high") << std::exchange(unwritten_, "") << '\n';
  }
  void end() {
    stop_ = true;
    if (thread_.joinable()) thread_.join();
  }

  const fs::path settings_;
  std::mutex mutex_;  // protects the members below
  fs::path cgroup_;
  std::string unwritten_;  // it answers before it writes
  std::map<std::string, std::string> loaded_;
  bool refuses_ = false;
  std::atomic<bool> ready_ = false, stop_ = false;
  std::thread thread_;
};

class RuntimePropertiesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!bus.runs()) GTEST_SKIP() << "no dbus-daemon on this machine";
    systemd.emplace(dir.path());
  }
  RuntimeProperties connection() const { return RuntimeProperties("test", dir.path(), 200ms); }
  static Result<> set(RuntimeProperties& properties, const char* unit = kUnit) {
    return properties.set(unit, {{.name = "MemoryHigh", .value = std::uint64_t{2 << 20}}});
  }
  bool has_setting(const char* unit = kUnit) const {
    return fs::exists(dir.path() / (std::string(unit) + ".d"));
  }
  // All that was sent before is delivered then.
  void expect_no_late_setting() {
    auto other = connection();
    EXPECT_TRUE(test::eventually([&] { return set(other, "other.slice").has_value(); }));
    EXPECT_FALSE(has_setting());
  }

  const test::PrivateBus bus;
  const test::TempDir dir;
  std::optional<SystemdDouble> systemd;
};

TEST_F(RuntimePropertiesTest, ASettingIsMadeAndRemoved) {
  auto properties = connection();
  ASSERT_TRUE(set(properties));
  EXPECT_EQ(properties.setting(kUnit, "MemoryHigh"), "2097152");
  EXPECT_TRUE(properties.remove(kUnit, {"MemoryHigh"}));
  EXPECT_FALSE(has_setting());
}

TEST_F(RuntimePropertiesTest, WhatIsDeliveredLateIsRemovedAfterIt) {
  auto properties = connection();
  ASSERT_TRUE(set(properties, "other.slice"));
  bus.pause();
  EXPECT_FALSE(set(properties));
  EXPECT_FALSE(properties.remove(kUnit, {"MemoryHigh"})) << "it may still come";
  bus.resume();
  EXPECT_TRUE(
      test::eventually([&] { return properties.remove(kUnit, {"MemoryHigh"}).has_value(); }));
  expect_no_late_setting();
}

TEST_F(RuntimePropertiesTest, ABusThatHangsIsNotWaitedForLong) {
  bus.pause();
  auto properties = connection();
  const auto began = std::chrono::steady_clock::now();
  EXPECT_FALSE(set(properties)) << "the bus does not greet";
  EXPECT_LT(std::chrono::steady_clock::now() - began, 10s) << "sd-bus waits for 90";
}

TEST_F(RuntimePropertiesTest, WithoutABusNothingIsDelivered) {
  auto properties = connection();
  fs::create_directory(dir.path() / (std::string(kUnit) + ".d"));
  properties.expect_earlier_calls();
  const test::NoBus no_bus;
  EXPECT_TRUE(properties.remove(kUnit, {"MemoryHigh"}));
  EXPECT_FALSE(has_setting());
}

// The pod of an override ends while the bus does not deliver.
struct OverridesOnABus : RuntimePropertiesTest {
  OverridesOnABus() {
    fs::create_directory(unit);
    std::ofstream(unit / "memory.high") << "1048576\n";
    directory.reset(::open(unit.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    struct stat status {};
    EXPECT_EQ(::fstat(directory.get(), &status), 0);
    cgroup = CgroupId{status.st_ino};
  }
  static Result<> do_not_save(const MemoryHighOverrides::Found&) { return {}; }

  const test::TempDir root;
  const fs::path unit = root.path() / kUnit;
  Fd directory;
  CgroupId cgroup;
};

TEST_F(OverridesOnABus, OfAPodThatIsGoneNoSettingIsLeft) {
  auto connected = connection();
  ASSERT_TRUE(set(connected, "other.slice"));
  MemoryHighOverrides held(root.path(), do_not_save, {}, std::move(connected));
  bus.pause();
  EXPECT_NE(held.override_high(cgroup, directory.get(), Bytes{2 << 20}), 0);
  fs::remove_all(unit);
  EXPECT_NE(held.restore(cgroup), 0);
  EXPECT_EQ(held.held(), 1u) << "systemd may yet write the setting";
  bus.resume();
  EXPECT_TRUE(test::eventually([&] { return held.restore(cgroup) == 0; }));
  EXPECT_EQ(held.held(), 0u);
  expect_no_late_setting();
}

TEST_F(OverridesOnABus, OfADaemonThatWasKilledNoSettingIsLeft) {
  {
    auto killed = connection();
    ASSERT_TRUE(set(killed, "other.slice"));
    bus.pause();
    EXPECT_FALSE(set(killed));
  }
  fs::remove_all(unit);
  MemoryHighOverrides next(root.path(), do_not_save, {}, connection());
  const MemoryHighOverrides::Found former{
      {cgroup, {.path = "/" + std::string(kUnit), .found = {}, .set = Bytes{2 << 20}}}};
  next.restore_all(former);
  EXPECT_EQ(next.held(), 1u) << "the bus does not answer";
  bus.resume();
  EXPECT_TRUE(test::eventually([&] { return next.restore(CgroupId{1}) == 0 && next.held() == 0; }));
  expect_no_late_setting();
}

// Stopped, or started again with the value that was set: systemd keeps it loaded with that value.
struct OverridesOfALoadedUnit : OverridesOnABus {
  void SetUp() override {
    OverridesOnABus::SetUp();
    if (!systemd) return;
    systemd->load(kUnit);
    auto killed = connection();
    EXPECT_TRUE(set(killed));
  }
  void restore(const OriginalMemoryHigh& held) {
    MemoryHighOverrides next(root.path(), do_not_save, {}, connection());
    next.restore_all({{cgroup, held}});
    EXPECT_EQ(next.held(), 0u);
  }
  const std::string path = "/" + std::string(kUnit);
};

TEST_F(OverridesOfALoadedUnit, TheNextStartHasTheOriginalValue) {
  fs::remove_all(unit);
  restore({.path = path, .found = Bytes{1 << 20}, .set = Bytes{2 << 20}, .had_setting = false});
  EXPECT_FALSE(has_setting());
  EXPECT_EQ(systemd->value_of(kUnit), "1048576");
}

TEST_F(OverridesOfALoadedUnit, TheSettingOfAnOperatorIsRestored) {
  fs::remove_all(unit);
  restore({.path = path, .found = Bytes{1 << 20}, .set = Bytes{2 << 20}});
  EXPECT_EQ(connection().setting(kUnit, "MemoryHigh"), "1048576");
  EXPECT_EQ(systemd->value_of(kUnit), "1048576");
}

// Its file was removed, or it is masked.
TEST_F(OverridesOfALoadedUnit, OfAUnitThatSystemdRefusesToChangeNoSettingIsLeft) {
  systemd->refuse_changes();
  fs::remove_all(unit);
  restore({.path = path, .found = Bytes{1 << 20}, .set = Bytes{2 << 20}});
  EXPECT_FALSE(has_setting());
}

TEST_F(OverridesOfALoadedUnit, AnotherSettingStays) {
  fs::remove_all(unit);
  restore({.path = path, .found = {}, .set = Bytes{3 << 20}, .had_setting = false});
  EXPECT_TRUE(has_setting());
  EXPECT_EQ(systemd->value_of(kUnit), "2097152");
}

// It is started again while it is overridden.
TEST_F(OverridesOnABus, TheNextOverrideDoesNotTakeOursForTheOriginal) {
  systemd->load(kUnit);
  MemoryHighOverrides::Found saved;
  const auto save = [&saved](const MemoryHighOverrides::Found& found) {
    saved = found;
    return Result<>();
  };
  MemoryHighOverrides held(root.path(), save, {}, connection());
  systemd->write_to(unit);
  ASSERT_EQ(held.override_high(cgroup, directory.get(), Bytes{2 << 20}), 0);
  test::make_again(unit);
  const Fd again(::open(unit.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const CgroupId restarted = cgroup_id_of(again.get()).value();
  ASSERT_EQ(held.override_high(restarted, again.get(), Bytes{3 << 20}), 0);
  ASSERT_EQ(saved.size(), 1u);
  EXPECT_EQ(saved.at(restarted).found, Bytes{1 << 20});
  EXPECT_FALSE(saved.at(restarted).had_setting);
  held.restore_all();
}

}  // namespace
}  // namespace headroom::act
