// SPDX-License-Identifier: Apache-2.0
#include "observe/bpf/bpf_loader.h"

#include <bpf/btf.h>
#include <bpf/libbpf.h>

#include <algorithm>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

namespace headroom::observe {
namespace {

// libbpf has one printer for the process; routing by thread keeps two loaders apart.
thread_local LibbpfLog* current = nullptr;

int print(libbpf_print_level level, const char* format, va_list arguments) {
  if (!current || level == LIBBPF_DEBUG) return 0;
  va_list again;
  va_copy(again, arguments);
  const int length = std::vsnprintf(nullptr, 0, format, again);
  va_end(again);
  if (length <= 0) return 0;
  // A verifier's whole log comes as one message, and what matters is at its end.
  std::string text(static_cast<std::size_t>(length) + 1, '\0');
  std::vsnprintf(text.data(), text.size(), format, arguments);
  text.pop_back();
  while (!text.empty() && text.back() == '\n')
    text.pop_back();
  current->take(level == LIBBPF_WARN, text);
  return length;
}

// The verifier's last words before its statistics: the reason it refused.
std::string_view verdict_in(std::string_view log) {
  const std::size_t statistics = log.find("\nprocessed ");
  if (statistics == std::string_view::npos) return {};
  log = log.substr(0, statistics);
  return log.substr(log.rfind('\n') + 1);
}

// "prog 'x': failed to load: -22" and the like repeat a code that was already explained.
bool is_generic_failure(std::string_view text) {
  return text.find("failed to load") != std::string_view::npos ||
         text.find("program load failed") != std::string_view::npos;
}

}  // namespace

LibbpfLog::LibbpfLog(LogLine line) : line_(std::move(line)), outer_(std::exchange(current, this)) {
  libbpf_set_print(print);
}

LibbpfLog::~LibbpfLog() {
  current = outer_;
}

std::string LibbpfLog::reason(int code) const {
  std::string text = std::strerror(code);
  if (!last_warning_.empty()) text += " (libbpf: " + last_warning_ + ")";
  return text;
}

void LibbpfLog::take(bool warning, std::string_view text) {
  if (line_) line_(text);
  if (!warning) return;
  if (text.find("BEGIN PROG LOAD LOG") != std::string_view::npos) {
    if (const std::string_view verdict = verdict_in(text); !verdict.empty())
      last_warning_.assign(verdict);
    return;
  }
  if (is_generic_failure(text) && !last_warning_.empty()) return;
  if (text.starts_with("libbpf: ")) text.remove_prefix(8);
  last_warning_.assign(text);
}

namespace {

bool contains_name(std::span<const std::string_view> names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

bool is_skipped(const std::vector<SkippedProgram>& all, std::string_view program) {
  return std::any_of(all.begin(), all.end(),
                     [&](const SkippedProgram& each) { return each.program == program; });
}

// What the program hooks into, as its section says it, if the kernel does not have it.
std::optional<std::string> missing_hook(const bpf_program* program, const btf* types) {
  const std::string_view section = bpf_program__section_name(program);
  const std::size_t slash = section.find('/');
  if (slash == std::string_view::npos) return std::nullopt;
  const std::string target(section.substr(slash + 1));
  const bool tracepoint = section.starts_with("tp_btf/");
  const int found =
      tracepoint ? btf__find_by_name_kind(types, ("btf_trace_" + target).c_str(), BTF_KIND_TYPEDEF)
                 : btf__find_by_name_kind(types, target.c_str(), BTF_KIND_FUNC);
  if (found > 0) return std::nullopt;
  return (tracepoint ? "no tracepoint " : "no function ") + target;
}

Result<std::vector<SkippedProgram>> find_missing_hooks(const SkeletonOptions& use,
                                                       bpf_object* object) {
  const auto types = kernel_types();
  if (!types) return errno_failure("read the kernel's BTF", errno);
  std::vector<SkippedProgram> missing;
  bpf_program* program = nullptr;
  bpf_object__for_each_program(program, object) {
    if (contains_name(use.unwanted, bpf_program__name(program))) continue;
    if (auto why = missing_hook(program, types.get()))
      missing.push_back({bpf_program__name(program), std::move(*why)});
  }
  return missing;
}

Result<bpf_object*> open_skipping(const SkeletonOptions& use,
                                  const std::vector<SkippedProgram>& skipped_programs) {
  auto object = use.open();
  if (!object) return object;
  bpf_program* program = nullptr;
  bpf_object__for_each_program(program, *object) {
    const std::string_view name = bpf_program__name(program);
    if (contains_name(use.unwanted, name) || is_skipped(skipped_programs, name))
      bpf_program__set_autoload(program, false);
  }
  return object;
}

std::vector<std::string> programs_of(bpf_object* object) {
  std::vector<std::string> names;
  bpf_program* program = nullptr;
  bpf_object__for_each_program(program, object) {
    if (bpf_program__autoload(program)) names.emplace_back(bpf_program__name(program));
  }
  return names;
}

// Each alone: which does the verifier refuse? Only after all of them together were refused.
Result<> add_refused(const SkeletonOptions& use, const std::vector<std::string>& names,
                     std::vector<SkippedProgram>& skipped_programs) {
  for (const std::string& name : names) {
    std::vector<SkippedProgram> others = skipped_programs;
    for (const std::string& other : names)
      if (other != name) others.push_back({other, {}});
    LibbpfLog log(use.log);
    if (auto object = open_skipping(use, others); !object)
      return tl::make_unexpected(object.error());
    if (const int error = use.load(); error) skipped_programs.push_back({name, log.reason(-error)});
  }
  return {};
}

Result<> check_required(const SkeletonOptions& use,
                        const std::vector<SkippedProgram>& skipped_programs) {
  for (const SkippedProgram& each : skipped_programs)
    if (contains_name(use.required, each.program)) return failure(each.program + ": " + each.why);
  return {};
}

Result<bpf_object*> load(const SkeletonOptions& use,
                         std::vector<SkippedProgram>& skipped_programs) {
  auto object = open_skipping(use, skipped_programs);
  if (!object) return object;
  int error = 0;
  std::string why;
  {
    LibbpfLog log(use.log);
    error = use.load();
    if (error) why = log.reason(-error);
  }
  if (!error) return object;
  const std::size_t before = skipped_programs.size();
  object = open_skipping(use, skipped_programs);
  if (!object) return object;
  if (auto tried = add_refused(use, programs_of(*object), skipped_programs); !tried)
    return tl::make_unexpected(tried.error());
  if (skipped_programs.size() == before) return failure(why, -error);  // a map, then
  if (auto enough = check_required(use, skipped_programs); !enough)
    return tl::make_unexpected(enough.error());
  object = open_skipping(use, skipped_programs);
  if (!object) return object;
  LibbpfLog log(use.log);
  if (const int again = use.load(); again) return failure(log.reason(-again), -again);
  return object;
}

}  // namespace

std::shared_ptr<const btf> kernel_types() {
  static std::mutex mutex;
  static std::weak_ptr<const btf> kept;
  const std::lock_guard lock(mutex);
  if (auto types = kept.lock()) return types;
  btf* loaded = btf__load_vmlinux_btf();
  if (const long error = libbpf_get_error(loaded); error) {
    errno = static_cast<int>(-error);
    return nullptr;
  }
  std::shared_ptr<const btf> types(loaded, [](const btf* each) {
    btf__free(const_cast<btf*>(each));  // libbpf's API takes no const
  });
  kept = types;
  return types;
}

void DestroyLink::operator()(bpf_link* link) const {
  bpf_link__destroy(link);
}

Result<AttachedPrograms> attach_loadable(const SkeletonOptions& use) {
  auto object = use.open();
  if (!object) return tl::make_unexpected(object.error());
  auto missing = find_missing_hooks(use, *object);
  if (!missing) return tl::make_unexpected(missing.error());
  AttachedPrograms attached{.links = {}, .skipped_programs = std::move(*missing)};
  if (auto enough = check_required(use, attached.skipped_programs); !enough)
    return tl::make_unexpected(enough.error());
  object = load(use, attached.skipped_programs);
  if (!object) return tl::make_unexpected(object.error());

  bpf_program* program = nullptr;
  bpf_object__for_each_program(program, *object) {
    if (!bpf_program__autoload(program)) continue;
    LibbpfLog log(use.log);
    if (bpf_link* link = bpf_program__attach(program))
      attached.links.emplace_back(link);
    else
      attached.skipped_programs.push_back({bpf_program__name(program), log.reason(errno)});
  }
  if (auto enough = check_required(use, attached.skipped_programs); !enough)
    return tl::make_unexpected(enough.error());
  return attached;
}

}  // namespace headroom::observe
