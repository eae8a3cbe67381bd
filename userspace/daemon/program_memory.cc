// SPDX-License-Identifier: Apache-2.0
#include "daemon/program_memory.h"

#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstddef>
#include <cstdint>

namespace headroom::daemon {
namespace {

struct Reading {
  std::span<const std::string_view> libraries;
  std::uintptr_t page;
  int error = 0;  // the first
};

// The program itself has no name.
bool is_wanted(std::string_view path, std::span<const std::string_view> libraries) {
  const std::string_view name = path.substr(path.rfind('/') + 1);
  return path.empty() || std::any_of(libraries.begin(), libraries.end(),
                                     [&](auto library) { return name.starts_with(library); });
}

void read_segment(std::uintptr_t base, const ElfW(Phdr) & segment, Reading& reading) {
  const std::uintptr_t begin = (base + segment.p_vaddr) & ~(reading.page - 1);
  const std::size_t size = base + segment.p_vaddr + segment.p_memsz - begin;
  if (::madvise(std::bit_cast<void*>(begin), size, MADV_POPULATE_READ) == 0) return;
  if (reading.error == 0) reading.error = errno;
}

int read_object(dl_phdr_info* object, std::size_t, void* data) {
  auto& reading = *static_cast<Reading*>(data);
  if (!is_wanted(object->dlpi_name, reading.libraries)) return 0;
  for (const ElfW(Phdr) & segment : std::span(object->dlpi_phdr, object->dlpi_phnum))
    if (segment.p_type == PT_LOAD) read_segment(object->dlpi_addr, segment, reading);
  return 0;
}

}  // namespace

Result<> read_program_into_memory(std::span<const std::string_view> libraries) {
  Reading reading{.libraries = libraries,
                  .page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE))};
  ::dl_iterate_phdr(&read_object, &reading);
  if (reading.error != 0) return errno_failure("read the program into memory", reading.error);
  return {};
}

}  // namespace headroom::daemon
