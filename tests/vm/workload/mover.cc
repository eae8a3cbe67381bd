// SPDX-License-Identifier: Apache-2.0
// mover: does to the cgroup tree what starting and ending pods does, and times it.
//
//   mover CGROUP PERIOD_MS SECONDS
//
// Below CGROUP, which it makes, it moves a sleeping process to and fro between two cgroups, and
// makes and removes a third, once in each period. Prints {"move_us": {"count", "mean", "p50",
// "p99", "max"}, "mkdir_us": ..., "rmdir_us": ...} at the end.
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

class Times {
 public:
  template <typename Operation>
  void take(Operation&& operation) {
    const auto began = Clock::now();
    if (!operation()) {
      std::perror("mover");
      std::exit(1);
    }
    const std::chrono::duration<double, std::micro> took = Clock::now() - began;
    us_.push_back(took.count());
  }

  void print(const char* name, const char* end) {
    std::sort(us_.begin(), us_.end());
    const auto at = [&](double share) {
      return us_[static_cast<std::size_t>(share * static_cast<double>(us_.size() - 1))];
    };
    const double sum = std::accumulate(us_.begin(), us_.end(), 0.0);
    std::printf(
        "\"%s\": {\"count\": %zu, \"mean\": %.1f, \"p50\": %.1f, \"p99\": %.1f, \"max\": %.1f}%s",
        name, us_.size(), sum / static_cast<double>(us_.size()), at(0.5), at(0.99), us_.back(),
        end);
  }

 private:
  std::vector<double> us_;
};

bool make(const std::string& path) {
  return ::mkdir(path.c_str(), 0755) == 0;
}

bool move(pid_t process, const std::string& cgroup) {
  std::ofstream file(cgroup + "/cgroup.procs");
  file << process << std::flush;
  return file.good();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: mover CGROUP PERIOD_MS SECONDS\n");
    return 2;
  }
  const std::string top = argv[1];
  const std::string places[] = {top + "/one", top + "/other"};
  if (!make(top) || !make(places[0]) || !make(places[1])) {
    std::perror("mover: make the cgroups");
    return 1;
  }
  const pid_t sleeper = ::fork();
  if (sleeper == 0)
    for (;;)
      ::pause();
  Times moves, mkdirs, rmdirs;
  const auto end = Clock::now() + std::chrono::seconds(std::atoi(argv[3]));
  const std::chrono::milliseconds period(std::atoi(argv[2]));
  for (std::size_t round = 0; Clock::now() < end; ++round) {
    const std::string passing = top + "/passing";
    moves.take([&] { return move(sleeper, places[round % 2]); });
    mkdirs.take([&] { return make(passing); });
    rmdirs.take([&] { return ::rmdir(passing.c_str()) == 0; });
    std::this_thread::sleep_for(period);
  }
  ::kill(sleeper, SIGKILL);
  std::printf("{");
  moves.print("move_us", ", ");
  mkdirs.print("mkdir_us", ", ");
  rmdirs.print("rmdir_us", "}\n");
  return 0;
}
