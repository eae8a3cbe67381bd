// SPDX-License-Identifier: Apache-2.0
// hang: mounts a filesystem that answers nothing, and keeps it until it is killed.
//
//   hang DIRECTORY
//
// A stand-in for a network mount whose server is gone. It is a FUSE mount whose requests are never
// read, so statfs() and open() below it wait; the kernel ends the mount's connection with the
// process.
#include <fcntl.h>
#include <sys/mount.h>
#include <unistd.h>

#include <cstdio>
#include <string>

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: hang DIRECTORY\n");
    return 2;
  }
  const int device = ::open("/dev/fuse", O_RDWR | O_CLOEXEC);
  if (device < 0) {
    std::perror("open /dev/fuse");
    return 1;
  }
  const std::string options =
      "fd=" + std::to_string(device) + ",rootmode=40000,user_id=0,group_id=0,allow_other";
  if (::mount("hang", argv[1], "fuse", MS_NOSUID | MS_NODEV, options.c_str()) != 0) {
    std::perror("mount");
    return 1;
  }
  std::puts("mounted");
  std::fflush(stdout);
  for (;;)
    ::pause();
}
