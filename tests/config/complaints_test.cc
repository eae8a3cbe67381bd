// SPDX-License-Identifier: Apache-2.0
// What is said of a file's mistakes, and where.
#include "config/files.h"
#include "config/load/load.h"
#include "config/rows.h"

#include <filesystem>
#include <ostream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace headroom::config {
namespace {

using test::load_file;
using test::load_text;
using test::RowName;
using test::said;
using test::TempDir;

struct Bad {
  const char* name;
  const char* text;
  std::vector<std::string> diagnostics;
};
void PrintTo(const Bad& bad, std::ostream* out) {
  *out << bad.name;
}

class BadFile : public testing::TestWithParam<Bad> {};

TEST_P(BadFile, IsReported) {
  EXPECT_EQ(said(load_text(GetParam().text)), GetParam().diagnostics);
}

const Bad kBadKeys[] = {
    {"an_unknown_key_names_its_neighbour",
     "evictionhard: {}\n",
     {"3: unknown key evictionhard, did you mean evictionHard?"}},
    {"two_letters_swapped",
     "maxPodz: 10\nevictoinSoft: {}\n",
     {"3: unknown key maxPodz, did you mean maxPods?",
      "4: unknown key evictoinSoft, did you mean evictionSoft?"}},
    {"our_key_at_the_top",
     "podManifests: /etc/pods\n",
     {"3: unknown key podManifests: it belongs under headroom:"}},
    {"an_unknown_key_of_ours",
     "headroom:\n  mode: observe\n  checkflor: 1ms\n",
     {"5: unknown key headroom.checkflor, did you mean checkFloor?"}},
    {"a_kubelet_key_in_our_section",
     "headroom: {evictionHard: {}}\n",
     {"3: unknown key headroom.evictionHard, did you mean evictionUnit?"}},
    {"a_key_twice",
     "maxPods: 1\nport: 2\nmaxPods: 3\n",
     {"5: duplicate key maxPods: it is already on line 3"}},
    {"a_key_twice_where_we_do_not_read",
     "featureGates:\n  A: true\n  A: false\n",
     {"5: duplicate key A: it is already on line 4"}},
    {"a_signal_twice",
     "evictionHard:\n  memory.available: 1Gi\n  memory.available: 2Gi\n",
     {"5: duplicate key memory.available: it is already on line 4"}},
};
INSTANTIATE_TEST_SUITE_P(Keys, BadFile, testing::ValuesIn(kBadKeys), RowName{});

const Bad kBadTypes[] = {
    {"a_number_for_a_string",
     "evictionHard:\n  memory.available: 104857600\n",
     {"4: evictionHard.memory.available: expected a string (put it in quotes), found the number "
      "104857600"}},
    {"a_string_for_a_map",
     "evictionHard: 100Mi\n",
     {"3: evictionHard: expected a map, found the string \"100Mi\""}},
    {"a_list_for_a_map", "evictionSoft: [a]\n", {"3: evictionSoft: expected a map, found a list"}},
    {"a_grace_without_quotes_is_not_missing_as_well",
     "evictionSoft:\n  memory.available: 1Gi\nevictionSoftGracePeriod:\n  memory.available: 30\n",
     {"6: evictionSoftGracePeriod.memory.available: expected a string (put it in quotes), found "
      "the number 30"}},
    {"graces_that_are_no_map_are_not_missing_as_well",
     "evictionSoft:\n  memory.available: 1Gi\nevictionSoftGracePeriod: 30s\n",
     {"5: evictionSoftGracePeriod: expected a map, found the string \"30s\""}},
    {"nothing_for_a_threshold",
     "evictionHard:\n  memory.available:\n",
     {"4: evictionHard.memory.available: expected a string, found nothing"}},
    {"a_string_for_a_boolean",
     "mergeDefaultEvictionSettings: \"true\"\n",
     {"3: mergeDefaultEvictionSettings: expected true or false, found the string \"true\""}},
    {"a_duration_for_a_number",
     "evictionMaxPodGracePeriod: 30s\n",
     {"3: evictionMaxPodGracePeriod: expected a whole number from -2147483648 to 2147483647, found "
      "the string \"30s\""}},
    {"more_than_32_bits",
     "evictionMaxPodGracePeriod: 2147483648\n",
     {"3: evictionMaxPodGracePeriod: expected a whole number from -2147483648 to 2147483647, found "
      "the number 2147483648"}},
    {"a_number_for_a_duration",
     "evictionPressureTransitionPeriod: 300\n",
     {"3: evictionPressureTransitionPeriod: expected a duration such as 30s or 1m30s, found the "
      "number 300"}},
    {"a_word_for_a_list",
     "enforceNodeAllocatable: pods\n",
     {"3: enforceNodeAllocatable: expected a list of strings, found the string \"pods\""}},
    {"a_boolean_in_a_list",
     "enforceNodeAllocatable:\n- pods\n- no\n",
     {"5: enforceNodeAllocatable[1]: expected a string (put it in quotes), found the boolean no"}},
    {"a_list_for_our_section", "headroom: []\n", {"3: headroom: expected a map, found a list"}},
};
INSTANTIATE_TEST_SUITE_P(Types, BadFile, testing::ValuesIn(kBadTypes), RowName{});

const Bad kBadValues[] = {
    {"a_negative_transition",
     "evictionPressureTransitionPeriod: -1m\n",
     {"3: evictionPressureTransitionPeriod: must not be negative"}},
    {"an_unknown_enforcement",
     "enforceNodeAllocatable: [pod]\n",
     {"3: enforceNodeAllocatable: unknown enforcement \"pod\", did you mean pods?"}},
    {"none_beside_another",
     "enforceNodeAllocatable: [pods, none]\n",
     {"3: enforceNodeAllocatable: none must stand alone"}},
    {"an_enforcement_twice",
     "enforceNodeAllocatable:\n- pods\n- pods\n",
     {"5: enforceNodeAllocatable: pods is there twice"}},
    {"compressible_beside_all",
     "enforceNodeAllocatable: [kube-reserved, kube-reserved-compressible]\n",
     {"3: enforceNodeAllocatable: kube-reserved-compressible cannot stand beside kube-reserved"}},
    {"an_unknown_driver",
     "cgroupDriver: cgroupsfs\n",
     {"3: cgroupDriver: expected systemd or cgroupfs, found \"cgroupsfs\""}},
    {"an_unknown_mode",
     "headroom:\n  mode: enforced\n",
     {"4: headroom.mode: expected observe or enforce, found \"enforced\""}},
    {"an_unknown_log_level",
     "headroom: {logLevel: warn}\n",
     {"3: headroom.logLevel: expected debug, info, warning or error, found \"warn\""}},
    {"a_listen_address_without_port",
     "headroom: {listen: localhost}\n",
     {"3: headroom.listen: expected HOST:PORT such as 127.0.0.1:9750, or nothing for no endpoint, "
      "found \"localhost\""}},
    {"a_relative_path",
     "headroom: {auditLog: evictions.jsonl}\n",
     {"3: headroom.auditLog: expected an absolute path, found \"evictions.jsonl\""}},
    {"a_cgroup_above_the_root",
     "headroom: {podsCgroup: ../kubepods}\n",
     {"3: headroom.podsCgroup: expected a cgroup below the root, such as kubepods.slice, found "
      "\"../kubepods\""}},
    {"a_negative_grace",
     "headroom: {hardGrace: -1s}\n",
     {"3: headroom.hardGrace: must not be negative"}},
    {"a_watch_without_end",
     "headroom:\n  checkFloor: 0s\n  sweepPeriod: -1s\n  fastestFill: 0\n",
     {"4: headroom.checkFloor: must be more than zero",
      "5: headroom.sweepPeriod: must be more than zero",
      "6: headroom.fastestFill: must be more than zero bytes per second"}},
    {"pressure_that_is_no_share",
     "headroom:\n  pressure:\n    memory:\n      threshold: 100%\n      grace: 0s\n      window: "
     "-1s\n",
     {"6: headroom.pressure.memory.threshold: expected a percentage between 0% and 100%, such as "
      "20%, found \"100%\"",
      "7: headroom.pressure.memory.grace: must be more than zero",
      "8: headroom.pressure.memory.window: must be more than zero"}},
    {"pressure_of_cpus_has_no_window",
     "headroom:\n  pressure:\n    cpu:\n      threshold: 0%\n      grace: 0s\n      window: 1s\n",
     {"6: headroom.pressure.cpu.threshold: expected a percentage between 0% and 100%, such as "
      "50%, found \"0%\"",
      "7: headroom.pressure.cpu.grace: must be more than zero",
      "8: unknown key headroom.pressure.cpu.window"}},
    {"eviction_for_cpus_without_a_threshold",
     "headroom:\n  pressure:\n    cpu:\n      evict: true\n      evictPeriod: 0s\n",
     {"6: headroom.pressure.cpu.evict: needs threshold beside it",
      "7: headroom.pressure.cpu.evictPeriod: must be more than zero"}},
    {"pressure_of_something_else",
     "headroom: {pressure: {memori: {threshold: 20%}}}\n",
     {"3: unknown key headroom.pressure.memori, did you mean memory?"}},
    {"pressure_among_the_kubelets_signals",
     "evictionHard: {memory.pressure: 20%}\n",
     {"3: evictionHard.memory.pressure: unsupported eviction signal memory.pressure; the signals "
      "are memory.available, allocatableMemory.available, nodefs.available, nodefs.inodesFree, "
      "imagefs.available, imagefs.inodesFree, containerfs.available, containerfs.inodesFree, "
      "pid.available, swap.available (it says \"20%\")"}},
    {"budget_that_is_no_share",
     "headroom:\n  cpuBudget: 100%\n",
     {"4: headroom.cpuBudget: expected a percentage between 0% and 100%, such as 10%, found "
      "\"100%\""}},
    {"floor_above_ceiling",
     "headroom:\n  checkCeiling: 1ms\n",
     {"4: headroom.checkCeiling: checkFloor must not exceed checkCeiling"}},
};
INSTANTIATE_TEST_SUITE_P(Values, BadFile, testing::ValuesIn(kBadValues), RowName{});

// The words are the judge's; the places are ours.
struct Placed {
  const char* name;
  const char* text;
  int line;
  const char* begins;
};
void PrintTo(const Placed& placed, std::ostream* out) {
  *out << placed.name;
}

class BadThreshold : public testing::TestWithParam<Placed> {};

TEST_P(BadThreshold, IsFoundAtItsLine) {
  const auto config = load_text(GetParam().text);
  ASSERT_FALSE(config);
  ASSERT_EQ(config.error().size(), 1u);
  EXPECT_EQ(config.error()[0].line, GetParam().line);
  EXPECT_EQ(config.error()[0].what.substr(0, std::string(GetParam().begins).size()),
            GetParam().begins);
}

const Placed kPlaced[] = {
    {"a_malformed_quantity", "evictionHard:\n  nodefs.available: 10%\n  memory.available: 100MB\n",
     5, "evictionHard.memory.available: "},
    {"a_soft_threshold_without_grace",
     "evictionSoft:\n  nodefs.available: 10%\n  memory.available: 1Gi\n"
     "evictionSoftGracePeriod:\n  nodefs.available: 1m\n",
     5, "evictionSoft.memory.available: grace period must be specified"},
    {"a_grace_without_its_unit",
     "evictionSoft: {memory.available: 1Gi}\nevictionSoftGracePeriod:\n  memory.available: \"5\"\n",
     5, "evictionSoftGracePeriod.memory.available: "},
    {"a_signal_that_is_none", "evictionHard: {memory.avaliable: 1Gi}\n", 3,
     "evictionHard.memory.avaliable: unsupported eviction signal"},
    {"a_negative_reclaim", "evictionMinimumReclaim:\n  imagefs.available: -2Gi\n", 4,
     "evictionMinimumReclaim.imagefs.available: "},
};
INSTANTIATE_TEST_SUITE_P(Places, BadThreshold, testing::ValuesIn(kPlaced), RowName{});

TEST(Load, ReportsEveryErrorInLineOrder) {
  const auto lines = said(load_text(R"(evictionSoft:
  memory.available: 1Gi
headroom:
  mode: on
  nonsense: 1
maxpods: 3
evictionHard:
  memory.available: 1GB
)"));
  ASSERT_EQ(lines.size(), 5u);
  EXPECT_TRUE(lines[0].starts_with("4: evictionSoft.memory.available: grace period")) << lines[0];
  EXPECT_EQ(lines[1],
            "6: headroom.mode: expected a string (put it in quotes), found the boolean on");
  EXPECT_EQ(lines[2], "7: unknown key headroom.nonsense");
  EXPECT_EQ(lines[3], "8: unknown key maxpods, did you mean maxPods?");
  EXPECT_TRUE(lines[4].starts_with("10: evictionHard.memory.available: ")) << lines[4];
}

struct Whole {
  const char* name;
  const char* file;
  const char* diagnostic;
};
void PrintTo(const Whole& whole, std::ostream* out) {
  *out << whole.name;
}

class BadWhole : public testing::TestWithParam<Whole> {};

TEST_P(BadWhole, IsOneDiagnostic) {
  TempDir dir;
  const auto lines = said(load_file(dir.write("f", GetParam().file)));
  ASSERT_FALSE(lines.empty());
  EXPECT_EQ(lines[0], GetParam().diagnostic);
}

const Whole kWholes[] = {
    {"empty", "", "0: expected a KubeletConfiguration, found an empty file"},
    {"only_comments", "# nothing\n", "0: expected a KubeletConfiguration, found an empty file"},
    {"a_list", "- a\n- b\n", "1: expected a KubeletConfiguration, found a list"},
    {"a_syntax_error", "apiVersion: v1\n  kind: x\n", "2: not YAML: illegal map value"},
    {"a_stray_comma", ", kind\n", "1: not YAML: nothing can begin here"},
    {"no_version", "kind: KubeletConfiguration\n",
     "1: missing apiVersion: expected kubelet.config.k8s.io/v1beta1"},
    {"another_version", "apiVersion: kubelet.config.k8s.io/v1\nkind: KubeletConfiguration\n",
     "1: apiVersion: expected kubelet.config.k8s.io/v1beta1, found \"kubelet.config.k8s.io/v1\""},
    {"another_kind", "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: Pod\n",
     "2: kind: expected KubeletConfiguration, found \"Pod\""},
    {"two_documents",
     "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n---\nport: 1\n",
     "4: expected one document, found another"},
    {"a_laugh_a_billion_times",
     "a: &a [x,x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a,*a]\n"
     "c: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c,*c]\n"
     "e: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d,*d]\nf: &f [*e,*e,*e,*e,*e,*e,*e,*e,*e,*e]\n",
     "5: more than 200000 keys and values, aliases expanded"},
    {"an_alias_to_itself", "a: &a [*a]\n", "1: not YAML: an alias to the node it is in"},
};
INSTANTIATE_TEST_SUITE_P(Wholes, BadWhole, testing::ValuesIn(kWholes), RowName{});

TEST(Load, ANamedFileMustExist) {
  TempDir dir;
  const auto config = load_file(dir.path() / "absent.yaml");
  ASSERT_FALSE(config);
  EXPECT_EQ(to_string(config.error()[0]),
            (dir.path() / "absent.yaml").string() + ": No such file or directory");
}

TEST(Load, ADirectoryIsAnError) {
  TempDir dir;
  const auto config = load_file(dir.path());
  ASSERT_FALSE(config);
  EXPECT_EQ(to_string(config.error()[0]), dir.path().string() + ": not a regular file");
}

}  // namespace
}  // namespace headroom::config
