// SPDX-License-Identifier: Apache-2.0
// workload: what the lab's pods run. It holds memory, and takes more at a given rate.
//
//   workload [--hold BYTES] [--rate BYTES] [--until BYTES] [--after SECONDS] [--deaf] [--exit]
//   [--huge] [--random] [--churn] [--tasks N] [--map FILE] [--write FILE] [--log FILE]
//   [--probe SECONDS] [--light] [--kind anonymous|pipes|sockets|page-tables|dentries|tmpfs]
//
// Touches --hold bytes at once, waits --after seconds, then touches --rate bytes a second (0: as
// fast as it can) until --until are held, and sleeps, or ends with --exit. --deaf ignores SIGTERM.
// --huge takes huge pages, which is the fastest there is. --churn touches what --hold took again
// and again: as a working set that does not fit. --map reads pieces of FILE, mapped, by
// chance and for ever: as the text of a program that does not fit. --random fills pages with what
// no compressor makes smaller. --tasks starts so many threads first, --write one that writes to
// FILE once --hold is held. --probe runs for so many seconds and says how late it was (probe.h);
// the pages it needs are those of --hold and --map; --light: with next to no CPU time for each
// request. --kind says what memory the ramp takes: the kernel holds pipes, sockets, page tables and
// dentries; all of it ends with the process. --log says in FILE when how much anonymous memory was
// taken: two 64-bit numbers for each MiB, nanoseconds since boot and bytes, of which a process that
// is killed leaves what it had written. Sizes take K, M, G.
#include "probe.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <thread>

namespace {

struct Options {
  std::uint64_t hold = 0, rate = 0, until = 0, after = 0, tasks = 0, probe = 0;
  const char* map = nullptr;
  const char* write = nullptr;
  const char* log = nullptr;
  std::string kind = "anonymous";
  bool deaf = false, exit = false, huge = false, random = false, churn = false, light = false;
};

std::uint64_t bytes(const char* text) {
  char* end = nullptr;
  const std::uint64_t n = std::strtoull(text, &end, 10);
  switch (*end) {
    case 'K':
      return n << 10;
    case 'M':
      return n << 20;
    case 'G':
      return n << 30;
    default:
      return n;
  }
}

bool* flag_named(const std::string& key, Options& options) {
  if (key == "--deaf") return &options.deaf;
  if (key == "--exit") return &options.exit;
  if (key == "--huge") return &options.huge;
  if (key == "--random") return &options.random;
  if (key == "--churn") return &options.churn;
  if (key == "--light") return &options.light;
  return nullptr;
}

Options parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string key = argv[i];
    if (bool* flag = flag_named(key, options)) {
      *flag = true;
      continue;
    }
    if (i + 1 == argc) {
      std::fprintf(stderr, "workload: %s needs a value\n", key.c_str());
      std::exit(2);
    }
    const char* value = argv[++i];
    if (key == "--hold")
      options.hold = bytes(value);
    else if (key == "--rate")
      options.rate = bytes(value);
    else if (key == "--until")
      options.until = bytes(value);
    else if (key == "--tasks")
      options.tasks = bytes(value);
    else if (key == "--probe")
      options.probe = bytes(value);
    else if (key == "--map")
      options.map = value;
    else if (key == "--write")
      options.write = value;
    else if (key == "--log")
      options.log = value;
    else if (key == "--kind")
      options.kind = value;
    else if (key == "--after")
      options.after = bytes(value);
    else {
      std::fprintf(stderr, "workload: unknown option %s\n", key.c_str());
      std::exit(2);
    }
  }
  return options;
}

void fill(volatile char* page, std::minstd_rand& chance) {
  auto* words = reinterpret_cast<volatile std::uint32_t*>(page);
  for (int i = 0; i < 1024; ++i)
    words[i] = static_cast<std::uint32_t>(chance()) * 2'654'435'761U;
}

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

// What --log says.
class Log {
 public:
  void open(const char* file) {
    const int fd = ::open(file, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    void* memory = MAP_FAILED;
    if (fd >= 0 && ::ftruncate(fd, kCount * sizeof(Entry)) == 0)
      memory = ::mmap(nullptr, kCount * sizeof(Entry), PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_POPULATE, fd, 0);
    if (memory == MAP_FAILED) {
      std::perror("workload: log");
      std::exit(1);
    }
    entries_ = static_cast<Entry*>(memory);
  }
  void add(std::uint64_t bytes) {
    taken_ += bytes;
    if (!entries_ || next_ == kCount) return;
    timespec now{};
    ::clock_gettime(CLOCK_BOOTTIME, &now);
    entries_[next_++] = {static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 +
                             static_cast<std::uint64_t>(now.tv_nsec),
                         taken_};
  }

 private:
  struct Entry {
    std::uint64_t at, bytes;
  };
  static constexpr std::size_t kCount = 1 << 14;
  Entry* entries_ = nullptr;
  std::size_t next_ = 0;
  std::uint64_t taken_ = 0;
} progress;

// Takes and dirties anonymous memory, a page at a time: as a heap grows.
volatile char* take(std::uint64_t size, bool huge, bool random) {
  void* memory = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    std::perror("workload: mmap");
    std::exit(1);
  }
  ::madvise(memory, size, huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
  auto* pages = static_cast<volatile char*>(memory);
  static std::minstd_rand chance;
  for (std::uint64_t at = 0; at < size; at += 4096) {
    if (random) fill(pages + at, chance);
    pages[at] = 1;
    if ((at + 4096) % kMiB == 0) progress.add(kMiB);
  }
  return pages;
}

// --- memory that is not anonymous ----------------------------------------------------------------

void check(bool done, const char* what) {
  if (done) return;
  std::perror(what);
  std::exit(1);
}

// Writes at least so much into what no process reads.
void write_all(int fd, std::uint64_t size) {
  static const char data[65536] = {};
  for (std::uint64_t done = 0; done < size;) {
    const ssize_t put = ::write(fd, data, std::min<std::uint64_t>(sizeof data, size - done));
    check(put > 0, "workload: write");
    done += static_cast<std::uint64_t>(put);
  }
}

void take_pipe(std::uint64_t size) {
  int ends[2];
  check(::pipe2(ends, O_CLOEXEC) == 0, "workload: pipe");
  check(::fcntl(ends[1], F_SETPIPE_SZ, static_cast<int>(size)) >= 0, "workload: F_SETPIPE_SZ");
  write_all(ends[1], size);
}

void take_socket(std::uint64_t size) {
  int ends[2];
  check(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0, "workload: socketpair");
  const int room = static_cast<int>(4 * size);
  check(::setsockopt(ends[0], SOL_SOCKET, SO_SNDBUFFORCE, &room, sizeof room) == 0,
        "workload: SO_SNDBUFFORCE");
  write_all(ends[0], size);
}

// A page of page tables for each 2 MiB of addresses; what is read there is the zero page.
void take_page_tables(std::uint64_t size) {
  constexpr std::uint64_t kCovered = std::uint64_t{2} << 20;
  const std::uint64_t addresses = size / 4096 * kCovered;
  void* memory =
      ::mmap(nullptr, addresses, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  check(memory != MAP_FAILED, "workload: mmap");
  ::madvise(memory, addresses, MADV_NOHUGEPAGE);
  const auto* at = static_cast<const volatile char*>(memory);
  for (std::uint64_t offset = 0; offset < addresses; offset += kCovered)
    static_cast<void>(at[offset]);
}

// A tmpfs that no other process sees: it is gone with this one.
int own_tmpfs() {
  check(::unshare(CLONE_NEWNS) == 0, "workload: unshare");
  check(::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0, "workload: mount /");
  check(::mount("tmpfs", "/tmp", "tmpfs", 0, "nr_inodes=0") == 0, "workload: mount a tmpfs");
  return ::open("/tmp", O_PATH | O_DIRECTORY | O_CLOEXEC);
}

// Of empty files: a dentry and an inode of 1 KiB together, which a tmpfs cannot drop.
void take_dentries(std::uint64_t size) {
  static const int directory = own_tmpfs();
  static std::uint64_t made = 0;
  for (std::uint64_t done = 0; done < size; done += 1024)
    check(::mknodat(directory, std::to_string(made++).c_str(), S_IFREG | 0600, 0) == 0,
          "workload: mknodat");
}

void take_tmpfs(std::uint64_t size) {
  static const int fd = ::memfd_create("workload", MFD_CLOEXEC);
  check(fd >= 0, "workload: memfd_create");
  write_all(fd, size);
}

void take_step(const Options& options, std::uint64_t size) {
  if (options.kind == "pipes") return take_pipe(size);
  if (options.kind == "sockets") return take_socket(size);
  if (options.kind == "page-tables") return take_page_tables(size);
  if (options.kind == "dentries") return take_dentries(size);
  if (options.kind == "tmpfs") return take_tmpfs(size);
  take(size, options.huge, options.random);
}

void raise_descriptor_limit() {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

[[noreturn]] void churn(volatile char* pages, std::uint64_t size) {
  for (;;)
    for (std::uint64_t at = 0; at < size; at += 4096)
      pages[at] = static_cast<char>(pages[at] + 1);
}

constexpr std::uint64_t kChunk = 256 * 1024;

probe::Pages map_file(const char* file) {
  const int fd = ::open(file, O_RDONLY | O_CLOEXEC);
  struct stat status {};
  if (fd < 0 || ::fstat(fd, &status) != 0) {
    std::perror("workload: open");
    std::exit(1);
  }
  const auto size = static_cast<std::uint64_t>(status.st_size);
  void* memory = ::mmap(nullptr, size, PROT_READ | PROT_EXEC, MAP_SHARED, fd, 0);
  if (memory == MAP_FAILED) {
    std::perror("workload: mmap");
    std::exit(1);
  }
  return {static_cast<const volatile char*>(memory), size / 4096};
}

[[noreturn]] void read_mapped(const char* file) {
  const probe::Pages pages = map_file(file);
  std::minstd_rand chance(static_cast<unsigned>(::getpid()));
  for (;;) {
    const std::uint64_t chunk = chance() % (pages.count * 4096 / kChunk) * kChunk;
    for (std::uint64_t at = chunk; at < chunk + kChunk; at += 4096)
      static_cast<void>(pages.at[at]);
  }
}

void ramp(const Options& options) {
  const std::uint64_t step = std::uint64_t{1} << (options.huge ? 26 : 20);
  timespec next{};
  ::clock_gettime(CLOCK_MONOTONIC, &next);
  for (std::uint64_t held = options.hold; held < options.until; held += step) {
    take_step(options, step);
    if (options.rate == 0) continue;
    const std::uint64_t pause = step * 1'000'000'000ULL / options.rate;
    next.tv_nsec += static_cast<long>(pause % 1'000'000'000ULL);
    next.tv_sec += static_cast<time_t>(pause / 1'000'000'000ULL) + next.tv_nsec / 1'000'000'000L;
    next.tv_nsec %= 1'000'000'000L;
    ::clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, nullptr);
  }
}

void write_to(const char* file) {
  const int fd = ::open(file, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
  if (fd < 0 || ::write(fd, "x", 1) != 1) std::perror("workload: write");
}

}  // namespace

int main(int argc, char** argv) {
  const Options options = parse(argc, argv);
  if (options.deaf) std::signal(SIGTERM, SIG_IGN);
  if (options.log) progress.open(options.log);
  raise_descriptor_limit();
  for (std::uint64_t i = 0; i < options.tasks; ++i)
    std::thread([] {
      for (;;)
        ::pause();
    }).detach();
  volatile char* held = options.hold > 0 ? take(options.hold, false, options.random) : nullptr;
  if (options.write) std::thread(write_to, options.write).detach();
  ::sleep(static_cast<unsigned>(options.after));
  ramp(options);
  if (options.probe > 0) {
    probe::run(options.probe, options.light ? probe::kLightWork : probe::kWork,
               {held, options.hold / 4096}, options.map ? map_file(options.map) : probe::Pages{});
    return 0;
  }
  if (options.exit) return 0;
  if (options.map) read_mapped(options.map);
  if (held && options.churn) churn(held, options.hold);
  for (;;)
    ::pause();
}
