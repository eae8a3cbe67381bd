// SPDX-License-Identifier: Apache-2.0
// Which paths are pods and containers, for both cgroup drivers.
#include "observe/pod/pod_cgroup_path.h"

#include "config/rows.h"

#include <optional>
#include <ostream>
#include <string>

#include <gtest/gtest.h>

namespace headroom::observe {
namespace {

using test::RowName;

// One word for a place: "Burstable <uid>", then "runtime:container" or "... inside".
std::string as_text(const std::optional<PodCgroupPath>& place) {
  if (!place) return "no pod";
  std::string text = std::string(name(place->qos)) + " " + place->uid;
  if (place->level == PodCgroupPath::Level::kPod) return text;
  text += " " + std::string(place->runtime) + ":" + std::string(place->container);
  return place->level == PodCgroupPath::Level::kBelowContainer ? text + " inside" : text;
}

struct Row {
  const char* name;
  const char* root;
  std::string path;
  std::string place;
};
void PrintTo(const Row& row, std::ostream* out) {
  *out << row.path;
}

class Place : public testing::TestWithParam<Row> {};

TEST_P(Place, IsParsed) {
  EXPECT_EQ(as_text(PodCgroupParser(GetParam().root).place(GetParam().path)), GetParam().place);
}

const std::string kUid = "0f3c2a1b-1111-4222-8333-944445555666";
const std::string kSpelled = "0f3c2a1b_1111_4222_8333_944445555666";
const std::string kStatic = "0123456789abcdef0123456789abcdef";
const std::string kId = std::string(64, 'a');

const Row kPods[] = {
    {"systemd_burstable", "kubepods.slice",
     "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" + kSpelled + ".slice",
     "Burstable " + kUid},
    {"systemd_besteffort", "kubepods.slice",
     "/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod" + kSpelled + ".slice",
     "BestEffort " + kUid},
    {"systemd_guaranteed_has_no_tier", "kubepods.slice",
     "/kubepods.slice/kubepods-pod" + kSpelled + ".slice", "Guaranteed " + kUid},
    {"systemd_static", "kubepods.slice",
     "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" + kStatic + ".slice",
     "Burstable " + kStatic},
    {"cgroupfs_burstable", "kubepods", "/kubepods/burstable/pod" + kUid, "Burstable " + kUid},
    {"cgroupfs_guaranteed", "kubepods", "/kubepods/pod" + kUid, "Guaranteed " + kUid},
    {"cgroupfs_static", "kubepods", "/kubepods/besteffort/pod" + kStatic, "BestEffort " + kStatic},
    {"either_known_name_finds_both", "kubepods.slice", "/kubepods/burstable/pod" + kUid,
     "Burstable " + kUid},
    {"without_the_leading_slash", "/kubepods/", "kubepods/pod" + kUid, "Guaranteed " + kUid},
    {"below_a_root_of_its_own", "kubelet.slice/kubelet-kubepods.slice",
     "/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-besteffort.slice/"
     "kubelet-kubepods-besteffort-pod" +
         kSpelled + ".slice",
     "BestEffort " + kUid},
    {"any_word_is_a_uid", "headroom.slice", "/headroom.slice/headroom-podweb_1.slice",
     "Guaranteed web-1"},
};
INSTANTIATE_TEST_SUITE_P(Pods, Place, testing::ValuesIn(kPods), RowName{});

const std::string kPod = "/kubepods.slice/kubepods-pod" + kSpelled + ".slice";
const Row kContainers[] = {
    {"containerd", "kubepods.slice", kPod + "/cri-containerd-" + kId + ".scope",
     "Guaranteed " + kUid + " cri-containerd:" + kId},
    {"crio", "kubepods.slice", kPod + "/crio-" + kId + ".scope",
     "Guaranteed " + kUid + " crio:" + kId},
    {"docker", "kubepods.slice", kPod + "/docker-" + kId + ".scope",
     "Guaranteed " + kUid + " docker:" + kId},
    {"a_monitor_keeps_its_name", "kubepods.slice", kPod + "/crio-conmon-" + kId + ".scope",
     "Guaranteed " + kUid + " :crio-conmon-" + kId + ".scope"},
    {"crio_by_cgroupfs", "kubepods", "/kubepods/burstable/pod" + kUid + "/crio-" + kId,
     "Burstable " + kUid + " crio:" + kId},
    {"its_monitor_by_cgroupfs", "kubepods",
     "/kubepods/burstable/pod" + kUid + "/crio-conmon-" + kId,
     "Burstable " + kUid + " :crio-conmon-" + kId},
    {"a_directory_that_only_looks_so", "kubepods", "/kubepods/pod" + kUid + "/crio-abc",
     "Guaranteed " + kUid + " :crio-abc"},
    {"a_plain_directory", "kubepods", "/kubepods/burstable/pod" + kUid + "/" + kId,
     "Burstable " + kUid + " :" + kId},
    {"a_transient_service", "kubepods.slice", kPod + "/web.service",
     "Guaranteed " + kUid + " :web.service"},
    {"a_transient_scope", "kubepods.slice", kPod + "/run-r1.scope",
     "Guaranteed " + kUid + " :run-r1.scope"},
    {"systemd_inside_a_container", "kubepods.slice",
     kPod + "/cri-containerd-" + kId + ".scope/system.slice/a.service",
     "Guaranteed " + kUid + " cri-containerd:" + kId + " inside"},
};
INSTANTIATE_TEST_SUITE_P(Containers, Place, testing::ValuesIn(kContainers), RowName{});

const Row kOthers[] = {
    {"the_root", "kubepods.slice", "/", "no pod"},
    {"nothing", "kubepods.slice", "", "no pod"},
    {"kubepods_itself", "kubepods.slice", "/kubepods.slice", "no pod"},
    {"a_tier", "kubepods.slice", "/kubepods.slice/kubepods-burstable.slice", "no pod"},
    {"a_tier_of_cgroupfs", "kubepods", "/kubepods/besteffort", "no pod"},
    {"a_service_elsewhere", "kubepods.slice", "/system.slice/ssh.service", "no pod"},
    {"a_longer_name", "kubepods.slice", "/kubepods.slice.d/kubepods-poda.slice", "no pod"},
    {"a_pod_in_the_wrong_tier", "kubepods.slice",
     "/kubepods.slice/kubepods-burstable.slice/kubepods-besteffort-pod" + kSpelled + ".slice",
     "no pod"},
    {"a_pod_of_a_tier_outside_it", "kubepods.slice",
     "/kubepods.slice/kubepods-burstable-pod" + kSpelled + ".slice", "no pod"},
    {"no_uid", "kubepods.slice", "/kubepods.slice/kubepods-pod.slice", "no pod"},
    {"a_dash_that_systemd_would_split", "kubepods.slice", "/kubepods.slice/kubepods-poda-b.slice",
     "no pod"},
    {"an_underscore_that_no_uid_has", "kubepods", "/kubepods/poda_b", "no pod"},
    {"another_word_that_begins_like_it", "kubepods", "/kubepods/pod infra", "no pod"},
    {"below_another_root", "headroom.slice", "/kubepods.slice/kubepods-poda.slice", "no pod"},
    {"an_empty_root", "", "/kubepods.slice/kubepods-poda.slice", "no pod"},
};
INSTANTIATE_TEST_SUITE_P(Others, Place, testing::ValuesIn(kOthers), RowName{});

TEST(Uid, FormsAreDistinguished) {
  EXPECT_TRUE(is_uuid(kUid));
  EXPECT_FALSE(is_uuid(kStatic));
  EXPECT_TRUE(is_static_uid(kStatic));
  EXPECT_FALSE(is_static_uid(kUid));
  EXPECT_FALSE(is_static_uid("web"));
}

}  // namespace
}  // namespace headroom::observe
