// SPDX-License-Identifier: Apache-2.0
// pinning: what CPUs of its own are worth to a load that lives from its caches, on this machine.
//
//   pinning [--rounds 12] [--seconds 1] [--noise 3] [--set 768] [--out FILE]
//
// The load follows pointers through a set of so many KiB, in random order: every step waits for the
// cache. Noise threads write through 8 MiB each in bursts and sleep in between, as services do. In
// turns all threads may run anywhere, as in the shared pool, or the load has the last CPU for
// itself and the noise all others, by sched_setaffinity as the cpusets of headroomd would have it.
// Only these threads are pinned: other work of the machine affects both cases alike.
//
// A step's CPU time is the caches' part alone; what a batch of 4,096 steps takes by the clock has
// waiting for a CPU in it as well. Medians over the rounds, with their quartiles. What else ran on
// the machine is printed, as a share of its CPUs: above a twentieth the figures mean little.
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <numeric>
#include <random>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <nlohmann/json.hpp>

namespace {

using Clock = std::chrono::steady_clock;
using Json = nlohmann::ordered_json;

struct Options {
  unsigned rounds = 12;
  unsigned seconds = 1;
  unsigned noise = 3;
  unsigned set_kib = 768;
  std::string out;
};

[[noreturn]] void die(const std::string& what) {
  std::fprintf(stderr, "pinning: %s\n", what.c_str());
  std::exit(1);
}

std::vector<int> cpus_here() {
  cpu_set_t set;
  if (::sched_getaffinity(0, sizeof set, &set) != 0) die("sched_getaffinity");
  std::vector<int> cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(cpu, &set)) cpus.push_back(cpu);
  return cpus;
}

// The thread that calls.
void run_on(const std::vector<int>& cpus) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int cpu : cpus)
    CPU_SET(cpu, &set);
  if (::sched_setaffinity(0, sizeof set, &set) != 0) die("sched_setaffinity");
}

double cpu_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

long preemptions() {
  rusage usage{};
  ::getrusage(RUSAGE_THREAD, &usage);
  return usage.ru_nivcsw;
}

// One cycle through all cache lines of the set, in random order.
class PointerChase {
 public:
  explicit PointerChase(unsigned kib) : lines_(std::size_t{kib} * 1024 / sizeof(Line)) {
    std::vector<std::size_t> order(lines_.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::shuffle(order.begin(), order.end(), std::mt19937_64(42));
    for (std::size_t i = 0; i < order.size(); ++i)
      lines_[order[i]].next = &lines_[order[(i + 1) % order.size()]];
    at_ = lines_.data();
  }
  void follow(unsigned steps) {
    const Line* at = at_;
    for (unsigned i = 0; i < steps; ++i)
      at = at->next;
    at_ = at;
    asm volatile("" : : "r"(at) : "memory");
  }

 private:
  struct alignas(64) Line {
    const Line* next = nullptr;
  };
  std::vector<Line> lines_;
  const Line* at_ = nullptr;
};

// Bursts of writing, of a millisecond or three, and as much sleep: it wakes where there is room.
class Noise {
 public:
  Noise(unsigned threads, const std::vector<int>& cpus) {
    for (unsigned i = 0; i < threads; ++i)
      threads_.emplace_back([this, i, cpus] { run(i, cpus); });
  }
  ~Noise() {
    stop_ = true;
    for (std::thread& thread : threads_)
      thread.join();
  }
  Noise(const Noise&) = delete;
  Noise& operator=(const Noise&) = delete;

 private:
  void run(unsigned seed, const std::vector<int>& cpus) {
    run_on(cpus);
    std::vector<char> room(8U << 20);
    std::mt19937 random(seed);
    std::size_t at = 0;
    while (!stop_) {
      const auto until = Clock::now() + std::chrono::microseconds(1000 + random() % 2000);
      while (Clock::now() < until)
        for (int i = 0; i < 256; ++i, at = (at + 64) % room.size())
          ++room[at];
      std::this_thread::sleep_for(std::chrono::microseconds(500 + random() % 1000));
    }
  }

  std::atomic<bool> stop_ = false;
  std::vector<std::thread> threads_;
};

// CPU time of the whole machine and, of it, of this process, in seconds since when each began.
struct CpuSeconds {
  double all = 0, ours = 0;
};

double seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
}

// The first line of /proc/stat: user, nice, system, idle, iowait, irq, softirq, steal, in ticks.
CpuSeconds cpu_seconds() {
  std::ifstream file("/proc/stat");
  std::string cpu;
  double ticks = 0;
  file >> cpu;
  for (int column = 0; column < 8; ++column) {
    double value = 0;
    file >> value;
    if (column != 3 && column != 4) ticks += value;
  }
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return {ticks / static_cast<double>(::sysconf(_SC_CLK_TCK)),
          seconds(usage.ru_utime) + seconds(usage.ru_stime)};
}

struct Round {
  double step_cpu_ns, step_ns, batch_p99_us, cpu_share, preempted, moved;
};

constexpr unsigned kBatch = 4096;
constexpr double kMaxOthersShare = 0.05;

Round measure(PointerChase& chase, unsigned seconds) {
  std::vector<double> batches;
  const auto began = Clock::now();
  const double cpu = cpu_ns();
  const long before = preemptions();
  long moved = 0;
  int where = ::sched_getcpu();
  auto last = began;
  while (last - began < std::chrono::seconds(seconds)) {
    chase.follow(kBatch);
    const auto now = Clock::now();
    batches.push_back(std::chrono::duration<double, std::micro>(now - last).count());
    last = now;
    const int here = ::sched_getcpu();
    moved += here != where ? 1 : 0;
    where = here;
  }
  const double ns = std::chrono::duration<double, std::nano>(last - began).count();
  const double used = cpu_ns() - cpu, steps = static_cast<double>(batches.size()) * kBatch;
  const auto p99 = batches.begin() + static_cast<std::ptrdiff_t>(batches.size() * 99 / 100);
  std::nth_element(batches.begin(), p99, batches.end());
  return {.step_cpu_ns = used / steps,
          .step_ns = ns / steps,
          .batch_p99_us = *p99,
          .cpu_share = used / ns,
          .preempted = static_cast<double>(preemptions() - before) / (ns / 1e9),
          .moved = static_cast<double>(moved) / (ns / 1e9)};
}

Round one_round(const Options& options, const std::vector<int>& load,
                const std::vector<int>& rest) {
  const Noise noise(options.noise, rest);
  Round round{};
  std::thread([&] {
    run_on(load);
    PointerChase chase(options.set_kib);
    measure(chase, 1);  // until the noise is going, and the set has been seen
    round = measure(chase, options.seconds);
  }).join();
  return round;
}

Json quartiles(const std::vector<Round>& rounds, double Round::*what) {
  std::vector<double> values;
  for (const Round& round : rounds)
    values.push_back(round.*what);
  std::ranges::sort(values);
  const auto at = [&](std::size_t quarter) {
    return std::round(values[(values.size() - 1) * quarter / 4] * 100) / 100;
  };
  return {{"q1", at(1)}, {"median", at(2)}, {"q3", at(3)}};
}

Json rounds_json(const std::vector<Round>& rounds) {
  return {{"step_cpu_ns", quartiles(rounds, &Round::step_cpu_ns)},
          {"step_ns", quartiles(rounds, &Round::step_ns)},
          {"batch_p99_us", quartiles(rounds, &Round::batch_p99_us)},
          {"cpu_share", quartiles(rounds, &Round::cpu_share)},
          {"preempted_per_second", quartiles(rounds, &Round::preempted)},
          {"moved_per_second", quartiles(rounds, &Round::moved)}};
}

unsigned number(const char* text) {
  const int value = std::atoi(text);
  if (value <= 0) die(std::string("a number above zero, not \"") + text + '"');
  return static_cast<unsigned>(value);
}

Options parse_options(int argc, char** argv) {
  Options options;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string_view key = argv[i];
    if (key == "--rounds")
      options.rounds = number(argv[i + 1]);
    else if (key == "--seconds")
      options.seconds = number(argv[i + 1]);
    else if (key == "--noise")
      options.noise = number(argv[i + 1]);
    else if (key == "--set")
      options.set_kib = number(argv[i + 1]);
    else if (key == "--out")
      options.out = argv[i + 1];
    else
      die("unknown option " + std::string(key));
  }
  return options;
}

}  // namespace

int main(int argc, char** argv) {
  const Options options = parse_options(argc, argv);
  const std::vector<int> all = cpus_here();
  if (all.size() < 2) die("there is one CPU only: nothing to choose from");
  const std::vector<int> own{all.back()}, rest(all.begin(), all.end() - 1);
  std::vector<Round> anywhere, pinned;
  const CpuSeconds before = cpu_seconds();
  const auto began = Clock::now();
  for (unsigned i = 0; i < options.rounds; ++i) {
    anywhere.push_back(one_round(options, all, all));
    pinned.push_back(one_round(options, own, rest));
  }
  const CpuSeconds after = cpu_seconds();
  const double capacity =
      std::chrono::duration<double>(Clock::now() - began).count() * static_cast<double>(all.size());
  const double others = (after.all - before.all - (after.ours - before.ours)) / capacity;
  const Json row{{"cpus", all.size()},
                 {"rounds", options.rounds},
                 {"seconds", options.seconds},
                 {"noise", options.noise},
                 {"set_kib", options.set_kib},
                 {"others_share", std::round(others * 100) / 100},
                 {"anywhere", rounds_json(anywhere)},
                 {"pinned", rounds_json(pinned)}};
  std::printf("%s\n", row.dump(1).c_str());
  if (others > kMaxOthersShare)
    std::fprintf(stderr, "pinning: others used %.0f %% of the CPUs: the figures say little\n",
                 others * 100);
  if (options.out.empty()) return 0;
  std::ofstream file(options.out);
  file << Json::array({row}).dump(1) << '\n';
  return file ? 0 : 1;
}
