// SPDX-License-Identifier: Apache-2.0
#include "daemon/turn/allocation_count.h"

#include <cstddef>
#include <cstdlib>

namespace headroom::daemon {
namespace {

// Plain thread-local storage of the executable: reading it allocates nothing.
thread_local std::uint64_t allocations = 0;

}  // namespace

std::uint64_t thread_allocation_count() {
  return allocations;
}

}  // namespace headroom::daemon

// g++ defines __SANITIZE_ADDRESS__ and __SANITIZE_THREAD__; clang has __has_feature() instead.
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define HEADROOM_SANITIZER_HAS_MALLOC
#endif
#elif defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define HEADROOM_SANITIZER_HAS_MALLOC
#endif

#ifdef HEADROOM_SANITIZER_HAS_MALLOC

// These sanitizers replace malloc themselves, and offer hooks.
extern "C" int __sanitizer_install_malloc_and_free_hooks(void (*malloc_hook)(const volatile void*,
                                                                             std::size_t),
                                                         void (*free_hook)(const volatile void*));

namespace {
[[maybe_unused]] const int installed = __sanitizer_install_malloc_and_free_hooks(
    [](const volatile void*, std::size_t) { ++headroom::daemon::allocations; },
    [](const volatile void*) {});
}  // namespace

#else

// This malloc replaces glibc's for every library in the process, and calls glibc's own (glibc
// manual, "Replacing malloc"; glibc exports the __libc_ names for it). operator new calls it too.
extern "C" {
void* __libc_malloc(std::size_t size) noexcept;
void* __libc_calloc(std::size_t count, std::size_t size) noexcept;
void* __libc_realloc(void* old, std::size_t size) noexcept;
void* __libc_memalign(std::size_t alignment, std::size_t size) noexcept;

void* malloc(std::size_t size) noexcept {
  ++headroom::daemon::allocations;
  return __libc_malloc(size);
}
void* calloc(std::size_t count, std::size_t size) noexcept {
  ++headroom::daemon::allocations;
  return __libc_calloc(count, size);
}
void* realloc(void* old, std::size_t size) noexcept {
  ++headroom::daemon::allocations;
  return __libc_realloc(old, size);
}
void* memalign(std::size_t alignment, std::size_t size) noexcept {
  ++headroom::daemon::allocations;
  return __libc_memalign(alignment, size);
}
void* aligned_alloc(std::size_t alignment, std::size_t size) noexcept {
  return memalign(alignment, size);
}
}

#endif
