// SPDX-License-Identifier: Apache-2.0
// headroomctl: the command-line tool. Exit status: 0 done or yes, 1 failed or no, 2 usage error,
// 3 headroomd does not answer (for commands in which 1 means no).
#include "ctl/changes_command.h"
#include "ctl/common/argument_parser.h"
#include "ctl/common/commands.h"
#include "ctl/common/print_error.h"
#include "ctl/simulate/simulate.h"

#include <exception>
#include <optional>
#include <string>

namespace {

using namespace headroom::ctl;

// A command, and its examples in --help.
struct Entry {
  void (*add)(ArgumentParser&, CliCommand&);
  const char* examples;
};

// By group, then by name, as --help lists them.
constexpr Entry kCommands[] = {
    {add_changes, R"(
  headroomctl changes                 what headroomd has changed on this node, and the original values)"},
    {add_check, R"(
  headroomctl check                   what works on this host, what does not, and what to do)"},
    {add_config, R"(
  headroomctl config                  the settings in force, each with its file and line)"},
    {add_cpus, R"(
  headroomctl cpus                    the owner of each CPU, by socket, NUMA node and core
  headroomctl cpus repack --dry-run   which containers would move to less fragmented CPUs)"},
    {add_memory, R"(
  headroomctl memory                  the memory of each NUMA node, and the containers it is assigned to)"},
    {add_evictions, R"(
  headroomctl evictions -n 5          the last five evictions
  headroomctl evictions --json | jq -r '.pod.name + " " + .message')"},
    {add_list, R"(
  headroomctl list                    the pods that headroomctl run started)"},
    {add_pods, R"(
  headroomctl pods --sort stalls      every pod, sorted by its waits for memory)"},
    {add_slices, R"(
  headroomctl slices                  the node's slices: shares, usage, values, drift)"},
    {add_status, R"(
  headroomctl status                  signals, thresholds and conditions, once
  headroomctl status --json | jq .thresholds)"},
    {add_top, R"(
  headroomctl top                     the node and every pod, live; q quits
  headroomctl top --filter shop       the pods of one namespace
  headroomctl top --once | head       for scripts and reports)"},
    {add_watch, R"(
  headroomctl watch                   evictions, conditions, drift and OOM kills as they come
  headroomctl watch --json | jq -r .message)"},
    {add_waits, R"(
  headroomctl waits                   what pods waited for, and whose fault it was
  headroomctl waits --for 30s         the same of the next 30 seconds, as shares of the time)"},
    {add_why, R"(
  headroomctl why                     the last eviction, explained
  headroomctl why default/web -n 2    the one before the last of this pod's)"},
    {add_admit, R"(
  headroomctl admit -f web.yaml   would this pod be admitted now, and why not?)"},
    {add_advise, R"(
  headroomctl advise busy.rec     requests, limits and quotas that the recorded use asks for
  headroomctl advise reserves day.rec     kubeReserved and systemReserved that it asks for)"},
    {add_place, R"(
  headroomctl place -f web.yaml a.json b.json     which of these nodes is the best?)"},
    {add_record, R"(
  headroomctl record --for 5m -o busy.rec         record what headroomd reads and decides, for replay)"},
    {add_replay, R"(
  headroomctl replay busy.rec --config new.yaml   what would another policy have done?)"},
    {add_run, R"(
  headroomctl run --name web --request cpu=500m,memory=256Mi -- CMD   as a pod, if admitted
  headroomctl run -f web.yaml --detach            the containers of a manifest)"},
    {add_simulate, R"(
  headroomctl simulate --nodes 1000 --svg fleet.svg    a fleet under headroom, the kubelet and others
  headroomctl simulate --config new.yaml *.rec    what would another policy have done to these nodes?)"},
    {add_stop, R"(
  headroomctl stop web            stop it again)"},
    {add_taint, R"(
  headroomctl taint dedicated=gpu:NoExecute       pods that do not tolerate it are evicted
  headroomctl taint dedicated-    remove it again)"},
};

constexpr const char* kStatuses = R"(

Exit status: 0 done or yes, 1 failed or no, 2 usage error; of taint and admit
also 3: headroomd does not answer.)";

void describe(ArgumentParser& app, CliCommand& chosen) {
  app.version(std::string("headroomctl ") + HEADROOM_VERSION);
  app.require_subcommand();
  std::string footer = "Examples:";
  for (const Entry& entry : kCommands) {
    entry.add(app, chosen);
    footer += entry.examples;
  }
  add_completion(app, chosen);
  app.footer(footer + kStatuses);
}

}  // namespace

int main(int argc, char** argv) {
  ArgumentParser app("Inspect and control headroomd on this node.", "headroomctl");
  CliCommand chosen;
  try {
    describe(app, chosen);
    if (const std::optional<int> ended = app.parse(argc, argv)) return *ended == 0 ? 0 : kUsage;
  } catch (const std::exception& e) {
    return print_error({e.what()});
  }
  try {
    return chosen();
  } catch (const std::exception& e) {
    return print_error({e.what()});
  }
}
