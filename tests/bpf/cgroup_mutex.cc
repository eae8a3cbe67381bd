// SPDX-License-Identifier: Apache-2.0
#include "cgroup_mutex.h"

#include "cgroup_mutex.skel.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <utility>

namespace headroom::test {
namespace {

std::size_t page_size() {
  return static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

Result<Fd> open_iterator(const bpf_program* program, const std::string& cgroup) {
  const Fd directory(::open(cgroup.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!directory) return errno_failure("open " + cgroup, errno);
  bpf_iter_link_info which{};
  which.cgroup.order = BPF_CGROUP_ITER_SELF_ONLY;
  which.cgroup.cgroup_fd = static_cast<__u32>(directory.get());
  DECLARE_LIBBPF_OPTS(bpf_iter_attach_opts, options, .link_info = &which,
                      .link_info_len = sizeof which);
  bpf_link* link = bpf_program__attach_iter(program, &options);
  if (!link) return errno_failure("attach the program", errno);
  Fd iterator(bpf_iter_create(bpf_link__fd(link)));
  const int error = errno;
  bpf_link__destroy(link);  // the iterator keeps it
  if (!iterator) return errno_failure("make the iterator", error);
  return iterator;
}

}  // namespace

Result<std::unique_ptr<HeldCgroupMutex>> HeldCgroupMutex::hold(const std::string& cgroup) {
  std::unique_ptr<HeldCgroupMutex> mutex(new HeldCgroupMutex);
  mutex->program_ = cgroup_mutex_bpf__open_and_load();
  if (!mutex->program_) return errno_failure("load the program", errno);
  if (auto made = mutex->make_missing_page(); !made) return tl::make_unexpected(made.error());
  if (auto started = mutex->start(cgroup); !started) return tl::make_unexpected(started.error());
  return mutex;
}

Result<> HeldCgroupMutex::make_missing_page() {
  faults_.reset(static_cast<int>(::syscall(SYS_userfaultfd, O_CLOEXEC)));
  uffdio_api api{.api = UFFD_API, .features = 0, .ioctls = 0};
  if (!faults_ || ::ioctl(faults_.get(), UFFDIO_API, &api) != 0)
    return errno_failure("open a userfaultfd", errno);
  page_ = ::mmap(nullptr, page_size(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page_ == MAP_FAILED) return errno_failure("map a page", errno);
  uffdio_register missing{};
  missing.range = {.start = reinterpret_cast<std::uintptr_t>(page_), .len = page_size()};
  missing.mode = UFFDIO_REGISTER_MODE_MISSING;
  if (::ioctl(faults_.get(), UFFDIO_REGISTER, &missing) != 0)
    return errno_failure("watch the page", errno);
  program_->bss->missing_page = reinterpret_cast<std::uintptr_t>(page_);
  return {};
}

Result<> HeldCgroupMutex::start(const std::string& cgroup) {
  auto iterator = open_iterator(program_->progs.hold, cgroup);
  if (!iterator) return tl::make_unexpected(iterator.error());
  reader_ = std::thread([this, iterator = std::move(*iterator)] {
    char none;
    (void)!::read(iterator.get(), &none, sizeof none);
    read_ = true;
  });
  limit_ = std::jthread([this](const std::stop_token& stop) {
    std::mutex none;
    std::unique_lock lock(none);
    std::condition_variable_any().wait_for(lock, stop, kLongest, [] { return false; });
    give_page();
  });
  uffd_msg fault{};  // waits for it
  if (::read(faults_.get(), &fault, sizeof fault) != sizeof fault)
    return errno_failure("wait for the program to read", errno);
  return {};
}

void HeldCgroupMutex::give_page() const {
  uffdio_zeropage page{};
  page.range = {.start = reinterpret_cast<std::uintptr_t>(page_), .len = page_size()};
  ::ioctl(faults_.get(), UFFDIO_ZEROPAGE, &page);
}

void HeldCgroupMutex::let_go() {
  limit_ = {};  // gives the page
  if (reader_.joinable()) reader_.join();
}

HeldCgroupMutex::~HeldCgroupMutex() {
  let_go();
  if (page_ && page_ != MAP_FAILED) ::munmap(page_, page_size());
  if (program_) cgroup_mutex_bpf__destroy(program_);
}

}  // namespace headroom::test
