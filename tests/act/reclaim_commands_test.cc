// SPDX-License-Identifier: Apache-2.0
// The commands of headroom.reclaim: which, where, and as which user.
#include "act/host_actuator.h"
#include "config/temp_dir.h"
#include "daemon/config/running_config.h"
#include "support/command_servers.h"

#include <sys/types.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace headroom::act {
namespace {

using namespace std::chrono_literals;

// How the reclaim of both kinds ended.
Outcome reclaim(const ActuatorOptions& options) {
  HostActuator actuator([](CgroupId) { return -1; }, &test::clock_now, options);
  Decision decision;
  decision.act = Act::kReclaim;
  decision.steps = {.containers = true, .images = true};
  decision.deadline = test::clock_now() + 20s;
  EXPECT_EQ(actuator.act(decision).result, Outcome::Result::kStarted);
  std::vector<Outcome> ended;
  for (int i = 0; i < 2000 && ended.empty(); ++i) {
    std::this_thread::sleep_for(10ms);
    actuator.collect(ended);
  }
  return ended.empty() ? Outcome{} : ended.front();
}

std::vector<std::string> script(const std::string& text) {
  return {"/bin/sh", "-c", text};
}

TEST(ReclaimCommands, RunInTheirOrderWhereAndAsTheUserThatTheOptionsName) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root to run commands as another user";
  const test::Commands commands;
  std::filesystem::permissions(commands.directory(), std::filesystem::perms::all);
  for (const std::string& socket : {commands.path(), std::string()}) {
    SCOPED_TRACE(socket);
    const std::string file = commands.directory() / (socket.empty() ? "itself" : "socket");
    ActuatorOptions options;
    options.reclaim_containers = script("(id -u; ulimit -d) > " + file);
    options.reclaim_images = script("nice >> " + file + "; exit 5");
    options.reclaim_memory = std::uint64_t{64} << 20;
    options.reclaim_user = "nobody";  // check: allow-word
    options.commands_socket = socket;
    EXPECT_EQ(reclaim(options).error, Outcome::kExitStatus | 5);
    std::ifstream seen(file);
    EXPECT_EQ(std::string(std::istreambuf_iterator<char>(seen), {}), "65534\n65536\n19\n");
  }
}

TEST(ReclaimCommands, FailWithoutTheSocketOrTheUser) {
  const test::TempDir dir;
  ActuatorOptions options;
  options.reclaim_containers = options.reclaim_images =
      script("touch " + (dir.path() / "made").string());
  options.commands_socket = dir.path() / "none.sock";
  EXPECT_EQ(reclaim(options).error, ENOENT);
  options.commands_socket = "";
  options.reclaim_user = "no-such-user";
  EXPECT_EQ(reclaim(options).error, ENOENT);
  EXPECT_FALSE(std::filesystem::exists(dir.path() / "made"));
}

TEST(ReclaimCommands, AreForTheSocketThatTheUnitNames) {
  config::Config config;
  config.reclaim.user = "pruner";
  ::unsetenv("HEADROOM_COMMANDS_SOCKET");
  EXPECT_EQ(daemon::actuator_options_of(config).commands_socket, "");
  ::setenv("HEADROOM_COMMANDS_SOCKET", "/run/x.sock", 1);
  const ActuatorOptions options = daemon::actuator_options_of(config);
  ::unsetenv("HEADROOM_COMMANDS_SOCKET");
  EXPECT_EQ(options.commands_socket, "/run/x.sock");
  EXPECT_EQ(options.reclaim_user, "pruner");
}

}  // namespace
}  // namespace headroom::act
