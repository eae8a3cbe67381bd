// SPDX-License-Identifier: Apache-2.0
// cgroup names: odd ones, refused ones, those of the configuration, and systemd's own escaping.
#include "judge/allocatable/cgroup/cgroup_name.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace headroom {
namespace {

using Reason = CgroupNameError::Reason;
using Components = std::vector<std::string>;

constexpr CgroupDriver kSystemd = CgroupDriver::kSystemd;
constexpr CgroupDriver kCgroupfs = CgroupDriver::kCgroupfs;

TEST(CgroupName, TheRootHasNoComponents) {
  for (const auto& name : {CgroupName::of({}), CgroupName::of({""}),
                           CgroupName::parse(kSystemd, "/"), CgroupName::parse(kSystemd, ""),
                           CgroupName::parse(kCgroupfs, "/"), CgroupName::parse_unit("-.slice")}) {
    ASSERT_TRUE(name);
    EXPECT_TRUE(name->is_root());
    EXPECT_EQ(name->path(kSystemd), "/");
    EXPECT_EQ(name->path(kCgroupfs), "/");
    EXPECT_EQ(name->unit(), "-.slice");
  }
}

TEST(CgroupName, UnusualNamesRoundTrip) {
  for (const Components& components :
       {Components{"foo.service"}, Components{"a--b"}, Components{"-a-", "b"},
        Components{"x.slice", "y.slice"}, Components{"A", "b:c", "0"},
        Components{"serial\\x2dgetty"}}) {
    const auto name = CgroupName::of(components);
    ASSERT_TRUE(name) << name.error().what();
    for (const auto& back : {CgroupName::parse(kSystemd, name->path(kSystemd)),
                             CgroupName::parse(kCgroupfs, name->path(kCgroupfs)),
                             CgroupName::parse_unit(name->unit())}) {
      ASSERT_TRUE(back) << back.error().what();
      EXPECT_EQ(back->components(), components);
    }
  }
}

TEST(CgroupName, RejectsWithTheReason) {
  struct Case {
    const char* says;
    CgroupName::Parsed parsed;
    Reason reason;
    const char* name;
  };
  const std::string long_one(256, 'a');
  const std::string almost(130, 'a');
  for (const Case& c : {
           Case{"slash", CgroupName::of({"a/b"}), Reason::kSlash, "a/b"},
           Case{"underscore", CgroupName::of({"ok", "a_b"}), Reason::kUnderscore, "a_b"},
           Case{"nothing_between", CgroupName::of({"a", "", "b"}), Reason::kEmptyComponent, ""},
           Case{"up", CgroupName::of({".."}), Reason::kDots, ".."},
           Case{"here", CgroupName::parse(kCgroupfs, "/a/./b"), Reason::kDots, "."},
           Case{"blank", CgroupName::of({"a b"}), Reason::kCharacter, "a b"},
           Case{"newline", CgroupName::of({"a\n"}), Reason::kCharacter, "a\n"},
           Case{"beyond_ascii", CgroupName::of({"\xc3\xa9"}), Reason::kCharacter, "\xc3\xa9"},
           Case{"too_long", CgroupName::of({long_one}), Reason::kTooLong, nullptr},
           Case{"too_long_together", CgroupName::of({almost, almost}), Reason::kTooLong, nullptr},
           Case{"double_slash", CgroupName::parse(kCgroupfs, "/a//b"), Reason::kEmptyComponent, ""},
           Case{"service", CgroupName::parse(kSystemd, "/system.slice/ssh.service"),
                Reason::kNotASlice, "/system.slice/ssh.service"},
           Case{"below_a_service", CgroupName::parse(kSystemd, "/user@0.service/app.slice"),
                Reason::kNotASlice, nullptr},
           Case{"elsewhere", CgroupName::parse(kSystemd, "/a.slice/b.slice"), Reason::kMisplaced,
                "/a.slice/b.slice"},
           Case{"a_step_left_out", CgroupName::parse(kSystemd, "/a.slice/a-b-c.slice"),
                Reason::kMisplaced, nullptr},
           Case{"dash_dash", CgroupName::parse_unit("a--b.slice"), Reason::kEmptyComponent,
                "a--b.slice"},
           Case{"leading_dash", CgroupName::parse_unit("-a.slice"), Reason::kEmptyComponent,
                nullptr},
           Case{"suffix_alone", CgroupName::parse_unit(".slice"), Reason::kEmptyComponent, nullptr},
           Case{"no_suffix", CgroupName::parse_unit("kubepods"), Reason::kNotASlice, "kubepods"},
       }) {
    ASSERT_FALSE(c.parsed) << c.says;
    EXPECT_EQ(c.parsed.error().reason, c.reason) << c.says;
    if (c.name) {
      EXPECT_EQ(c.parsed.error().name, c.name) << c.says;
    }
    EXPECT_FALSE(c.parsed.error().what().empty()) << c.says;
  }
}

TEST(CgroupName, HasTheKubeletsMessages) {
  EXPECT_EQ(CgroupName::of({"a_b"}).error().what(),
            "invalid character in component [\"a_b\"] of CgroupName");
}

TEST(PodName, IsBelowItsQosCgroup) {
  const auto kubepods = kubepods_name("/my-root");
  ASSERT_TRUE(kubepods);
  struct Case {
    QosClass qos;
    const char* systemd;
    const char* cgroupfs;
  };
  for (const Case& c :
       {Case{QosClass::kGuaranteed,
             "/my_root.slice/my_root-kubepods.slice/my_root-kubepods-pod1_2.slice",
             "/my-root/kubepods/pod1-2"},
        Case{QosClass::kBurstable,
             "/my_root.slice/my_root-kubepods.slice/my_root-kubepods-burstable.slice/"
             "my_root-kubepods-burstable-pod1_2.slice",
             "/my-root/kubepods/burstable/pod1-2"},
        Case{QosClass::kBestEffort,
             "/my_root.slice/my_root-kubepods.slice/my_root-kubepods-besteffort.slice/"
             "my_root-kubepods-besteffort-pod1_2.slice",
             "/my-root/kubepods/besteffort/pod1-2"}}) {
    const auto name = pod_name(*kubepods, c.qos, "1-2");
    ASSERT_TRUE(name);
    EXPECT_EQ(name->path(kSystemd), c.systemd);
    EXPECT_EQ(name->path(kCgroupfs), c.cgroupfs);
  }
}

TEST(PodName, NeedsAUidThatFits) {
  EXPECT_FALSE(pod_name(*kubepods_name(""), QosClass::kBurstable, ""));
  EXPECT_FALSE(pod_name(*kubepods_name(""), QosClass::kBurstable, "a_b"));
  EXPECT_FALSE(pod_name(*kubepods_name(""), QosClass::kBurstable, "../../system"));
}

TEST(ReservedPath, IsASliceUnderSystemd) {
  struct Case {
    const char* text;
    const char* path;
  };
  for (const Case& c :
       {Case{"/system.slice", "/system.slice"}, Case{"system.slice", "/system.slice"},
        Case{"/system.slice/", "/system.slice"},
        Case{"kube-reserved.slice", "/kube.slice/kube-reserved.slice"},
        Case{"/kube-reserved.slice", "/kube.slice/kube-reserved.slice"},
        Case{"/kube.slice/kube-reserved.slice", "/kube.slice/kube-reserved.slice"},
        Case{"kube_reserved.slice", "/kube_reserved.slice"}}) {
    const auto path = reserved_path(kSystemd, c.text);
    ASSERT_TRUE(path) << path.error().what();
    EXPECT_EQ(*path, c.path);
  }
}

TEST(ReservedPath, RejectsNamesTheKubeletWouldChange) {
  struct Case {
    const char* text;
    Reason reason;
  };
  for (const Case& c :
       {Case{"/kube-reserved", Reason::kNotASlice}, Case{"kubelet", Reason::kNotASlice},
        Case{"/system.slice/foo.service", Reason::kNotASlice},
        Case{"/system.slice/foo.slice", Reason::kMisplaced}, Case{"/", Reason::kRoot},
        Case{"-.slice", Reason::kRoot}, Case{"/a.slice//a-b.slice", Reason::kEmptyComponent}}) {
    const auto path = reserved_path(kSystemd, c.text);
    ASSERT_FALSE(path) << c.text;
    EXPECT_EQ(path.error(), (CgroupNameError{c.reason, c.text}));
  }
}

TEST(ReservedPath, IsAnyPathUnderCgroupfs) {
  EXPECT_EQ(reserved_path(kCgroupfs, "/kube_reserved"), "/kube_reserved");
  EXPECT_EQ(reserved_path(kCgroupfs, "a/b c/"), "/a/b c");
  EXPECT_EQ(reserved_path(kCgroupfs, "/").error().reason, Reason::kRoot);
  EXPECT_EQ(reserved_path(kCgroupfs, "/a/../b").error().reason, Reason::kDots);
  EXPECT_EQ(reserved_path(kCgroupfs, "/a//b").error().reason, Reason::kEmptyComponent);
}

}  // namespace
}  // namespace headroom
