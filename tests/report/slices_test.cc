// SPDX-License-Identifier: Apache-2.0
// The slices as metrics, in the status document, and as headroomctl shows them.
#include "ctl/common/commands.h"
#include "report/metrics/exposition/exposition_text.h"
#include "report/metrics/metrics.h"
#include "report/sample.h"
#include "report/status/status_json.h"
#include "report/view/slices_view.h"

#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace headroom::report {
namespace {

using namespace headroom::test;

std::string document() {
  NodeView node = sample_node();
  node.slices = sample_slices();
  return status_json(node, sample_cgroups(), nullptr).dump();
}

TEST(SliceMetrics, HaveDesiredAndActualValues) {
  Families families;
  add_slice_families(*sample_slices(), families);
  std::string text;
  for (const auto& family : families)
    append_family(text, Format::kText, family);
  for (
      const char* sample :
      {R"(headroom_slice_setting_desired{setting="memory.max",slice="/kube.slice"} 536870912)",
       R"(headroom_slice_setting_actual{setting="memory.max",slice="/kube.slice"} +Inf)",
       R"(headroom_slice_settings_differing{role="kubepods",slice="/kubepods.slice"} 0)",
       R"(headroom_slice_settings_differing{role="kube-reserved",slice="/kube.slice"} 1)",
       R"(headroom_slice_settings_differing{role="besteffort",slice="/kubepods.slice/kubepods-besteffort.slice"} 1)",
       R"(headroom_slice_share{resource="cpu",role="kubepods",slice="/kubepods.slice",unit="core"} 1.5)",
       R"(headroom_slice_usage{resource="memory",role="kubepods",slice="/kubepods.slice",unit="byte"} 1073741824)",
       R"(headroom_slice_usage{resource="cpu",role="kubepods",slice="/kubepods.slice",unit="core"} 0.25)",
       R"(headroom_slice_setting_drift_total{setting="memory.max",slice="/kube.slice"} 2)",
       R"(headroom_slice_over_limit_bytes{slice="/kube.slice"} 92274688)",
       R"(headroom_slice_over_limit_bytes{slice="/kubepods.slice"} 0)",
       R"(headroom_slice_limit_lowerings_total{outcome="failed",slice="/kube.slice"} 1)",
       R"(headroom_slice_dbus_seconds_total 0.25)",
       R"(headroom_slice_dbus_calls_total{outcome="done"} 8)"})
    EXPECT_NE(text.find(std::string(sample) + "\n"), std::string::npos) << sample << "\n" << text;
}

TEST(SlicesJson, ArePartOfTheStatus) {
  const auto json = nlohmann::json::parse(document()).at("slices");
  EXPECT_EQ(json.at("mode"), "enforce");
  const auto& kube = json.at("slices").at(1);
  EXPECT_EQ(kube.at("share").at("memory"), (512_MiB).count);
  EXPECT_EQ(kube.at("settings").at(1), (nlohmann::json{{"setting", "memory.max"},
                                                       {"desired", "536870912"},
                                                       {"actual", "max"},
                                                       {"differs", true},
                                                       {"drift", 2}}));
  EXPECT_EQ(kube.at("removed"), 1);
  EXPECT_EQ(
      kube.at("limit_lowering"),
      (nlohmann::json{{"in_progress", false}, {"stalled", true}, {"done", 0}, {"failed", 1}}));
  EXPECT_EQ(json.at("dbus_calls").at("seconds"), 0.25);
  EXPECT_EQ(json.at("slices").at(2).at("settings").at(0).at("actual"), nullptr);
  EXPECT_EQ(nlohmann::json::parse(ctl::slices_text(document()).value()), json);
}

TEST(SlicesOutput, AreATableOfSlicesAndOneOfKnobs) {
  const auto text = ctl::render_slices(document(), {});
  ASSERT_TRUE(text);
  EXPECT_EQ(*text, R"(mode enforce

SLICE                                      ROLE            CPU    OF  MEMORY     OF  TASKS    OF           STATE
/kubepods.slice                            kubepods       0.25  1.50     1Gi    3Gi     12  1000              ok
/kube.slice                                kube-reserved     -  0.50   600Mi  512Mi      -     -  over its limit
/kubepods.slice/kubepods-besteffort.slice  besteffort        -     -       -      -      -     -         missing

SLICE                                      SETTING     DESIRED  ACTUAL  DRIFT
/kubepods.slice                            cpu.weight       59      59      0
/kubepods.slice                            memory.max      3Gi     3Gi      0
/kube.slice                                cpu.weight       20      20      0
/kube.slice                                memory.max    512Mi     max      2
/kubepods.slice/kubepods-besteffort.slice  cpu.weight        1       -      0

/kube.slice: 600Mi in use; memory.max is lowered when usage is lower: reclaim has not succeeded so far
/kube.slice: was removed 1 time
/kubepods.slice/kubepods-besteffort.slice: reach systemd on the system bus: gone
)");
}

TEST(SlicesOutput, OffAndInvalidDocuments) {
  EXPECT_EQ(ctl::render_slices("{\"slices\": null}", {}).value(), "mode off\n");
  EXPECT_FALSE(ctl::render_slices("nonsense", {}));
  EXPECT_FALSE(ctl::render_slices(R"({"slices": {"slices": [7]}})", {}));
}

}  // namespace
}  // namespace headroom::report
