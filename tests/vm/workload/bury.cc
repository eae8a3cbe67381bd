// SPDX-License-Identifier: Apache-2.0
// bury: makes cgroups that are gone from the tree and yet charged, one after the other.
//
//   bury CGROUP DIRECTORY COUNT
//
// Each is made below CGROUP, which has the memory controller for its children; this process enters
// it, writes a page to a file in DIRECTORY, a tmpfs, where it stays, leaves for CGROUP-outside and
// removes it.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

namespace {

void die(const std::string& doing) {
  std::perror(doing.c_str());
  std::exit(1);
}

void put(const std::string& file, const char* text, std::size_t length, int flags) {
  const int fd = ::open(file.c_str(), O_WRONLY | O_CLOEXEC | flags, 0600);
  if (fd < 0 || ::write(fd, text, length) != static_cast<ssize_t>(length)) die("write " + file);
  ::close(fd);
}

void enter(const std::string& cgroup) {
  put(cgroup + "/cgroup.procs", "0", 1, 0);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: bury CGROUP DIRECTORY COUNT\n");
    return 2;
  }
  const std::string root = argv[1], outside = root + "-outside";
  if (::mkdir(outside.c_str(), 0755) != 0) die("make " + outside);
  for (int i = 0; i < std::atoi(argv[3]); ++i) {
    const std::string cgroup = root + "/dead-" + std::to_string(i);
    if (::mkdir(cgroup.c_str(), 0755) != 0) die("make " + cgroup);
    enter(cgroup);
    put(argv[2] + ("/" + std::to_string(i)), "x", 1, O_CREAT);
    enter(outside);
    if (::rmdir(cgroup.c_str()) != 0) die("remove " + cgroup);
  }
  return 0;
}
