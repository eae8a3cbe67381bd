// SPDX-License-Identifier: Apache-2.0
// KubeletConfiguration with our section: a configuration comes out only if nothing was complained
// of.
#include "config/load/load.h"
#include "fuzz.h"

#include <sys/mman.h>
#include <unistd.h>

#include <string>

int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace headroom;
  const int file = memfd_create("headroom.yaml", MFD_CLOEXEC);
  if (file < 0 || write(file, bytes, size) != static_cast<ssize_t>(size)) std::abort();
  config::CommandLine line;
  line.config = {"/proc/self/fd/" + std::to_string(file)};
  const config::LoadResult loaded = config::read(line);
  fuzz::promise(config::load(line).has_value() == loaded.diagnostics.empty(),
                "a complaint is a refusal, and a refusal has its complaint");
  close(file);
  return 0;
}
