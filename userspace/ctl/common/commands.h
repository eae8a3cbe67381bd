// SPDX-License-Identifier: Apache-2.0
// The commands of headroomctl. Each adds itself to the command line; separate functions make the
// text that it prints, so that tests can call them.
#pragma once

#include "config/keys.h"
#include "ctl/common/status_document.h"
#include "ctl/common/text_table.h"
#include "judge/admission/scheduler.h"
#include "observe/node/systemd_units.h"
#include "observe/pod/pod_cgroup_path.h"
#include "recording/replayer.h"

#include <headroom/result.h>

#include <cstddef>
#include <cstdint>
#include <ctime>
#include <deque>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

namespace headroom::config {
struct Config;
}

namespace headroom::ctl {

// CliCommand: the function that headroomctl runs. Each command adds itself to the command line, and
// sets this function if it is the command that was given.

class ArgumentParser;

// Returns the exit status; prints errors to stderr.
using CliCommand = std::function<int()>;

// The groups of commands in --help.
inline constexpr const char* kInspectGroup = "Inspect";
inline constexpr const char* kQueryGroup = "Query";
inline constexpr const char* kChangeGroup = "Change";

// headroomctl completion: makes shell completions from the description of the command line.

std::string bash_completion(const ArgumentParser& app);
std::string zsh_completion(const ArgumentParser& app);
std::string fish_completion(const ArgumentParser& app);

// Hidden in --help: make install calls it. `app` must outlive the command.
void add_completion(ArgumentParser& app, CliCommand& chosen);

// headroomctl config: the configuration in force, and the source of each value.

// Parses headroomd's answer.
Result<config::ConfigSettings> parse_settings(std::string_view answer);

void add_config(ArgumentParser& app, CliCommand& chosen);

// headroomctl list: the pods that headroomctl run started and that still exist.

// As a table. `now` is the current time, for ages.
std::string render_runs(const std::vector<observe::UnitState>& units,
                        const observe::PodCgroupParser& layout, std::time_t now,
                        const Screen& screen);
// {"runs": [{"namespace", "name", "container", "unit", "state", "qos", "uid", "pid", "since"}]}
std::string runs_json(const std::vector<observe::UnitState>& units,
                      const observe::PodCgroupParser& layout);

void add_list(ArgumentParser& app, CliCommand& chosen);

// headroomctl pods: every pod on one line, sorted.

enum class PodOrder : std::uint8_t {
  kName,
  kOver,
  kWorkingSet,
  kPriority,
  kStalls,
  kThrottled,
  kDisk
};

std::string render_pods(const Status& status, PodOrder order, const Screen& screen);

void add_pods(ArgumentParser& app, CliCommand& chosen);

// headroomctl waits: what pods waited for, by cause, and which pods had it meanwhile.

// `before` and `seconds`: an earlier status and the time since, to show shares of that time; null:
// totals are shown.
std::string render_waits(const Status& now, const Status* before, double seconds,
                         const Screen& screen);

void add_waits(ArgumentParser& app, CliCommand& chosen);

// headroomctl record: writes what headroomd observes and decides into a file.

void add_record(ArgumentParser& app, CliCommand& chosen);

// headroomctl replay: runs the judge again over a recording.

// Exit statuses, like those of diff(1).
inline constexpr int kSame = 0;
inline constexpr int kDifferent = 1;

// The configuration's policy on the recorded machine: speed, filesystems and the operator's taints
// are those of the recording.
recording::PolicyOverride policy_override(const config::Config& config);

// `wall_offset`: nanoseconds from CLOCK_BOOTTIME to wall time.
std::string render_replay(const recording::Replayed& replayed, std::int64_t wall_offset,
                          const Screen& screen);
std::string replay_json(const recording::Replayed& replayed, std::int64_t wall_offset);

void add_replay(ArgumentParser& app, CliCommand& chosen);

// A file that headroomctl record wrote; "-": standard input. Errors name the file.
Result<recording::TapeReader> open_recording(const std::string& file);

// headroomctl advise: what the use of pods in a recording asks for (ctl/advise/pod_use.h).

void add_advise(ArgumentParser& app, CliCommand& chosen);

// headroomctl slices: the slices of the node, with their desired and current values.

// The slices in the status document, as tables.
Result<std::string> render_slices(std::string_view status, const Screen& screen);
// The slices in the status document, as JSON.
Result<std::string> slices_text(std::string_view status);

// Exit status 0: all slices are as configured, or the mode is off; 1: some are not; 3: no answer.
void add_slices(ArgumentParser& app, CliCommand& chosen);

// headroomctl taint: the node's taints, listed or edited.

// From the status document: the taints, and which pods they evict and when.
Result<std::string> render_taints(std::string_view status, const Screen& screen);
// The same as JSON: {"taints", "taint_evictions"}.
Result<std::string> taints_json(std::string_view status);

// Exit status 0: done; 1: refused; 2: an edit cannot be parsed; 3: no answer.
void add_taint(ArgumentParser& app, CliCommand& chosen);

// headroomctl admit: reports whether pods would be admitted now.

struct RenderedAdmission {
  std::string text;
  bool all_admitted = false;
};
// The daemon's answer as text.
Result<RenderedAdmission> render_admission(std::string_view answer, const Screen& screen);

// Exit status 0: all would be admitted; 1: not all; 2: invalid manifest; 3: no answer.
void add_admit(ArgumentParser& app, CliCommand& chosen);

// headroomctl place: chooses a node for a pod, from files only.

std::string render_places(const Pod& pod, std::span<const NodeState> nodes,
                          const PlacementResult& places, const Screen& screen);
std::string places_json(const Pod& pod, std::span<const NodeState> nodes,
                        const PlacementResult& places);

// Exit status 0: a node was chosen; 1: no node is suitable; 2: a file is invalid.
void add_place(ArgumentParser& app, CliCommand& chosen);

// headroomctl check: reports whether headroom works on this host, and what to do if parts do not.

// Exit status 0: it works; 1: something essential is missing.
void add_check(ArgumentParser& app, CliCommand& chosen);

// `headroomctl cpus`: the owner of each CPU, by socket, NUMA node, cache and core.

void add_cpus(ArgumentParser& app, CliCommand& chosen);

// headroomd's answer as a table of CPUs, and a table of the containers that have or request
// exclusive CPUs.
Result<std::string> render_cpus(std::string_view answer, const Screen& screen);

// `headroomctl memory`: the memory and huge pages of each NUMA node, and the containers to which it
// is assigned.

void add_memory(ArgumentParser& app, CliCommand& chosen);

// headroomd's answer as a table of NUMA nodes, and a table of containers.
Result<std::string> render_memory(std::string_view answer, const Screen& screen);

// `headroomctl cpus repack`: moves exclusive CPUs together after they became fragmented because
// pods started and ended.

// Adds the subcommand to `cpus`.
void add_cpus_repack(ArgumentParser& cpus, CliCommand& chosen);

// headroomd's answer as text: which containers move, and the gain.
Result<std::string> render_repacking(std::string_view answer, const Screen& screen);

// headroomctl evictions: prints the audit log as a table.

// One row for each line. `unreadable` is increased for each line that is not a record.
std::string render_evictions(const std::deque<std::string>& lines, const Screen& screen,
                             std::size_t& unreadable);

void add_evictions(ArgumentParser& app, CliCommand& chosen);

// headroomctl why: explains one eviction of the audit log.

// Selects an eviction.
struct EvictionQuery {
  std::string pod;                // "namespace/name", name or uid; empty: any
  std::size_t nth_from_last = 1;  // 1: the last of the matching evictions
};

struct FoundEviction {
  nlohmann::json record;
  nlohmann::json flight_recording{};  // the minute before it; null if there is none
  std::size_t matches = 0;            // matching evictions, including this one
};

// Finds the record. The error says why there is none, or lists the pods that match.
Result<FoundEviction> find_eviction(const std::deque<std::string>& lines,
                                    const EvictionQuery& query);

void add_why(ArgumentParser& app, CliCommand& chosen);

// headroomctl run: runs a command, or the containers of a manifest, as a pod of this node, if it is
// admitted.

// If it waits, it exits with the status of the first container that failed, like systemd-run. It
// also exits with 2 and 3 (print_error.h) on its own errors.
void add_run(ArgumentParser& app, CliCommand& chosen);

// headroomctl stop: stops all containers of a pod that headroomctl run started.

void add_stop(ArgumentParser& app, CliCommand& chosen);

// headroomctl status: prints the state of the node once.

// These parts are also shown by `top`.
std::string heading(const Status& status, const Screen& screen);
std::string threshold_table(const Status& status, const Screen& screen);
std::string condition_line(const Status& status, const Screen& screen);
// Where the memory of processes is; "" where it is not observed.
std::string memory_location_line(const Status& status);

std::string render_status(const Status& status, const Screen& screen);

void add_status(ArgumentParser& app, CliCommand& chosen);

// headroomctl watch: prints events as they come, or runs a command for each.

void add_watch(ArgumentParser& app, CliCommand& chosen);

// headroomctl top: a live view of the node and its pods.

void add_top(ArgumentParser& app, CliCommand& chosen);

}  // namespace headroom::ctl
