// SPDX-License-Identifier: Apache-2.0
// BpfLoader: loads and attaches a skeleton's programs as far as this kernel allows; and what
// libbpf prints meanwhile.
//
// A program's hook may be missing (no such function or tracepoint) or the verifier may refuse it.
// Either costs what that program observes, and is logged; the rest is loaded without it.
#pragma once

#include <headroom/result.h>

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace headroom::observe {

// LibbpfLog: while one is alive, what libbpf would print on this thread goes to its function
// instead of stderr. The last warnings are kept, to say why a load failed.

using LogLine = std::function<void(std::string_view)>;

class LibbpfLog {
 public:
  explicit LibbpfLog(LogLine line);
  ~LibbpfLog();
  LibbpfLog(const LibbpfLog&) = delete;
  LibbpfLog& operator=(const LibbpfLog&) = delete;

  // What an errno is called, and the last warning if there was one: "Invalid argument (libbpf: …)".
  std::string reason(int code) const;

  void take(bool warning, std::string_view text);  // called by libbpf's printer

 private:
  LogLine line_;
  std::string last_warning_;
  LibbpfLog* outer_;
};

}  // namespace headroom::observe

struct bpf_link;
struct bpf_object;
struct bpf_object_skeleton;
struct btf;

namespace headroom::observe {

// The kernel's own types. Reading them takes long, 100,000 of them, so a reading is shared for as
// long as a caller keeps it. Null: the kernel has none.
std::shared_ptr<const btf> kernel_types();

struct DestroyLink {
  void operator()(bpf_link* link) const;
};
using Links = std::vector<std::unique_ptr<bpf_link, DestroyLink>>;

// A program that is not at work, and why not.
struct SkippedProgram {
  std::string program;
  std::string why;
};

struct AttachedPrograms {
  Links links;
  std::vector<SkippedProgram> skipped_programs;
};

// What is to be done with one skeleton type; made by skeleton<...>() below.
struct SkeletonOptions {
  std::function<Result<bpf_object*>()> open;   // afresh: what was opened before is destroyed
  std::function<int()> load;                   // 0, or a negative errno
  std::span<const std::string_view> required;  // programs without which the rest is worthless
  std::span<const std::string_view> unwanted;  // programs of another way to observe the same
  LogLine log;
};

// Loads and attaches. Fails only when a required program cannot be had.
Result<AttachedPrograms> attach_loadable(const SkeletonOptions& use);

}  // namespace headroom::observe
